"""Cleanup beside others: killed at any place, while others write and read, with what dead writers left."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from omnigraph.commit.publish import HORIZON_S
from omnigraph.commit.reclaim import ORPHAN_GRACE_S
from omnigraph.commit.recovery.quiet import refuse_pending
from omnigraph.core.errors import PendingRecovery
from omnigraph.core.failpoint import EXIT_STATUS, failpoint
from omnigraph.graph.graph import Graph
from tests.engine.branches.steps import insert, names
from tests.engine.cleanup.steps import PERSON, later, on_disk, shown, update
from tests.support.engine import (
    PEOPLE,
    assert_settled,
    foreign,
    new_graph,
    node,
    recovery_files,
    reopen,
    table_path,
)
from tests.support.protocol import go_on, sidecars, stopped
from tests.support.protocol import new_graph as protocol_graph
from tests.support.seam import internals
from tests.support.system import Script

CLEAN = f"""
import sys
import omnigraph as og
from omnigraph.core.clock import now_micros
graph = og.open(sys.argv[1], upkeep=False)
parts = graph._graph.parts
object.__setattr__(parts, "clock", lambda: now_micros() + {int(ORPHAN_GRACE_S + 60)} * 1_000_000)
print(graph.cleanup(int(sys.argv[2])).failed, flush=True)
"""
CLEAN_ON = """
import sys
import omnigraph as og
with og.open(sys.argv[1], upkeep=False) as graph:
    print("ready", flush=True)
    for _ in range(int(sys.argv[2])):
        failed = graph.cleanup(1).failed
        assert not failed, failed
print("done", flush=True)
"""
WRITE_ON = """
import sys
import omnigraph as og
who, times, branch = sys.argv[2], int(sys.argv[3]), sys.argv[4]
with og.open(sys.argv[1]) as graph:
    print("ready", flush=True)
    for number in range(times):
        for _ in range(50):
            try:
                graph.mutate('query q() { insert Person { name: "' + f"{who}{number}" + '", age: 1 } }',
                             branch=branch)
                break
            except og.ConflictError as error:
                assert not isinstance(error, og.DriftNeedsRepair), error
        source = "query q() { match { $p: Person } return { $p.name as name } }"
        found = graph.query(source, branch=branch).rows
        mine = [row["name"] for row in found if row["name"].startswith(who)]
        assert len(mine) == number + 1, (mine, number)
print("done", flush=True)
"""
PLACES = [
    "cleanup.post_check_pre_gates",
    "cleanup.resolve_branch_snapshot",
    "cleanup.reconcile_fork",
    "cleanup.table_gc",
    "cleanup.post_versions_pre_files",
    "trim.pre_remove",
]


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Two branches with forks of their own, what is left of a deleted one, and many versions."""
    graph = new_graph(
        tmp_path / "graph", PEOPLE, node("Person", name="ann", age=1), node("Company", name="acme")
    )
    for name in ("june", "july", "gone"):
        graph.create_branch(name)
        insert(graph, f"of-{name}", name)
    update(graph, 12)
    update(graph, 12, "june")
    with (
        failpoint("branch_delete.post_control_pre_refs", "raise"),
        pytest.raises(Exception, match="injected"),
    ):
        graph.delete_branch("gone")
    return graph


def leftovers(graph: Graph) -> tuple[int, int]:
    """Return how many refs of the persons and of the manifest there are."""
    parts = internals(graph).parts
    address = parts.address_of(graph.snapshot().entry(PERSON).location, None)
    return len(parts.store.list_refs(address)), len(parts.store.list_refs(parts.coordinator.address()))


@pytest.mark.case("engine", 505)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("skipped", [0, *(pytest.param(times, marks=pytest.mark.slow) for times in (1, 3))])
def test_killed_at_any_place_nothing_is_lost_and_the_next_run_converges(
    graph: Graph, place: str, skipped: int
) -> None:
    before = shown(graph)
    action = f"{place}=skip:{skipped},exit"
    with Script(CLEAN, graph.uri, 1, OMNIGRAPH_FAILPOINTS=action) as script:
        assert script.wait() in {EXIT_STATUS, 0}  # some places are passed only once or twice

    with reopen(graph, upkeep=False) as other:
        assert shown(other) == before
        assert other.verify().is_whole
        insert(other, "after")
    with Script(CLEAN, graph.uri, 1) as script:
        assert script.read_line() == "()"
        assert script.wait() == 0

    with reopen(graph) as other:
        insert(other, "again", "june")
        assert {name: len(rows["Person"]) for name, rows in shown(other).items()} == {
            name: len(rows["Person"]) + {"main": 1, "june": 1}.get(name, 0) for name, rows in before.items()
        }
        assert other.verify().is_whole
        assert_settled(other)
        assert leftovers(other) == (2, 2)
        later(other, ORPHAN_GRACE_S + 120)
        other.cleanup(1)
        data = {path.name for path in (table_path(other, PERSON) / "data").glob("*.lance")}
        with Script(CLEAN, graph.uri, 1) as script:
            assert script.wait() == 0
        assert {path.name for path in (table_path(other, PERSON) / "data").glob("*.lance")} == data
        assert_settled(other)


