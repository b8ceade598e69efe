"""LlamaIndex's property graph store: nodes, relations, vectors, depth, deletion, two programs at once."""

import pytest
from llama_index.core import PropertyGraphIndex
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, LabelledNode, Relation, Triplet
from llama_index.core.indices.property_graph import ImplicitPathExtractor, VectorContextRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery

from omnigraph import BadRequest, Graph, UnsupportedError
from omnigraph.agents.llamaindex import OmnigraphPropertyGraphStore
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.llamaindex_words import WordEmbedding

ADA = EntityNode(name="Ada", label="PERSON", properties={"born": 1990, "of": {"deep": [1, None]}})
BO = EntityNode(name="Bo", label="person", embedding=[0.0, 1.0], properties={"born": 19})
ACME = EntityNode(name='The "ACME"', label="a company", embedding=[1.0, 0.0])
CHUNK = ChunkNode(text="Ada knows Bo", id_="chunk-1", properties={"page": 3}, embedding=[0.5, 0.5])
NODES: list[LabelledNode] = [ADA, BO, CHUNK, ACME]
KNOWS = Relation(label="KNOWS", source_id="Ada", target_id="Bo", properties={"since": 2020})
WORKS = Relation(label="WORKS AT", source_id="Bo", target_id=ACME.id)
MENTIONS = Relation(label="MENTIONS", source_id="chunk-1", target_id="Ada")


@pytest.fixture
def store(either: Either) -> OmnigraphPropertyGraphStore:
    store = OmnigraphPropertyGraphStore(either)
    assert (store.get(), store.get_triplets(ids=["a"]), store.get_rel_map([ADA])) == ([], [], [])
    store.delete(ids=["a"])
    store.upsert_nodes([ADA])
    store.upsert_nodes(NODES)
    store.upsert_relations([KNOWS, WORKS, MENTIONS])
    return store


def told(found: list[Triplet]) -> list[str]:
    return [f"{source.id}-{relation.label}-{target.id}" for source, relation, target in found]


@pytest.mark.case("surfaces", 747)
@pytest.mark.case("surfaces", 752)
def test_what_is_stored_comes_back_equal_and_once(store: OmnigraphPropertyGraphStore) -> None:
    store.upsert_nodes(NODES)
    store.upsert_relations([KNOWS, KNOWS, WORKS])
    store.upsert_nodes([])
    store.upsert_relations([])

    assert store.get() == [ADA, BO, ACME, CHUNK]
    assert store.get(ids=["Bo", "chunk-1", "none"]) == [BO, CHUNK]
    assert store.get(ids=[]) == []
    assert store.get(properties={"born": 19}) == [BO]
    assert store.get(properties={"born": 1990, "page": 3}) == [ADA, CHUNK]
    assert store.get(properties={"of": {"deep": [1, None]}}) == [ADA]
    assert store.get(properties={"deep": [1, None]}) == []
    assert store.get_triplets() == []
    assert store.get_triplets(entity_names=["Ada"], relation_names=["KNOWS"]) == [(ADA, KNOWS, BO)]
    assert store.get_triplets(entity_names=['The "ACME"']) == [(BO, WORKS, ACME)]
    assert told(store.get_triplets(ids=["Ada"])) == ["Ada-KNOWS-Bo", "chunk-1-MENTIONS-Ada"]
    assert told(store.get_triplets(ids=["Ada"], entity_names=["Bo"])) == ["Ada-KNOWS-Bo"]
    assert told(store.get_triplets(relation_names=["WORKS AT", "KNOWS"])) == [
        "Ada-KNOWS-Bo",
        "Bo-WORKS AT-The  ACME ",
    ]
    assert told(store.get_triplets(properties={"since": 2020})) == ["Ada-KNOWS-Bo"]
    assert told(store.get_triplets(properties={"page": 3})) == ["chunk-1-MENTIONS-Ada"]


@pytest.mark.case("surfaces", 747)
@pytest.mark.case("surfaces", 752)
def test_the_map_of_relations_goes_as_deep_as_asked(store: OmnigraphPropertyGraphStore) -> None:
    assert told(store.get_rel_map([ACME], depth=1)) == ["Bo-WORKS AT-The  ACME "]
    assert told(store.get_rel_map([ACME], depth=2)) == ["Bo-WORKS AT-The  ACME ", "Ada-KNOWS-Bo"]
    assert told(store.get_rel_map([ACME], depth=9))[2:] == ["chunk-1-MENTIONS-Ada"]
    assert told(store.get_rel_map([ACME], depth=9, limit=1)) == ["Bo-WORKS AT-The  ACME "]
    assert told(store.get_rel_map([ACME], depth=9, ignore_rels=["KNOWS"])) == ["Bo-WORKS AT-The  ACME "]
    assert store.get_rel_map([ACME], depth=0) == []


