"""The vectors of `words` as LangChain's embeddings."""

from langchain_core.embeddings import Embeddings

from tests.surfaces.agents.words import vector_of


class WordEmbeddings(Embeddings):
    """Texts by the words they have."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector_of(text)
