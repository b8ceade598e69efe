"""LangChain's vector store on a type of the user: its properties, filters, scores, and what is refused."""

from datetime import date
from pathlib import Path

import pytest
from langchain_core.documents import Document

import omnigraph
from omnigraph import BadRequest, Graph
from omnigraph.agents.langchain import OmnigraphVectorStore, TextNames
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.langchain_words import WordEmbeddings

NOTES = """node Note {
    code: String @key
    body: String @index
    vector: Vector(6)? @index
    page: I64?
    lang: enum(de, en)?
    made: Date?
    tags: [String]?
    rest: String?
    photo: Blob?
}

node Bare {
    code: String @key
    body: String
}
"""
STORED = """query stored() {
    match { $n: Note }
    return { $n.page as page $n.lang as lang $n.made as made $n.rest as rest $n.code as code }
    order { code }
}"""
NAMES = TextNames("Note", key="code", text="body", vector="vector", metadata="rest")
DOCUMENTS = [
    Document(
        id="a", page_content="cat sea", metadata={"page": 1, "lang": "de", "tags": ["x", "y"], "by": "Bo"}
    ),
    Document(
        id="b",
        page_content="cat hill",
        metadata={"page": 2, "lang": "en", "tags": ["y"], "made": date(2024, 5, 1)},
    ),
    Document(id="c", page_content="dog hill", metadata={"page": 3, "deep": {"list": [1, None, {"a": "b"}]}}),
    Document(id="d", page_content="bird", metadata={"page": None}),
]


def store_of(graph: Either, names: TextNames = NAMES) -> OmnigraphVectorStore:
    return OmnigraphVectorStore(graph, WordEmbeddings(), names=names)


@pytest.fixture
def store(either: Either) -> OmnigraphVectorStore:
    either.apply_schema(NOTES)
    store = store_of(either)
    store.add_documents(DOCUMENTS)
    return store


@pytest.mark.case("surfaces", 741)
@pytest.mark.case("surfaces", 752)
def test_metadata_is_in_the_properties_of_its_name_and_the_rest_in_json(store: OmnigraphVectorStore) -> None:
    graph = store.texts.place.graph

    rows = graph.query(STORED).rows

    assert [(row["page"], row["lang"], row["made"]) for row in rows[:2]] == [
        (1, "de", None),
        (2, "en", date(2024, 5, 1)),
    ]
    assert [row["rest"] for row in rows] == [
        '{"by": "Bo"}',
        None,
        '{"deep": {"list": [1, null, {"a": "b"}]}}',
        '{"page": null}',
    ]
    assert store.get_by_ids(["d", "b", "zz", "a", "c", "b"]) == [DOCUMENTS[place] for place in (3, 1, 0, 2)]


@pytest.mark.case("surfaces", 741)
@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"page": 2}, "b"),
        ({"page": {"$eq": 2}}, "b"),
        ({"page": {"$ne": 2}}, "acd"),
        ({"page": {"$lt": 2}}, "a"),
        ({"page": {"$lte": 2}}, "ab"),
        ({"page": {"$gt": 2}}, "c"),
        ({"page": {"$gte": 2, "$lt": 3}}, "b"),
        ({"page": {"$in": [1, 3, 9]}}, "ac"),
        ({"page": {"$nin": [1, 3, 9]}}, "bd"),
        ({"tags": "y"}, "ab"),
        ({"tags": {"$contains": "x"}}, "a"),
        ({"body": {"$contains": "hil"}}, "bc"),
        ({"body": {"$starts_with": "cat"}}, "ab"),
        ({"lang": "de", "page": 1}, "a"),
        ({"lang": "de", "page": 2}, ""),
        ({"made": {"$gte": date(2024, 1, 1)}}, "b"),
        (None, "abcd"),
    ],
    ids=str,
)
def test_a_filter_chooses_before_documents_are_ranked(
    tmp_path: Path, filter: dict[str, object] | None, expected: str
) -> None:
    with omnigraph.init(tmp_path / "g.omni", NOTES, durability="process") as graph:
        store = store_of(graph)
        store.add_documents(DOCUMENTS)

        found = store.similarity_search("rain", k=9, filter=filter)

    assert sorted(document.id or "" for document in found) == list(expected)