@pytest.mark.case("surfaces", 747)
@pytest.mark.case("surfaces", 752)
async def test_vectors_find_nodes(store: OmnigraphPropertyGraphStore) -> None:
    found, scores = store.vector_query(VectorStoreQuery(query_embedding=[0.0, 1.0], similarity_top_k=2))
    later = await store.avector_query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=1))

    assert found == [BO, CHUNK]
    assert scores == [pytest.approx(1.0), pytest.approx(0.75)]
    assert later[0] == [ACME]
    assert later[1] == [pytest.approx(1.0)]
    assert await store.aget(ids=["Bo"]) == [BO]
    assert len(await store.aget_triplets(ids=["Bo"])) == len(await store.aget_rel_map([BO], depth=1)) == 2
    with pytest.raises(BadRequest, match="a query by vector needs one"):
        store.vector_query(VectorStoreQuery())
    with pytest.raises(BadRequest):
        store.vector_query(VectorStoreQuery(query_embedding=[1.0]))
    filters = MetadataFilters(filters=[MetadataFilter(key="page", value=3)])
    with pytest.raises(UnsupportedError, match="has no filters"):
        store.vector_query(VectorStoreQuery(query_embedding=[0.0, 1.0], filters=filters))


@pytest.mark.case("surfaces", 747)
@pytest.mark.case("surfaces", 752)
def test_deletion_removes_what_it_names(store: OmnigraphPropertyGraphStore) -> None:
    store.delete()
    store.delete(relation_names=["KNOWS"])
    assert told(store.get_triplets(ids=["Ada", "Bo"])) == ["Bo-WORKS AT-The  ACME ", "chunk-1-MENTIONS-Ada"]

    store.delete(entity_names=['The "ACME"'])
    store.delete(properties={"page": 3})
    assert store.get() == [ADA, BO]
    assert told(store.get_triplets(ids=["Ada", "Bo"])) == []

    store.delete(ids=["Ada", "Bo", "none"])
    assert store.get() == []


@pytest.mark.case("surfaces", 747)
def test_ends_that_are_not_there_are_made_and_never_overwritten(graph: Graph) -> None:
    store = OmnigraphPropertyGraphStore(graph)
    store.upsert_nodes([ADA])

    store.upsert_relations([Relation(label="SAW", source_id="Ada", target_id='a "b"'), KNOWS])
    store.upsert_relations([Relation(label="SAW", source_id="Ada", target_id='a "b"')])

    assert store.get(ids=["Ada"]) == [ADA]
    assert [node.id for node in store.get()] == ["Ada", "Bo", "a  b "]
    assert len(store.get_triplets(ids=["Ada"])) == 2


@pytest.mark.case("surfaces", 747)
@pytest.mark.case("surfaces", 752)
def test_queries_read_and_never_write(store: OmnigraphPropertyGraphStore) -> None:
    text = "query q($k: String) { match { $n: Entity { key: $k } $n related $m } return { $m.text as text } }"

    assert store.structured_query(text, {"k": "Ada"}) == [{"text": "Bo"}, {"text": "Ada knows Bo"}][:1]
    assert "node Entity" in store.get_schema_str(refresh=True)
    with pytest.raises(BadRequest):
        store.structured_query('query q() { delete Entity where key = "Ada" }')
    with pytest.raises(BadRequest, match="the properties of 'x' cannot be stored as JSON"):
        store.upsert_nodes([EntityNode(name="x", properties={"odd": object()})])


@pytest.mark.case("surfaces", 747)
def test_an_index_keeps_its_texts_and_entities_in_the_graph(graph: Graph) -> None:
    store = OmnigraphPropertyGraphStore(graph)
    texts = [TextNode(id_="t1", text="a cat"), TextNode(id_="t2", text="a dog", metadata={"page": 1})]
    texts[0].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="t2")
    tom = EntityNode(
        name="Tom",
        embedding=WordEmbedding().get_text_embedding("cat"),
        properties={"triplet_source_id": "t1"},
    )

    index = PropertyGraphIndex(
        nodes=texts,
        llm=MockLLM(),
        kg_extractors=[ImplicitPathExtractor()],
        property_graph_store=store,
        embed_model=WordEmbedding(),
    )
    store.upsert_nodes([tom])
    store.upsert_relations([Relation(label="IS A", source_id="Tom", target_id="cat")])
    found = VectorContextRetriever(store, embed_model=WordEmbedding(), include_text=False).retrieve("cat")

    assert {item.node.get_content() for item in found} >= {"Tom -> IS A -> cat"}
    assert told(store.get_triplets(ids=["t2"])) == ["t1-NEXT-t2"]
    assert [item.get_content() for item in store.get_llama_nodes(["t1", "t2"])] == ["a cat", "a dog"]
    index.property_graph_store.delete_llama_nodes(["t1"])
    assert [item.id for item in store.get()] == ["cat", "t2"]
