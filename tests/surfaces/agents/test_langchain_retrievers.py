"""LangChain's retrievers: rankings, edges that are followed, and any query of the language."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document

import omnigraph
from omnigraph import BadRequest, Graph
from omnigraph.agents.langchain import OmnigraphQueryRetriever, OmnigraphRetriever, OmnigraphVectorStore
from omnigraph.graph.stored_files import given_queries
from omnigraph.server.serving import Serving
from tests.support.http_app import listening, settings_for
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.langchain_words import WordEmbeddings

SCHEMA = """
node Document {
    key: String @key
    text: String @index
    embedding: Vector(6)? @index
    metadata: String?
}

node Person {
    name: String @key
    born: Date?
    tags: [String]?
    face: Vector(2)?
}

edge Cites: Document -> Document

edge Wrote: Person -> Document

edge Knows: Person -> Person
"""
DOCUMENTS = [
    Document(id="cat", page_content="a cat", metadata={"page": 1}),
    Document(id="dog", page_content="a dog"),
    Document(id="sea", page_content="the sea"),
    Document(id="hill", page_content="the hill"),
]
EDGES: list[dict[str, object]] = [
    {"type": "Person", "data": {"name": "ada", "born": "1990-02-03", "tags": ["x", "y"], "face": [1.0, 2.0]}},
    {"type": "Person", "data": {"name": "bo"}},
    {"edge": "Cites", "from": "cat", "to": "dog"},
    {"edge": "Cites", "from": "sea", "to": "dog"},
    {"edge": "Cites", "from": "sea", "to": "cat"},
    {"edge": "Cites", "from": "hill", "to": "sea"},
    {"edge": "Wrote", "from": "ada", "to": "cat"},
    {"edge": "Knows", "from": "ada", "to": "bo"},
]
QUERIES = """
query by_word($question: String, $vector: Vector(6), $part: String) {
    match {
        $d: Document
        $d.text contains $part
    }
    return { $d.key as key $d.text as text }
    order { rrf(nearest($d.embedding, $vector), bm25($d.text, $question)) }
    limit 5
}

