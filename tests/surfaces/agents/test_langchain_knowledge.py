"""LangChain's graph documents as typed nodes and edges: types that grow, what is kept, what is refused."""

import inspect
from datetime import date
from typing import Any

import pytest
from langchain_community.graphs.graph_document import GraphDocument, Node, Relationship
from langchain_community.graphs.graph_store import GraphStore
from langchain_core.documents import Document

from omnigraph import BadRequest, Graph, OmnigraphError
from omnigraph.agents.langchain import OmnigraphGraphStore, OmnigraphVectorStore
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.langchain_words import WordEmbeddings


def node(id: str | int, type: str, properties: dict[str, Any] | None = None) -> Node:
    return Node(id=id, type=type, properties=properties or {})


def relation(source: Node, target: Node, type: str, properties: dict[str, Any] | None = None) -> Relationship:
    return Relationship(source=source, target=target, type=type, properties=properties or {})


ADA = node(
    "Ada", "Person", {"born": date(1990, 2, 3), "First Name": "Ada", "key": "k", "id": "x", "score": 1}
)
BO = node("Bo", "person", {"score": 0.5, "tags": ["a", "b"], "none": None})
ACME = node("ACME", "COMPANY")
OSLO = node("Oslo", "City of Norway", {"is_big": True, "people": 700_000})
SOURCE = Document(id="doc", page_content="a cat in the rain")
FOUND = GraphDocument(
    nodes=[ADA, BO, ACME],
    relationships=[
        relation(node("Ada", "Person"), ACME, "WORKS_AT", {"since": 2020}),
        relation(BO, ACME, "works at"),
        relation(BO, ACME, "WORKS_AT", {"since": 2021}),
        relation(BO, OSLO, "WORKS_AT"),
        relation(ADA, BO, "knows"),
    ],
    source=SOURCE,
)
PEOPLE = "query people() { match { $p: Person } return { $p } order { $p.key } }"
WORK = """query work() {
    match { $p: Person $p $w:worksAt $c }
    return { $p.key as p $w.since as since $c.key as c }
    order { p }
}"""
MADE = ("Person", "Company", "CityOfNorway")


WRITTEN = """// Ours.
node Person { key: String @key }

edge Knows: Person -> Person

node Place {
    key: String @key // one line
    }
"""


def counts(graph: Either) -> list[object]:
    asked = [f"query n() {{ match {{ $n: {name} }} return {{ count($n) as n }} }}" for name in MADE]
    return [graph.query(text).scalar() for text in asked]


@pytest.mark.case("surfaces", 863)
def test_the_store_is_called_as_one_of_langchain_community() -> None:
    theirs = {name: member for name, member in vars(GraphStore).items() if not name.startswith("_")}
    assert {"add_graph_documents", "get_schema", "query"} <= theirs.keys()

    for name, member in theirs.items():
        ours = vars(OmnigraphGraphStore)[name]
        assert type(ours) is type(member), name
        if not isinstance(member, property):
            asked, taken = (inspect.signature(each).parameters.values() for each in (member, ours))
            assert [(each.name, each.kind) for each in taken] == [(each.name, each.kind) for each in asked]
            assert [each.default is each.empty for each in taken] == [
                each.default is each.empty for each in asked
            ]


@pytest.mark.case("surfaces", 744)
@pytest.mark.case("surfaces", 752)
def test_labels_are_types_and_documents_that_come_again_change_nothing(either: Either) -> None:
    store = OmnigraphGraphStore(either)

    store.add_graph_documents([FOUND])
    first = [list(table) for table in (store.query(PEOPLE), store.query(WORK))]
    store.add_graph_documents([FOUND, FOUND])

    ada, bo = (row["p"] for row in first[0])
    assert ada == {
        "id": "Ada",
        "key": "Ada",
        "key_": "k",
        "id_": "x",
        "born": date(1990, 2, 3),
        "first_name": "Ada",
        "score": 1.0,
        "tags": None,
    }
    assert (bo["score"], bo["tags"]) == (0.5, ["a", "b"])
    assert first[1] == [{"p": "Ada", "since": 2020, "c": "ACME"}, {"p": "Bo", "since": 2021, "c": "ACME"}]
    assert [list(table) for table in (store.query(PEOPLE), store.query(WORK))] == first
    assert counts(either) == [2, 1, 1]
    assert set(either.catalog.edges) == {"WorksAt", "PersonWorksAtCityOfNorway", "Knows"}


