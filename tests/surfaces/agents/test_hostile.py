"""Texts that look like queries: they are stored and found as they are, and names that do are refused."""

import pytest
from langchain_community.graphs.graph_document import GraphDocument
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from omnigraph import BadRequest, Graph
from omnigraph.agents.langchain import (
    OmnigraphChatHistory,
    OmnigraphGraphStore,
    OmnigraphRetriever,
    OmnigraphVectorStore,
    TextNames,
)
from omnigraph.agents.llamaindex import (
    OmnigraphChatStore,
    OmnigraphNodeStore,
    OmnigraphPropertyGraphStore,
)
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.langchain_words import WordEmbeddings
from tests.surfaces.agents.test_langchain_knowledge import node as found_node
from tests.surfaces.agents.test_langchain_knowledge import relation

TEXTS = [
    '" } return { $d } } query x() { delete Document where key = "',
    "'; // comment",
    '$p0 {{}} \\" \\n',
    "line\nbreak\ttab\u2028",
    '}\n}\n@default("x")',
    "# ${x} %s {0}",
]


@pytest.mark.case("surfaces", 750)
@pytest.mark.case("surfaces", 752)
def test_texts_that_look_like_queries_are_only_texts(either: Either) -> None:
    store = OmnigraphVectorStore(either, WordEmbeddings())
    documents = [Document(id=text, page_content=text, metadata={text: text}) for text in TEXTS]

    store.add_documents(documents)
    found = store.get_by_ids(TEXTS)
    filtered = [store.similarity_search(text, k=9, filter={"key": text}) for text in TEXTS]
    among = store.similarity_search("cat", k=9, filter={"text": {"$in": TEXTS[:2]}})
    words = [OmnigraphRetriever(store=store, k=9).invoke(text) for text in TEXTS]
    store.delete(TEXTS[:1])

    assert found == documents
    assert filtered == [[document] for document in documents]
    assert sorted(item.id or "" for item in among) == sorted(TEXTS[:2])
    assert [len(item) for item in words] == [len(TEXTS)] * len(TEXTS)
    assert store.get_by_ids(TEXTS) == documents[1:]


@pytest.mark.case("surfaces", 750)
def test_labels_and_threads_that_look_like_queries_are_only_labels_and_threads(graph: Graph) -> None:
    store = OmnigraphGraphStore(graph)
    for place, text in enumerate(TEXTS):
        nodes = [
            found_node(text, "Person", {"told": text}),
            found_node(f"other {text}", "Person", {f"p{place} {text}": text}),
        ]
        says = [relation(nodes[0], nodes[1], f"Says {text}")]
        store.add_graph_documents([GraphDocument(nodes=nodes, relationships=says, source=Document(""))])
        history = OmnigraphChatHistory(graph, text)
        history.add_messages([HumanMessage(text)])
        assert [message.text for message in history.messages] == [text]
        history.clear()
        assert history.messages == []

    rows = store.query("query all() { match { $p: Person } return { $p.key as key $p.told as told } }")
    assert {row["key"]: row["told"] for row in rows} == {
        **{text: text for text in TEXTS},
        **{f"other {text}": None for text in TEXTS},
    }
    assert set(graph.catalog.nodes) == {"Person", "ChatMessage"}


@pytest.mark.case("surfaces", 750)
@pytest.mark.case("surfaces", 752)
def test_nodes_relations_and_chats_that_look_like_queries_are_only_texts(either: Either) -> None:
    nodes, knowledge, chats = (
        OmnigraphNodeStore(either),
        OmnigraphPropertyGraphStore(either),
        OmnigraphChatStore(either),
    )
    stored = [TextNode(id_=text, text=text, metadata={text: text}, embedding=[1.0, 0.0]) for text in TEXTS]
    nodes.add(stored)
    found = [TextNode(**(dict(node) | {"embedding": None})) for node in stored]
    entities = [EntityNode(name=text, label=text, properties={text: text, "n": 1}) for text in TEXTS]
    knowledge.upsert_nodes(entities)
    knowledge.upsert_relations(
        [Relation(label=item.name, source_id=item.id, target_id=item.id) for item in entities]
    )

    for text, node, entity in zip(TEXTS, found, entities, strict=True):
        equal = MetadataFilters(filters=[MetadataFilter(key="text", value=text, operator=FilterOperator.EQ)])
        assert nodes.get_nodes(filters=equal) == [node]
        assert knowledge.get(ids=[entity.id]) == [entity]
        assert knowledge.get(properties={text: text}) == [entity]
        assert [item[1].label for item in knowledge.get_triplets(entity_names=[text])] == [text]
        assert [item[1].label for item in knowledge.get_triplets(relation_names=[text])] == [text]
        chats.add_message(text, ChatMessage(text))
        assert chats.get_messages(text)[0].content == text
    nodes.delete_nodes(TEXTS[:1])
    knowledge.delete(entity_names=TEXTS[:1], relation_names=TEXTS[1:2])
    chats.delete_messages(TEXTS[0])

    assert {node.node_id for node in nodes.get_nodes()} == set(TEXTS[1:])
    assert {node.id for node in knowledge.get()} == {entity.id for entity in entities[1:]}
    assert len(knowledge.get_triplets(relation_names=TEXTS)) == len(TEXTS) - 2
    assert chats.get_keys() == sorted(TEXTS[1:])


@pytest.mark.case("surfaces", 750)
@pytest.mark.parametrize("name", [*TEXTS, "page ", "page = 1 $d.page", "Page", 7, None])
def test_a_name_that_the_type_has_not_is_refused(graph: Graph, name: str) -> None:
    store = OmnigraphVectorStore(graph, WordEmbeddings())
    store.add_texts(["cat"], ids=["a"])
    head = graph.commits(limit=1)

    with pytest.raises(BadRequest, match=r"Document has no property .* to filter by"):
        store.similarity_search("cat", filter={name: "x"})
    with pytest.raises(BadRequest, match="there is no edge type"):
        OmnigraphRetriever(store=store, follow=[name] if isinstance(name, str) else ["x"]).invoke("cat")
    if isinstance(name, str):
        for names in (TextNames(f"{name} "), TextNames("Other", text=name), TextNames("Other", vector=name)):
            with pytest.raises(BadRequest, match=r"can be called|is no name of"):
                OmnigraphVectorStore(graph, WordEmbeddings(), names=names).add_texts(["cat"])

    assert graph.commits(limit=1) == head
