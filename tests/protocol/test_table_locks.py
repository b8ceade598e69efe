"""Turns between the processes of a host: who moves a table waits for who reads it, and who reads for it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import pytest

import omnigraph
from omnigraph.commit.table_locks import table_lock_file
from omnigraph.core.errors import ExpectedVersionMismatch
from omnigraph.core.failpoint import failpoint
from omnigraph.core.names import BRANCH_NAME_BYTES_MAX
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from tests.protocol.conftest import NewRoot
from tests.support.engine import chain
from tests.support.forked import Forked
from tests.support.protocol import WRITERS
from tests.support.seam import patched

BUSY = "table_lock.held_by_others"
ADD_DAN = 'query add() { insert Person { name: "dan" } }'
AGE_ANN = 'query age() { update Person set { age: 31 } where name = "ann" }'
EMPLOY = 'query employ() { insert WorksAt { from: "cid", to: "acme" } }'
# Runs a mutation, stops where it is told to, and says what became of it.
WRITE = """
import sys
import omnigraph
from tests.support.protocol import paused_at, say, tell_and_wait
with omnigraph.open(sys.argv[1]) as graph, paused_at(sys.argv[3], "call", tell_and_wait):
    try:
        graph.mutate(sys.argv[2], retry=0)
        say("landed")
    except omnigraph.ConflictError as conflict:
        say(f"{type(conflict).__name__} {conflict.recovery_operation_id}")
"""
HOLD = """
import sys
from pathlib import Path
from omnigraph.storage.control.locks import try_sole
lock = try_sole(Path(sys.argv[1]))
print(lock is not None, flush=True)
input()
"""
KNOW = 'query know() { insert Knows { from: "cid", to: "ann" } }'


@pytest.fixture
def long_turns(short_turns: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a turn as long as it takes."""
    patched(monkeypatch, "omnigraph.commit.table_locks.TABLE_LOCK_WAIT_S", 20.0)


@contextmanager
def paused(root: Path, mutation: str, place: str) -> Iterator[Forked]:
    with Forked(WRITE, root, mutation, place) as script:
        assert script.read_line() == "paused"
        yield script


def outcome(script: Forked) -> str:
    """Let a writer go on, and return what became of it."""
    script.write_line()
    return script.read_line()


def names(graph: Graph) -> set[object]:
    return set(graph.table("Person").column("name").to_pylist())


@pytest.mark.case("engine", 790)
@pytest.mark.usefixtures("long_turns")
def test_who_moves_a_table_waits_for_who_reads_it(root: Path) -> None:
    waits = Event()
    with (
        omnigraph.open(root) as graph,
        ThreadPoolExecutor(1) as pool,
        paused(root, KNOW, "write.post_finalize_pre_publisher") as reader,  # its table of edges has moved
    ):
        with failpoint(BUSY, "call", waits.set):
            graph.mutate(EMPLOY, retry=0)
            assert not waits.is_set()  # it reads the same people
            adding = pool.submit(graph.mutate, ADD_DAN, retry=0)
            assert waits.wait(60)
            assert "dan" not in names(graph)
            assert outcome(reader) == "landed"
            assert adding.result().affected_nodes == 1

        assert "dan" in names(graph)
        assert graph.recoveries() == []
        assert graph.verify().is_whole


@pytest.mark.case("engine", 791)
@pytest.mark.usefixtures("long_turns")
def test_who_has_lost_already_is_told_at_once(root: Path) -> None:
    waited: list[bool] = []
    with (
        omnigraph.open(root) as graph,
        paused(root, ADD_DAN, "write.post_finalize_pre_publisher") as winner,
        failpoint(BUSY, "call", lambda: waited.append(True)),
    ):
        with pytest.raises(ExpectedVersionMismatch) as lost:
            graph.mutate(AGE_ANN, retry=0)

        assert lost.value.in_flight_operation_id is not None
        assert lost.value.recovery_operation_id is None
        assert waited == [True]  # one look, no wait
        assert outcome(winner) == "landed"


@pytest.mark.case("engine", 792)
def test_a_stopped_process_delays_others_and_stops_nobody(root: Path) -> None:
    with (
        omnigraph.open(root) as graph,
        paused(root, AGE_ANN, "write.post_gate_pre_sidecar") as sleeper,
    ):
        assert graph.mutate(ADD_DAN, retry=0).affected_nodes == 1

        assert outcome(sleeper) == "ExpectedVersionMismatch None"
        assert graph.recoveries() == []
        assert "dan" in names(graph)