@pytest.mark.case("surfaces", 744)
@pytest.mark.case("surfaces", 752)
def test_a_schema_grows_and_keeps_what_its_authors_wrote(either: Either) -> None:
    either.apply_schema(WRITTEN)
    either.load(b'{"type": "Person", "data": {"key": "Cy"}}', "append")
    store = OmnigraphGraphStore(either)

    store.add_graph_documents([FOUND])
    ends = node("Ada", "Person"), node("Bo", "Person")
    knows = relation(*ends, "KNOWS", {"how": "work"})
    again = GraphDocument(nodes=[node("Ada", "Person", {"age": 3})], relationships=[knows], source=SOURCE)
    store.add_graph_documents([again])

    people = {row["p"]["id"]: row["p"] for row in store.query(PEOPLE)}
    assert set(people) == {"Ada", "Bo", "Cy"}
    assert (people["Ada"]["age"], people["Ada"]["first_name"], people["Bo"]["tags"]) == (3, "Ada", ["a", "b"])
    assert "// Ours." in store.get_schema
    assert "// one line" in store.get_schema
    store.refresh_schema()
    shown = store.get_structured_schema
    assert {"property": "people", "type": "I64?"} in shown["node_props"]["CityOfNorway"]
    assert shown["rel_props"]["Knows"] == [{"property": "how", "type": "String?"}]
    assert {"start": "Person", "type": "WorksAt", "end": "Company"} in shown["relationships"]


@pytest.mark.case("surfaces", 744)
def test_a_source_is_the_document_of_the_vector_store(graph: Graph) -> None:
    vectors = OmnigraphVectorStore(graph, WordEmbeddings())
    store = OmnigraphGraphStore(graph)
    with pytest.raises(BadRequest, match="there is no type Document for sources"):
        store.add_graph_documents([FOUND], include_source=True)
    vectors.add_documents([Document(id="doc", page_content="a cat in the rain", metadata={"page": 3})])

    store.add_graph_documents([FOUND], include_source=True)

    assert vectors.similarity_search("cat", k=1)[0].metadata == {"page": 3}
    mentioned = "query m() { match { $d: Document $d mentions $p } return { $p.key as p } order { p } }"
    assert [row["p"] for row in store.query(mentioned)] == ["Ada", "Bo"]
    assert "DocumentMentionsCompany" in graph.catalog.edges


@pytest.mark.case("surfaces", 744)
@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ([node("a", "Person", {"score": "high"})], "Person.score is F64[?], and 'high' is no such value"),
        ([node("a", "Person", {"new": [1, "x"]})], "Person.new has no one type"),
        ([node("a", "Person", {"new": {"a": 1}})], "Person.new has no one type"),
        ([node("a", "Person", {"new": 1}), node("b", "Person", {"new": "x"})], "Person.new has no one type"),
        ([node("a", "?!")], "the label '[?]!' is no name of a type"),
        ([node("a", "7up")], "the label '7up' is no name of a type"),
        ([node("a", "Person", {"??": 1})], "'[?][?]' is no name of a property"),
        ([node("", "Person")], "the id of a node must be a text or a number, not ''"),
        ([node("a", "Person", {"tags": "a"})], "Person.tags is .String.[?], and 'a' is no such value"),
        ([node("a", "Photo")], "Photo has a Blob"),
        ([node("a", "Numbered")], "Numbered.number is no String"),
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused_before_anything_is_written(
    graph: Graph, nodes: list[Node], told: str
) -> None:
    graph.apply_schema("node Photo { key: String @key bytes: Blob? }\nnode Numbered { number: I64 @key }\n")
    store = OmnigraphGraphStore(graph)
    store.add_graph_documents([FOUND])
    head = graph.commits(limit=1)

    refused = GraphDocument(nodes=[node("new", "Animal"), *nodes], relationships=[], source=SOURCE)
    with pytest.raises(OmnigraphError, match=told):
        store.add_graph_documents([refused])
    store.add_graph_documents([])
    with pytest.raises(BadRequest):
        store.query('query q() { delete Person where key = "Ada" }')

    assert graph.commits(limit=1) == head
