"""The vectors of `words` as LlamaIndex's embeddings."""

from llama_index.core.base.embeddings.base import BaseEmbedding

from tests.surfaces.agents.words import vector_of


class WordEmbedding(BaseEmbedding):
    """Texts by the words they have."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector_of(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector_of(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector_of(text)