@pytest.mark.case("engine", 792)
def test_upkeep_leaves_a_table_alone_that_another_process_holds(root_for: NewRoot) -> None:
    root = root_for("upkeep")
    path = root / table_lock_file("main", "node:Person")
    with omnigraph.open(root) as graph, Forked(HOLD, path) as holder:
        assert holder.read_line() == "True"

        WRITERS["upkeep"].run(graph)

        assert MAINTENANCE_ACTOR not in {commit.actor_id for commit in graph.commits(limit=3)}


@pytest.mark.case("engine", 790)
@pytest.mark.usefixtures("long_turns")
def test_optimize_publishes_when_nobody_is_reading(root: Path) -> None:
    waits = Event()
    with omnigraph.open(root) as graph, ThreadPoolExecutor(1) as pool, ExitStack() as held:
        graph.optimize()
        graph.mutate(ADD_DAN)  # now only the people have work
        reading: list[Forked] = []

        def read() -> None:
            """Begin an edge between people, when their table has been laid out and is not published."""
            if not reading:
                reader = paused(root, EMPLOY, "write.post_finalize_pre_publisher")
                reading.append(held.enter_context(reader))

        with (
            failpoint("optimize.post_phase_b_pre_manifest_commit", "call", read),
            failpoint(BUSY, "call", waits.set),
        ):
            running = pool.submit(graph.optimize)
            assert waits.wait(60)
            assert outcome(reading[0]) == "landed"
            assert running.result().commit is not None

        assert graph.recoveries() == []
        assert graph.verify().is_whole


MANY = """
import sys
import pytest
import omnigraph
from tests.support.protocol import say
from tests.support.seam import patched
patched(pytest.MonkeyPatch(), "omnigraph.operations.upkeep.UPKEEP_INTERVAL", 4)
root, who, what, each = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
PERSON = "insert Person { name: $n }"
QUERIES = {
    "node": "query q($n: String) { " + PERSON + " }",
    "edge": 'query q($n: String) { insert Knows { from: "ann", to: "bob" } }',
    "both": "query q($n: String) { " + PERSON + ' insert Knows { from: "ann", to: $n } }',
}
with omnigraph.open(root) as graph:
    say("open")
    input()
    for number in range(each):
        if what == "optimize":
            graph.optimize()
        else:
            graph.mutate(QUERIES[what], params={"n": f"{who}{number}"}, retry=60)
say("done")
"""


@pytest.mark.slow
@pytest.mark.case("engine", 793)
def test_writers_of_nodes_and_edges_and_maintenance_in_any_mix_all_land(root: Path) -> None:
    work = {"a": ("node", 25), "b": ("edge", 25), "c": ("both", 25), "o": ("optimize", 5)}
    with ExitStack() as held:
        scripts = [held.enter_context(Forked(MANY, root, who, *work[who])) for who in work]
        assert {script.read_line() for script in scripts} == {"open"}
        for script in scripts:
            script.write_line()
        assert [script.read_line() for script in scripts] == ["done"] * len(work)

    with omnigraph.open(root) as graph:
        added = {f"{who}{number}" for who in "ac" for number in range(25)}
        assert names(graph) == {"ann", "bob", "cid"} | added
        assert graph.recoveries() == []
        commits = chain(graph)
        assert len({commit.graph_commit_id for commit in commits}) == len(commits)
        assert sum(commit.actor_id != MAINTENANCE_ACTOR for commit in commits) >= 75
        assert graph.verify().is_whole


@pytest.mark.case("engine", 794)
def test_long_names_of_branch_and_type_fit_the_name_of_a_lock(tmp_path: Path) -> None:
    branch, type_name = "b" * BRANCH_NAME_BYTES_MAX, "T" * 200
    with omnigraph.init(tmp_path / "g", f"node {type_name} {{ name: String @key }}") as graph:
        graph.create_branch(branch)

        done = graph.mutate(f'query add() {{ insert {type_name} {{ name: "a" }} }}', branch=branch)

        locks = tmp_path / "g" / "__locks"
        assert done.affected_nodes == 1
        assert [path for path in locks.iterdir() if branch in path.name]
        graph.delete_branch(branch)
        assert [path for path in locks.iterdir() if branch in path.name] == []