@pytest.mark.case("engine", 506)
@pytest.mark.slow
def test_cleanups_in_a_loop_beside_writers_and_readers_of_other_processes(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "3")
    writers = [("wa", "main"), ("wb", "main"), ("wc", "june")]
    with ExitStack() as running:
        cleaner = running.enter_context(Script(CLEAN_ON, graph.uri, 25))
        scripts = [
            running.enter_context(Script(WRITE_ON, graph.uri, who, 40, branch)) for who, branch in writers
        ]
        assert {script.read_line() for script in (cleaner, *scripts)} == {"ready"}
        assert [script.read_line() for script in (cleaner, *scripts)] == ["done"] * 4

    with reopen(graph) as other:
        found = {branch: set(names(other, branch)) for branch in ("main", "june")}
        for who, branch in writers:
            assert {f"{who}{number}" for number in range(40)} <= found[branch]
        assert_settled(other)
        assert other.verify().is_whole


@pytest.mark.case("engine", 506)
def test_a_warm_handle_of_another_process_reads_and_writes_on(graph: Graph) -> None:
    program = """
import sys
import omnigraph as og
graph = og.open(sys.argv[1], upkeep=False)
source = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } }"
def show():
    print(sorted(row["name"] for row in graph.query(source).rows), flush=True)
show()
for line in sys.stdin:
    show()
    graph.mutate('query q() { insert Person { name: "' + line.strip() + '" } }')
    show()
"""
    with Script(program, graph.uri) as warm:
        assert warm.read_line() == "['ann']"
        expected = ["ann"]
        for number in range(3):
            update(graph, 5)
            insert(graph, f"p{number}")
            later(graph, HORIZON_S + 60)
            assert graph.cleanup(1).failed == ()
            warm.write_line(f"w{number}")
            expected = sorted([*expected, f"p{number}"])
            assert warm.read_line() == str(expected)
            expected = sorted([*expected, f"w{number}"])
            assert warm.read_line() == str(expected)

    assert names(graph) == expected


@pytest.mark.case("engine", 218)
@pytest.mark.case("surfaces", 105)
def test_what_a_dead_writer_left_is_refused(graph: Graph) -> None:
    other = foreign(graph)
    with failpoint("write.post_sidecar_pre_commit", "raise"), pytest.raises(Exception, match="injected"):
        insert(graph, "lost")
    assert recovery_files(graph)
    before = on_disk(table_path(graph, PERSON))

    with pytest.raises(PendingRecovery, match="needs a graph without pending recovery") as refused:
        other.cleanup(1)

    assert "reopen it read-write first" in str(refused.value)
    assert on_disk(table_path(graph, PERSON)) == before
    with reopen(graph, upkeep=False) as healed:
        assert healed.cleanup(1).failed == ()


@pytest.mark.case("engine", 218)
def test_a_dead_writer_is_not_awaited(graph: Graph) -> None:
    with failpoint("write.post_sidecar_pre_commit", "raise"), pytest.raises(Exception, match="injected"):
        insert(graph, "lost")

    with pytest.raises(PendingRecovery) as refused:
        refuse_pending(internals(graph).parts, "cleanup", pause=lambda _: pytest.fail("it waited"))

    assert [f"{operation_id}.json" for operation_id in refused.value.operation_ids] == [
        name for name in recovery_files(graph) if name.endswith(".json")
    ]


@pytest.mark.case("engine", 218)
def test_a_live_writer_is_awaited(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    protocol_graph(root).close()
    with stopped(root, "update", "write.post_finalize_pre_publisher=") as script:
        assert sidecars(root)
        with reopen(root, upkeep=False) as graph:

            def let_it_go(_seconds: float) -> None:
                go_on(script)

            refuse_pending(internals(graph).parts, "cleanup", pause=let_it_go)
            assert sidecars(root) == ()
            assert graph.cleanup(1).failed == ()
            assert_settled(graph)


def test_a_live_writer_that_does_not_finish_is_not_awaited_for_ever(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    protocol_graph(root).close()
    with stopped(root, "update", "write.post_finalize_pre_publisher="), reopen(root) as graph:
        passed = iter([0.0, 10.0, 29.0, 31.0, 32.0])
        waits: list[float] = []

        with pytest.raises(PendingRecovery):
            refuse_pending(internals(graph).parts, "cleanup", clock=lambda: next(passed), pause=waits.append)

    assert len(waits) == 2


@pytest.mark.case("engine", 218)
def test_a_sidecar_that_comes_between_the_check_and_the_gates_stops_it(graph: Graph) -> None:
    other = foreign(graph)
    before = on_disk(table_path(graph, PERSON))

    def leave_a_sidecar() -> None:
        with failpoint("write.post_sidecar_pre_commit", "raise"), pytest.raises(Exception, match="injected"):
            insert(graph, "lost")

    with failpoint("cleanup.post_check_pre_gates", "call", leave_a_sidecar), pytest.raises(PendingRecovery):
        other.cleanup(1)

    assert on_disk(table_path(graph, PERSON)) == before
