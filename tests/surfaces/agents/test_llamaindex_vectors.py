"""LlamaIndex's vector store and retriever: nodes that come back, filters, modes, edges."""

from datetime import date

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from omnigraph import BadRequest, Graph, UnsupportedError
from omnigraph.agents.llamaindex import OmnigraphNodeRetriever, OmnigraphNodeStore, TextNames
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.llamaindex_words import WordEmbedding

SCHEMA = """
node Note {
    code: String @key
    body: String @index
    vector: Vector(6)? @index
    page: I64?
    lang: String?
    tags: [String]?
    rest: String?
}

node Person {
    name: String @key
    born: Date?
}

edge Wrote: Person -> Note

edge Cites: Note -> Note
"""
NAMES = TextNames("Note", key="code", text="body", vector="vector", metadata="rest")


def node(identity: str, text: str, source: str, **metadata: object) -> TextNode:
    related = RelatedNodeInfo(node_id=source, metadata={"file": f"{source}.md"})
    return TextNode(
        id_=identity, text=text, metadata=metadata, relationships={NodeRelationship.SOURCE: related}
    )


NODES = [
    node("a", "cat sea", "one", page=1, lang="de", tags=["x", "y"], by={"name": ["Bo"]}),
    node("b", "cat hill", "one", page=2, lang="en", tags=["y"]),
    node("c", "dog hill", "two", page=3, tags=["z"]),
    node("d", "bird", "two"),
]
EDGES: list[dict[str, object]] = [
    {"type": "Person", "data": {"name": "ada", "born": "1990-02-03"}},
    {"edge": "Wrote", "from": "ada", "to": "a"},
    {"edge": "Cites", "from": "c", "to": "a"},
]


def indexed(store: OmnigraphNodeStore) -> VectorStoreIndex:
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(NODES, storage_context=context, embed_model=WordEmbedding())


@pytest.fixture
def store(either: Either) -> OmnigraphNodeStore:
    either.apply_schema(SCHEMA)
    store = OmnigraphNodeStore(either, names=NAMES)
    indexed(store)
    store.texts.place.load(EDGES)
    return store


def ids(found: list[NodeWithScore]) -> list[str]:
    return [item.node.node_id for item in found]


@pytest.mark.case("surfaces", 748)
@pytest.mark.case("surfaces", 752)
async def test_an_index_over_a_graph_gives_back_the_nodes_it_was_given(either: Either) -> None:
    store = OmnigraphNodeStore(either)
    index = indexed(store)

    found = index.as_retriever(similarity_top_k=2).retrieve("cat sea")
    later = await index.as_retriever(similarity_top_k=1).aretrieve("bird")
    again = VectorStoreIndex.from_vector_store(store, embed_model=WordEmbedding())

    assert ids(found) == ["a", "b"]
    assert found[0].score == pytest.approx(1.0)
    assert found[1].score == pytest.approx(0.5)
    assert found[0].node == NODES[0]
    assert store.get_nodes() == NODES
    assert store.get_nodes(["c", "none"]) == NODES[2:3]
    assert ids(later) == ["d"]
    assert ids(again.as_retriever(similarity_top_k=1).retrieve("dog hill")) == ["c"]
    index.delete_ref_doc("one")
    assert store.get_nodes() == NODES[2:]
    index.delete_nodes(["c"])
    assert await store.aget_nodes() == NODES[3:]
    await store.aclear()
    assert await store.aget_nodes() == []
    assert store.query(VectorStoreQuery(query_embedding=[0.0] * 6)).ids == []


@pytest.mark.case("surfaces", 748)
@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        ("page", FilterOperator.EQ, 2, "b"),
        ("page", FilterOperator.NE, 2, "acd"),
        ("page", FilterOperator.GT, 2, "c"),
        ("page", FilterOperator.GTE, 2, "bc"),
        ("page", FilterOperator.LT, 2, "a"),
        ("page", FilterOperator.LTE, 2, "ab"),
        ("page", FilterOperator.IN, [1, 3, 9], "ac"),
        ("page", FilterOperator.NIN, [1, 3, 9], "bd"),
        ("tags", FilterOperator.CONTAINS, "y", "ab"),
        ("tags", FilterOperator.ANY, ["x", "z"], "ac"),
        ("tags", FilterOperator.ALL, ["x", "y"], "a"),
        ("body", FilterOperator.TEXT_MATCH, "hil", "bc"),
        ("lang", FilterOperator.IS_EMPTY, None, "cd"),
        ("ref_doc_id", FilterOperator.EQ, "two", "cd"),
    ],
)
def test_every_operator_of_a_filter_chooses_the_right_nodes(
    graph: Graph, key: str, operator: FilterOperator, value: object, expected: str
) -> None:
    graph.apply_schema(SCHEMA)
    store = OmnigraphNodeStore(graph, names=NAMES)
    indexed(store)
    test = MetadataFilter(key=key, value=value, operator=operator)  # type: ignore[arg-type]
    without = MetadataFilters(filters=[test], condition=FilterCondition.NOT)

    found = store.get_nodes(filters=MetadataFilters(filters=[test]))
    others = store.get_nodes(filters=without)

    assert [item.node_id for item in found] == list(expected)
    assert [item.node_id for item in others] == [name for name in "abcd" if name not in expected]


