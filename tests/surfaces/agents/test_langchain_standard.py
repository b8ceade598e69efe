"""The tests that LangChain publishes for vector stores and retrievers, on a graph and on a server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

import omnigraph
from omnigraph.agents.langchain import OmnigraphQueryRetriever, OmnigraphRetriever, OmnigraphVectorStore
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.langchain_words import WordEmbeddings

CREATURES = [
    Document(id=str(number), page_content=text)
    for number, text in enumerate(
        ["a cat", "a dog", "a bird by the sea", "a cat on the hill", "a cat in the rain"]
    )
]
ASK = """
query cats($question: String, $vector: Vector(6)) {
    match { $d: Document }
    return { $d.key as key $d.text as text }
    order { rrf(nearest($d.embedding, $vector), bm25($d.text, $question)) }
    limit 5
}
"""


@pytest.mark.case("surfaces", 740)
@pytest.mark.case("surfaces", 752)
class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, either: Either) -> VectorStore:
        return OmnigraphVectorStore(either, self.get_embeddings())


class Retrievers(RetrieversIntegrationTests):
    """What both retrievers are given: a store with five documents."""

    store: OmnigraphVectorStore

    @pytest.fixture(autouse=True)
    def creatures(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        place: Path = tmp_path_factory.mktemp("standard") / "g.omni"
        with omnigraph.init(place, "", durability="process") as graph:
            self.store = OmnigraphVectorStore(graph, WordEmbeddings())
            self.store.add_documents(CREATURES)
            yield

    @property
    def retriever_query_example(self) -> str:
        return "cat"


@pytest.mark.case("surfaces", 742)
class TestRetriever(Retrievers):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return OmnigraphRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"store": self.store}


@pytest.mark.case("surfaces", 742)
class TestQueryRetriever(Retrievers):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return OmnigraphQueryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {
            "graph": self.store.texts.place.graph,
            "source": ASK,
            "vector": "vector",
            "embedding": self.store.embeddings,
            "content": "text",
            "id": "key",
        }