@pytest.mark.case("surfaces", 741)
@pytest.mark.case("surfaces", 752)
def test_scores_are_distances_and_relevance_does_without_copies(store: OmnigraphVectorStore) -> None:
    store.add_texts(["cat sea"], [{}], ids=["copy"])

    scored = store.similarity_search_with_score("cat sea", k=3, filter={"body": {"$starts_with": "cat"}})
    diverse = store.max_marginal_relevance_search("cat sea", k=2, lambda_mult=0.1)
    relevant = store.similarity_search_with_relevance_scores("cat sea", k=1)

    assert [(document.id, round(score, 3)) for document, score in scored] == [
        ("a", 0.0),
        ("copy", 0.0),
        ("b", 1.0),
    ]
    assert diverse[0].id in {"a", "copy"}
    assert diverse[1].id not in {"a", "copy"}
    assert relevant[0][1] == pytest.approx(1.0)


@pytest.mark.case("surfaces", 741)
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (TextNames("Bare", key="code", text="body"), "Bare must have a property 'metadata' of type String"),
        (
            TextNames("Bare", key="code", text="body", metadata=None),
            "Bare must have a property 'embedding' of type Vector",
        ),
        (
            TextNames("Bare", key="body", text="body"),
            "Bare must have the key 'body: String @key', and no other",
        ),
        (
            TextNames("Note", key="code", text="page", vector="vector"),
            "Note must have a property 'page' of type String",
        ),
        (TextNames("New } node X {"), "no type can be called 'New } node X {'"),
        (TextNames("New", key="k: String @key } node X { k"), "no property can be called"),
        (TextNames("New", key="id"), "no property can be called 'id'"),
    ],
)
def test_a_type_that_holds_no_texts_is_refused(graph: Graph, names: TextNames, told: str) -> None:
    graph.apply_schema(NOTES)
    head = graph.commits(limit=1)

    with pytest.raises(BadRequest, match=told.replace("{", "[{]")):
        store_of(graph, names).add_texts(["cat"])

    assert graph.commits(limit=1) == head


@pytest.mark.case("surfaces", 741)
def test_what_has_no_place_is_refused_and_nothing_is_written(graph: Graph) -> None:
    graph.apply_schema(NOTES)
    store = store_of(graph, TextNames("Note", key="code", text="body", vector="vector", metadata=None))
    store.add_texts(["cat"], [{"page": 1}], ids=["a"])
    head = graph.commits(limit=1)

    with pytest.raises(BadRequest, match="Note has no property for the metadata by of 'b'"):
        store.add_texts(["cat", "dog"], [{"page": 1}, {"by": "Bo"}], ids=["c", "b"])
    with pytest.raises(BadRequest, match=r"Note\.vector has vectors of 6 numbers, not 2"):
        store.similarity_search_by_vector([0.0, 1.0])
    with pytest.raises(BadRequest, match=r"the metadata of '.*' cannot be stored as JSON"):
        store_of(graph).add_texts(["cat"], [{"odd": float("nan")}])
    with pytest.raises(BadRequest, match=r"Note has no property 'by' to filter by; it has body, code"):
        store.similarity_search("cat", filter={"by": "Bo"})
    with pytest.raises(BadRequest, match=r"a filter has no '\$like': use one of \$eq"):
        store.similarity_search("cat", filter={"page": {"$like": "Bo"}})
    with pytest.raises(BadRequest, match="k must be a whole number from 0 on, not '1'"):
        store.similarity_search("cat", k="1")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="2 texts and 1 ids"):
        store.add_texts(["cat", "dog"], ids=["a"])
    with pytest.raises(BadRequest, match="delete needs ids"):
        store.delete()

    assert graph.commits(limit=1) == head


def test_a_store_is_made_from_texts_on_a_branch(graph: Graph) -> None:
    graph.create_branch("try")

    store = OmnigraphVectorStore.from_texts(["cat", "dog"], WordEmbeddings(), graph=graph, branch="try")

    assert [found.page_content for found in store.similarity_search("dog", k=1)] == ["dog"]
    assert "Document" not in graph.catalog.nodes
    with pytest.raises(BadRequest, match="a store needs a graph"):
        OmnigraphVectorStore.from_texts(["cat"], WordEmbeddings())


def test_of_two_documents_with_one_id_the_last_one_counts_and_each_call_is_one_commit(graph: Graph) -> None:
    store = store_of(graph, TextNames())
    store.add_texts(["cat"], ids=["first"])
    before = len(graph.commits(where=lambda commit: commit.actor_id is None))

    store.add_texts(["cat", "dog", "sea"], ids=["a", "a", "b"])
    store.delete(["a", "b", "first", "none"])

    assert len(graph.commits(where=lambda commit: commit.actor_id is None)) == before + 2
    assert store.similarity_search("cat") == []
