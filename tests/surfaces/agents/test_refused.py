"""What looks like a list, a number, a name or a text of a query and is none: refused, and nothing changes."""

from collections.abc import Callable
from enum import Enum
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_community.graphs.graph_document import GraphDocument, Node, Relationship
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery

from omnigraph import BadRequest, Graph, ParseError
from omnigraph.agents.langchain import OmnigraphChatHistory, OmnigraphGraphStore, OmnigraphVectorStore
from omnigraph.agents.llamaindex import (
    OmnigraphChatStore,
    OmnigraphNodeRetriever,
    OmnigraphNodeStore,
    OmnigraphPropertyGraphStore,
)
from tests.surfaces.agents.conftest import Either
from tests.surfaces.agents.langchain_words import WordEmbeddings

NO_LISTS = [
    ("12", "a str"),
    (b"12", "a bytes"),
    ({"1": 1}, "a dict"),
    (5, "an int"),
    (nan, "a float"),
    (object(), "an object"),
]
NO_NUMBERS = [nan, inf, -inf, np.float32("nan"), np.float64("inf"), [1.0, nan], np.array([inf])]


class Odd(Enum):
    """A number that is none, by a name."""

    VALUE = nan


QUERY = "query q() { match { $n: Document } return { $n.key as key } }"


def found(nodes: list[Node], relations: list[Relationship] | None = None) -> list[GraphDocument]:
    return [GraphDocument(nodes=nodes, relationships=relations or [], source=Document(page_content="x"))]


@pytest.mark.case("surfaces", 921)
@pytest.mark.parametrize(("wrong", "kind"), [*NO_LISTS, (None, "None")])
def test_what_is_no_list_of_texts_deletes_and_finds_nothing_in_a_vector_store(
    graph: Graph, wrong: object, kind: str
) -> None:
    given: Any = wrong
    numbers: Any = [1]
    store = OmnigraphVectorStore(graph, WordEmbeddings())
    store.add_texts(["cat", "dog", "sea"], ids=["1", "2", "12"])
    head = graph.commits(limit=1)

    with pytest.raises(
        BadRequest, match="delete needs ids" if given is None else f"ids must be .* not {kind}$"
    ):
        store.delete(given)
    with pytest.raises(BadRequest, match=f"^ids must be a list of texts, not {kind}$"):
        store.get_by_ids(given)
    with pytest.raises(BadRequest, match=f"^texts must be a list of texts, not {kind}$"):
        store.add_texts(given)
    if given is not None:
        with pytest.raises(BadRequest, match=f"^ids must be a list of texts, not {kind}$"):
            store.add_texts(["cat", "dog"], ids=given)
    for call in (store.delete, store.get_by_ids):
        with pytest.raises(BadRequest, match="ids must be a list of texts, and has an int"):
            call(numbers)
    with pytest.raises(BadRequest, match="ids must be a list of texts, and has a list of int"):
        store.add_texts(["a"], ids=[[1]])  # type: ignore[list-item]

    assert graph.commits(limit=1) == head
    assert [item.id for item in store.get_by_ids(["1", "2", "12"])] == ["1", "2", "12"]
    assert len(store.add_texts((text for text in ["a", "b"]), ids=["new", None])) == 2
    assert store.delete(iter(["1"])) is True  # type: ignore[arg-type]
    assert [item.id for item in store.get_by_ids(("1", "2", "12"))] == ["2", "12"]