query forget($question: String) {
    delete Document where key = $question
}
"""


def filled(graph: Either) -> OmnigraphVectorStore:
    graph.apply_schema(SCHEMA)
    store = OmnigraphVectorStore(graph, WordEmbeddings())
    store.add_documents(DOCUMENTS)
    store.texts.place.load(EDGES)
    return store


@pytest.fixture
def store(either: Either) -> OmnigraphVectorStore:
    return filled(either)


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


@pytest.mark.case("surfaces", 743)
@pytest.mark.case("surfaces", 752)
def test_a_question_is_ranked_by_meaning_by_words_and_by_both(store: OmnigraphVectorStore) -> None:
    store.add_texts(["cat and cats", "nothing of it"], [{}, {"page": 7}], ids=["cats", "none"])

    by_vector = OmnigraphRetriever(store=store, ranking="vector", k=2).invoke("cat")
    by_words = OmnigraphRetriever(store=store, ranking="text", k=9).invoke("cat")
    by_both = OmnigraphRetriever(store=store, k=9).invoke("cat")
    chosen = OmnigraphRetriever(store=store, k=9, filter={"text": {"$contains": "sea"}}).invoke("cat")

    assert sorted(map(str, ids(by_vector))) == ["cat", "cats"]
    assert sorted(map(str, ids(by_words))) == ["cat", "cats"]
    assert set(ids(by_both)[:2]) == {"cat", "cats"}
    assert len(by_both) == 6
    assert ids(chosen) == ["sea"]


@pytest.mark.case("surfaces", 743)
@pytest.mark.case("surfaces", 752)
def test_edges_are_followed_both_ways_and_every_node_comes_once(store: OmnigraphVectorStore) -> None:
    retriever = OmnigraphRetriever(store=store, ranking="text", k=1, follow=["Cites", "wrote", "Knows"])

    one = retriever.invoke("cat")
    two = retriever.model_copy(update={"hops": 2}).invoke("cat")
    cut = retriever.model_copy(update={"hops": 9, "reached_max": 1}).invoke("cat")

    assert ids(one) == ["cat", "dog", "sea", "ada"]
    assert one[0] == DOCUMENTS[0]
    assert one[1].metadata == {"type": "Document", "hops": 1, "via": "Cites"}
    assert one[1].page_content == "a dog"
    assert one[3].page_content == "Person\nid: ada\nborn: 1990-02-03\nname: ada\ntags: x, y"
    assert one[3].metadata["via"] == "Wrote"
    assert one[3].metadata["tags"] == ["x", "y"]
    assert "face" not in one[3].metadata
    assert [(found.id, found.metadata["hops"]) for found in two[4:]] == [("hill", 2), ("bo", 2)]
    assert ids(cut) == ["cat", "dog"]


@pytest.mark.case("surfaces", 743)
def test_edges_are_followed_in_the_state_that_was_searched(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(graph)
    searched = store.texts.search

    def search_and_change(**options: object) -> object:
        found = searched(**options)  # type: ignore[arg-type]
        graph.mutate('query q() { delete Document where key = "dog" }')
        return found

    monkeypatch.setattr(store.texts, "search", search_and_change)
    found = OmnigraphRetriever(store=store, ranking="text", k=1, follow=["Cites"]).invoke("cat")

    assert ids(found) == ["cat", "dog", "sea"]


@pytest.mark.case("surfaces", 743)
def test_an_edge_that_is_not_there_is_named(graph: Graph) -> None:
    store = filled(graph)

    with pytest.raises(
        BadRequest, match=r"there is no edge type 'cites \$x \$y'; there are Cites, Knows, Wrote"
    ):
        OmnigraphRetriever(store=store, follow=["cites $x $y"]).invoke("cat")
    with pytest.raises(BadRequest, match="hops must be a whole number"):
        OmnigraphRetriever(store=store, follow=["Cites"], hops=-1).invoke("cat")


def retriever_of(graph: Either, **options: object) -> OmnigraphQueryRetriever:
    given: dict[str, object] = {"params": {"part": "a"}, "vector": "vector", "embedding": WordEmbeddings()}
    return OmnigraphQueryRetriever(graph=graph, **(given | options))  # type: ignore[arg-type]


@pytest.fixture(params=["embedded", "served"])
def with_queries(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Either]:
    """A graph with documents and stored queries."""
    place, queries = tmp_path / "q.omni", tmp_path / "stored.gq"
    queries.write_text(QUERIES, encoding="utf-8")
    with omnigraph.init(place, "", durability="process") as graph:
        filled(graph)
    if request.param == "embedded":
        with omnigraph.open(place, queries=queries) as graph:
            yield graph
        return
    serving = Serving.begin(settings_for(place, queries=given_queries(queries)))
    try:
        with listening(serving) as url, omnigraph.connect(url) as remote:
            yield remote
    finally:
        serving.close()


@pytest.mark.case("surfaces", 743)
@pytest.mark.case("surfaces", 752)
def test_the_rows_of_a_query_are_documents_inline_and_stored(with_queries: Either) -> None:
    inline = retriever_of(with_queries, source=QUERIES, name="by_word", content="text", id="key").invoke(
        "cat"
    )
    stored = retriever_of(with_queries, name="by_word", k=1).invoke("cat")

    assert [(found.id, found.page_content, found.metadata) for found in inline[:1]] == [("cat", "a cat", {})]
    assert {found.id for found in inline} == {"cat", "dog", "sea"}
    assert [(found.id, found.page_content) for found in stored] == [(None, "key: cat\ntext: a cat")]
    assert stored[0].metadata == {"key": "cat", "text": "a cat"}


@pytest.mark.case("surfaces", 743)
def test_a_mutation_is_no_query_to_retrieve_with(with_queries: Either) -> None:
    head = with_queries.commits(limit=1)

    for options in ({"name": "forget"}, {"source": QUERIES, "name": "forget"}):
        with pytest.raises(BadRequest):
            retriever_of(with_queries, params={}, vector=None, **options).invoke("cat")
    with pytest.raises(BadRequest, match="the query has no column 'body'; it has key, text"):
        retriever_of(with_queries, name="by_word", content="body").invoke("cat")
    with pytest.raises(BadRequest, match="the parameter 'vector' needs an embedding"):
        retriever_of(with_queries, name="by_word", embedding=None).invoke("cat")
    with pytest.raises(BadRequest, match="needs the source of a query, or the name of a stored one"):
        retriever_of(with_queries).invoke("cat")

    assert with_queries.commits(limit=1) == head
