"""The notes beside the manifests of an object store, and what stands in them."""

import obstore
import pytest

from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.head_note import HEAD_NOTE, note_file
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.recent_rows import ROWS_MAX
from tests.support.proxy import StoreProxy
from tests.support.s3 import new_root
from tests.support.seam import internals
from tests.support.store_people import COUNT, INSERT, SCHEMA, insert, people, persons

pytestmark = pytest.mark.slow  # starts a server


@pytest.mark.case("engine", 443)
def test_a_commit_leaves_a_note_and_a_reader_none(uri: str, proxy: StoreProxy) -> None:
    store = ObjectStore(GraphRoot.parse(uri))
    assert store.has(HEAD_NOTE)
    store.delete(HEAD_NOTE)

    with open_graph(uri, mode="ro") as reader:
        assert persons(reader) == 1
    assert not store.has(HEAD_NOTE)

    with open_graph(uri) as writer:
        insert(writer, "bob")
    assert store.has(HEAD_NOTE)
    with open_graph(uri, mode="ro") as reader:
        assert persons(reader) == 2


@pytest.mark.case("engine", 442)
def test_a_note_that_is_no_text_is_no_note(uri: str) -> None:
    store = ObjectStore(GraphRoot.parse(uri))
    obstore.put(store._store, store._key(HEAD_NOTE), b"\xff\xfe")

    with open_graph(uri, mode="ro") as reader:
        assert persons(reader) == 1
        assert len(reader.commits()) == 2


@pytest.mark.case("engine", 441)
def test_the_past_is_there_on_a_handle_that_began_with_a_note(uri: str) -> None:
    with open_graph(uri) as graph:
        before = graph.snapshot()
        insert(graph, "bob")

    with open_graph(uri) as graph:
        assert persons(graph) == 2
        assert graph.query(COUNT, snapshot=before.head.graph_commit_id).rows[0]["n"] == 1
        insert(graph, "cas")
        assert [commit.manifest_version for commit in graph.commits()] == [4, 3, 2, 1]


@pytest.mark.case("engine", 853)
def test_the_note_of_a_branch_goes_with_it(uri: str) -> None:
    store = ObjectStore(GraphRoot.parse(uri))
    with open_graph(uri) as graph:
        graph.create_branch("side")
        graph.mutate(INSERT, params={"h": "bob"}, branch="side")
        parts = internals(graph).parts
        assert parts.coordinator.notes is not None
        parts.coordinator.notes.finish()
        note = note_file(parts.branches.resolve("side").ref)
        assert store.has(note)

        graph.delete_branch("side")

    assert not store.has(note)


@pytest.mark.case("engine", 445)
@pytest.mark.parametrize("is_deleted", [True, False])
def test_rows_in_memory_come_in_the_order_of_the_files(
    endpoint: str, proxy: StoreProxy, *, is_deleted: bool
) -> None:
    uri = new_root(endpoint).uri
    with init(uri, SCHEMA) as graph:
        insert(graph, "ann")
        graph.create_branch("side")
        graph.mutate(INSERT, params={"h": "bob"}, branch="side")
    with open_graph(uri) as graph:
        insert(graph, "cid")
        if is_deleted:
            graph.load(people("dee", "eve", "fay"), "append", index=False)
            graph.mutate('query m() { delete Person where handle = "eve" }')
        else:
            graph.load(people(*(f"p{number}" for number in range(ROWS_MAX + 1))), "append", index=False)
        insert(graph, "gus")

    with open_graph(uri) as graph:  # the note has rows of fragments on both sides of one that it lacks
        persons_before = persons(graph)
        assert graph.merge("side").commit is not None
        assert persons(graph) == persons_before + 1