@pytest.mark.case("surfaces", 921)
@pytest.mark.parametrize(("wrong", "kind"), NO_LISTS)
def test_what_is_no_list_of_texts_deletes_and_finds_nothing_in_stores_of_llamaindex(
    graph: Graph, wrong: object, kind: str
) -> None:
    given: Any = wrong
    nodes, knowledge = OmnigraphNodeStore(graph), OmnigraphPropertyGraphStore(graph)
    nodes.add([TextNode(id_=name, text="cat", embedding=[1.0, 0.0]) for name in ("1", "2")])
    knowledge.upsert_nodes([EntityNode(name=name) for name in ("1", "2")])
    knowledge.upsert_relations([Relation(label="1", source_id="1", target_id="2")])
    head = graph.commits(limit=1)

    def refused(name: str, call: Callable[..., object], **more: object) -> None:
        with pytest.raises(BadRequest, match=f"^{name} must be a list of texts, not {kind}$"):
            call(**{name: given}, **more)

    for call in (knowledge.delete, knowledge.get_triplets):
        for name in ("entity_names", "relation_names", "ids"):
            refused(name, call)
    refused("ids", knowledge.get)
    refused("ignore_rels", knowledge.get_rel_map, graph_nodes=[EntityNode(name="1")])
    refused("node_ids", nodes.delete_nodes)
    refused("node_ids", nodes.get_nodes)
    for name in ("node_ids", "doc_ids"):
        refused(name, lambda **told: nodes.query(VectorStoreQuery(query_embedding=[1.0, 0.0], **told)))
    with pytest.raises(BadRequest, match=f"^follow must be a list of texts, not {kind}$"):
        OmnigraphNodeRetriever(nodes, ranking="text", follow=given).retrieve("cat")

    assert graph.commits(limit=1) == head
    assert [node.id for node in knowledge.get(ids=["1", "2"])] == ["1", "2"]
    assert len(knowledge.get_rel_map([EntityNode(name="1")], ignore_rels=["12"])) == 1
    assert [node.node_id for node in nodes.get_nodes(["1", "2"])] == ["1", "2"]


@pytest.mark.case("surfaces", 922)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_never_stored_as_null(graph: Graph, value: object) -> None:
    knowledge, typed = OmnigraphPropertyGraphStore(graph), OmnigraphGraphStore(graph)
    store = OmnigraphVectorStore(graph, WordEmbeddings())
    told = "(nan|inf) is not a number that a graph holds: give None where nothing is known$"
    odd: Any = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    vector = odd if isinstance(odd, list) else [odd]
    ada, head = Node(id="Ada", type="Person"), graph.commits(limit=1)

    with pytest.raises(BadRequest, match=f"^Person.score: -?{told}"):
        typed.add_graph_documents(found([Node(id="Bo", type="Person", properties={"score": odd})]))
    knows = Relationship(source=ada, target=ada, type="knows", properties={"since": odd})
    with pytest.raises(BadRequest, match=f"^Knows.since: -?{told}"):
        typed.add_graph_documents(found([ada], [knows]))
    with pytest.raises(BadRequest, match=f"^the vector of 'Ada': -?{told}"):
        knowledge.upsert_nodes([EntityNode(name="Ada", embedding=vector)])
    with pytest.raises(BadRequest, match=f"^the vector of 'a': -?{told}"):
        OmnigraphNodeStore(graph).add([TextNode(id_="a", text="a", embedding=vector)])
    assert graph.commits(limit=1) == head

    graph.apply_schema(
        "node Document { key: String @key text: String embedding: Vector(6)? metadata: String? "
        "score: F64? scores: [F64]? }"
    )
    head = graph.commits(limit=1)
    name = "scores" if isinstance(odd, list) else "score"
    with pytest.raises(BadRequest, match=f"^Document.score: {told}"):
        store.add_texts(["cat"], [{"score": Odd.VALUE}])
    with pytest.raises(BadRequest, match=f"^Document.{name}: -?{told}"):
        store.add_texts(["cat", "dog"], [{name: [1.0] if name == "scores" else 1.0}, {name: value}])
    assert graph.commits(limit=1) == head


@pytest.mark.case("surfaces", 923)
@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"First Name": "one", "first_name": "two"}, "'First Name' and 'first_name' .* first_name: rename"),
        ({"Key": "one", "key": "two"}, "'Key' and 'key' would both be called key: rename"),
        ({"key": "one", "key_": "two"}, "'key' and 'key_' would both be called key_: rename"),
        ({"id": "one", "id_": "two"}, "'id' and 'id_' would both be called id_: rename"),
    ],
)
def test_two_properties_of_one_name_are_refused(graph: Graph, properties: dict[str, Any], told: str) -> None:
    store = OmnigraphGraphStore(graph)
    head = graph.commits(limit=1)

    with pytest.raises(BadRequest, match=f"^the properties {told} one of them$"):
        store.add_graph_documents(found([Node(id="Ada", type="Person", properties=properties)]))

    assert graph.commits(limit=1) == head
    one, two = properties
    store.add_graph_documents(found([Node(id="Ada", type="Person", properties={one: None, two: "two"})]))
    row = store.query("query q() { match { $p: Person } return { $p } }")[0]["p"]
    assert "two" in row.values()