@pytest.mark.case("surfaces", 748)
@pytest.mark.case("surfaces", 752)
def test_conditions_nest_and_modes_rank(store: OmnigraphNodeStore) -> None:
    page, lang, tag = (
        MetadataFilter(key="page", value=3),
        MetadataFilter(key="lang", value="de"),
        MetadataFilter(key="tags", value="y", operator=FilterOperator.CONTAINS),
    )
    either = MetadataFilters(filters=[page, lang], condition=FilterCondition.OR)
    both = MetadataFilters(filters=[either, tag, MetadataFilters(filters=[])], condition=FilterCondition.AND)
    cat = VectorStoreQuery(query_embedding=[1.0, 0, 0, 0, 0, 0], query_str="cat hill", similarity_top_k=4)

    def ask(mode: VectorStoreQueryMode, **options: object) -> list[str]:
        query = VectorStoreQuery(**(vars(cat) | {"mode": mode} | options))
        return list(store.query(query).ids or [])

    assert [item.node_id for item in store.get_nodes(filters=either)] == ["a", "c"]
    assert [item.node_id for item in store.get_nodes(filters=both)] == ["a"]
    assert ask(VectorStoreQueryMode.TEXT_SEARCH)[0] == "b"
    assert set(ask(VectorStoreQueryMode.TEXT_SEARCH)) == {"a", "b", "c"}
    assert set(ask(VectorStoreQueryMode.DEFAULT, similarity_top_k=2)) == {"a", "b"}
    assert set(ask(VectorStoreQueryMode.HYBRID)[:2]) == {"a", "b"}
    assert ask(VectorStoreQueryMode.HYBRID, filters=both) == ["a"]
    assert set(ask(VectorStoreQueryMode.DEFAULT, doc_ids=["two"])) == {"c", "d"}
    assert ask(VectorStoreQueryMode.DEFAULT, node_ids=["d"]) == ["d"]
    with pytest.raises(UnsupportedError, match="the mode 'svm' is not offered; use one of default"):
        ask(VectorStoreQueryMode.SVM)
    store.delete_nodes()
    store.delete_nodes(filters=either)
    assert [item.node_id for item in store.get_nodes()] == ["b", "d"]
    insensitive = MetadataFilter(key="lang", value="D", operator=FilterOperator.TEXT_MATCH_INSENSITIVE)
    with pytest.raises(UnsupportedError, match="text_match_insensitive"):
        store.get_nodes(filters=MetadataFilters(filters=[insensitive]))
    with pytest.raises(BadRequest, match="Note has no property 'by' to filter by"):
        store.get_nodes(filters=MetadataFilters(filters=[MetadataFilter(key="by", value="x")]))


@pytest.mark.case("surfaces", 748)
@pytest.mark.case("surfaces", 752)
async def test_a_retriever_follows_edges(store: OmnigraphNodeStore) -> None:
    retriever = OmnigraphNodeRetriever(
        store, WordEmbedding(), similarity_top_k=1, follow=["cites", "Wrote"], reached_max=5
    )
    filters = MetadataFilters(filters=[MetadataFilter(key="page", value=3)])
    words = OmnigraphNodeRetriever(store, ranking="text", filters=filters)

    found = retriever.retrieve("cat sea")
    later = await retriever.aretrieve(QueryBundle("cat sea"))

    assert ids(found) == ids(later) == ["a", "c", "ada"]
    assert found[0].node == NODES[0]
    assert (found[1].score, found[1].node.metadata["page"], found[1].node.metadata["via"]) == (
        None,
        3,
        "Cites",
    )
    assert found[1].node.get_content() == "dog hill"
    assert found[2].node.metadata["born"] == date(1990, 2, 3)
    assert found[2].node.get_content() == "Person\nid: ada\nborn: 1990-02-03\nname: ada"
    assert ids(words.retrieve("hill")) == ["c"]


@pytest.mark.case("surfaces", 748)
def test_a_property_that_was_changed_since_is_shown_as_it_is(graph: Graph) -> None:
    graph.apply_schema(SCHEMA)
    store = OmnigraphNodeStore(graph, names=NAMES)
    indexed(store)

    graph.mutate('query q() { update Note set { page: 7 } where code = "a" }')

    assert store.get_nodes(["a"])[0].metadata == NODES[0].metadata | {"page": 7}
