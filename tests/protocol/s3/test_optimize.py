"""Optimize on an S3-compatible server: tables at once, the same commit, the same recovery."""

import threading

import pytest

import omnigraph
from omnigraph.core.errors import PendingRecovery, RecoveryRequired
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.storage.control.uri import GraphRoot
from tests.support.books import contents_of
from tests.support.protocol import BEFORE, SCHEMA, TABLE_KEYS, records

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(root: GraphRoot) -> Graph:
    """A graph with every table in several files, and indexes that cover the first."""
    graph = omnigraph.init(root.uri, SCHEMA)
    lines = records(BEFORE).splitlines(keepends=True)
    graph.load(b"".join(lines), "append")
    for line in lines:
        if b'"type"' in line:
            graph.load(line, "merge", index=False)
    graph.mutate(
        'query add() { insert Knows { from: "cid", to: "ann" } insert WorksAt { from: "cid", to: "ibex" } }'
    )
    return graph


def test_every_table_is_brought_into_order_in_one_commit(graph: Graph, root: GraphRoot) -> None:
    before, count = contents_of(graph), len(graph.commits())

    result = graph.optimize()

    assert result.commit is not None
    assert result.commit.actor_id == MAINTENANCE_ACTOR
    assert len(graph.commits()) == count + 1
    assert all(table.committed for table in result.tables[:-1])
    assert graph.optimize().commit is None
    with omnigraph.open(root.uri, mode="ro") as reader:
        assert contents_of(reader) == before
        assert {index.coverage for table in reader.index_status() for index in table.indexes} == {"indexed"}


def test_a_branch_is_brought_into_order_and_main_is_left_alone(graph: Graph, root: GraphRoot) -> None:
    graph.create_branch("june")
    for name in ("dan", "eve"):
        graph.mutate(f'query add() {{ insert Person {{ name: "{name}" }} }}', branch="june")
    before, pins = graph.table("Person", branch="june").to_pylist(), graph.snapshot().entries

    with failpoint("optimize.post_table", "raise"), pytest.raises(RecoveryRequired):
        graph.optimize(branch="june")
    graph.refresh()
    graph.optimize(branch="june")

    assert graph.optimize(branch="june").commit is None
    assert [table.table_key for table in graph.optimize(branch="june").tables] == [
        "node:Person",
        "__manifest",
    ]
    with omnigraph.open(root.uri, mode="ro") as reader:
        after = reader.table("Person", branch="june").to_pylist()
        assert sorted(after, key=str) == sorted(before, key=str)
        assert reader.snapshot().entries == pins
    (record,) = graph.recoveries()
    assert (record.recovery_kind.wire, record.writer_kind) == ("rolled_forward", "Optimize")


@pytest.mark.case("engine", 495)
def test_one_table_that_fails_waits_for_the_others_and_all_go_forward(graph: Graph, root: GraphRoot) -> None:
    before, failed, ended = contents_of(graph), threading.Event(), list[bool]()
    lock = threading.Lock()

    def fail_once() -> None:
        with lock:
            if not failed.is_set():
                failed.set()
                raise InjectedFault("one table")
            ended.append(True)

    with failpoint("optimize.post_compact_pre_reindex", call=fail_once), pytest.raises(RecoveryRequired):
        graph.optimize()

    assert len(ended) == len(TABLE_KEYS) - 1, "the others have ended first"
    with pytest.raises(PendingRecovery):
        graph.optimize()
    graph.refresh()
    (record,) = graph.recoveries()
    assert (record.recovery_kind.wire, record.writer_kind) == ("rolled_forward", "Optimize")
    assert contents_of(graph) == before
    graph.optimize()
    assert graph.optimize().commit is None
    with omnigraph.open(root.uri) as other:
        assert contents_of(other) == before