@pytest.mark.case("surfaces", 924)
def test_a_text_of_a_query_is_never_the_name_of_a_file(
    either: Either, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    OmnigraphVectorStore(either, WordEmbeddings()).add_texts(["cat"], ids=["a"])
    (tmp_path / "ok.gq").write_text(QUERY)
    (tmp_path / "secret.gq").write_text("SECRETWORD and more")
    monkeypatch.chdir(tmp_path)
    asks = OmnigraphGraphStore(either).query, OmnigraphPropertyGraphStore(either).structured_query

    paths: list[Any] = [tmp_path / "ok.gq", None, 1, b"x"]
    for ask in asks:
        assert ask(QUERY) == [{"key": "a"}]
        for name in ("ok.gq", "secret.gq", str(tmp_path / "ok.gq"), "none.gq"):
            with pytest.raises(ParseError) as refused:
                ask(name)
            assert "SECRETWORD" not in str(refused.value)
        for path in paths:
            with pytest.raises(BadRequest, match="query must be a text, not"):
                ask(path)


@pytest.mark.case("surfaces", 925)
def test_the_keys_of_chats_are_told_beside_what_is_no_chat(graph: Graph) -> None:
    store = OmnigraphChatStore(graph)
    for key in ("a", "é/b", "merged"):
        store.add_message(key, ChatMessage("hi"))
    store.merge("merged", delete_branch=True)
    for thread in ("other", "other merged"):
        OmnigraphChatHistory(graph, thread).add_messages([HumanMessage("hi")])
    OmnigraphChatHistory(graph, "other merged").merge(delete_branch=True)
    long = "q" * 150
    for name in (long, "_ff", "_61", "a/b", "_00"):
        graph.create_branch(f"thread/{name}", "thread/a")
    row = '{{"type": "ChatMessage", "data": {{"key": "{0}", "thread": "{0}", "position": 0, "role": "user", \
"text": "", "format": "llamaindex", "body": "", "created_at": 0}}}}'
    graph.load(row.format(long).encode(), "append")

    assert store.get_keys() == ["a", "merged", "é/b"]
    assert [len(store.get_messages(key)) for key in store.get_keys()] == [1, 1, 1]


@pytest.mark.case("surfaces", 926)
def test_wrong_kinds_are_refused_and_nothing_is_written(graph: Graph) -> None:
    typed, knowledge = OmnigraphGraphStore(graph), OmnigraphPropertyGraphStore(graph)
    chats, history = OmnigraphChatStore(graph), OmnigraphChatHistory(graph, "b")
    chats.add_message("a", ChatMessage("hi"))
    wrong: Any = [1]
    branches, head = graph.branches(), graph.commits(limit=1)

    with pytest.raises(BadRequest, match="a graph document has nodes and relationships, and an int has not"):
        typed.add_graph_documents(wrong)
    with pytest.raises(BadRequest, match="an int is neither an EntityNode nor a ChunkNode"):
        knowledge.upsert_nodes(wrong)
    for limit in (None, "1", -1):
        with pytest.raises(BadRequest, match="limit must be a whole number from 0 on"):
            knowledge.get_rel_map([EntityNode(name="1")], limit=limit)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="a chat history has messages of LangChain, and an int is none"):
        history.add_messages(wrong)
    for place in (None, "0", True, nan):
        with pytest.raises(BadRequest, match="idx must be a whole number, not"):
            chats.delete_message("a", place)  # type: ignore[arg-type]

    assert chats.delete_message("a", -1) is None
    assert chats.delete_message("a", 1) is None
    assert (graph.branches(), graph.commits(limit=1)) == (branches, head)
    assert len(chats.get_messages("a")) == 1
