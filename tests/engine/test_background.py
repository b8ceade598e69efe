"""The maintenance thread of a long-lived process: what writes would do, and what is too heavy for them."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.core.errors import BadRequest
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.operations.background import Job, Maintenance
from tests.support.engine import (
    assert_settled,
    contents,
    edge,
    head,
    ids,
    ndjson,
    new_graph,
    node,
    people,
    pins,
    reopen,
    table_path,
)
from tests.support.queries import mutation
from tests.support.seam import internals, patched
from tests.support.system import Script

OFTEN = 8  # the interval of upkeep; a thread begins after six commits of a table
WAIT_S = 20


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph whose tables fall due after a few commits."""
    patched(monkeypatch, "omnigraph.operations.upkeep.UPKEEP_INTERVAL", OFTEN)
    with new_graph(tmp_path / "graph") as graph:
        graph.load({"Person": people("first")}, "append")
    return tmp_path / "graph"


def opened(root: Path) -> Graph:
    """Open a graph with a thread."""
    return omnigraph.open(root, durability="process", maintenance="background")


@contextmanager
def passed(place: str) -> Iterator[threading.Event]:
    """Yield an event that is set when the thread comes to a place."""
    event = threading.Event()

    def note() -> None:
        if threading.current_thread().name == "omnigraph-maintenance":
            event.set()

    with failpoint(place, call=note):
        yield event


def write(graph: Graph, name: str, *, branch: str | None = None) -> None:
    """Write one row."""
    graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'), branch=branch)


def until_due(graph: Graph) -> int:
    """Return how many commits more bring the table of persons to its first round."""
    return OFTEN * 3 // 4 - pins(graph)["node:Person"]


def maintained(graph: Graph, *, branch: str | None = None) -> int:
    """Return how many commits the engine has made by itself."""
    return sum(commit.actor_id == MAINTENANCE_ACTOR for commit in graph.commits(branch=branch))


def person_fragments(graph: Graph) -> int:
    """Return the number of fragments of the newest version of a table."""
    return len(lance.dataset(str(table_path(graph, "node:Person"))).get_fragments())


# Upkeep


@pytest.mark.case("engine", 496)
def test_upkeep_happens_on_the_thread_and_not_in_the_write(root: Path) -> None:
    threads = set[str]()
    with opened(root) as graph:
        before = maintained(graph)
        with (
            passed("lock.post_sidecar_delete_pre_unlink") as done,
            failpoint(
                "upkeep.post_compact_pre_index", call=lambda: threads.add(threading.current_thread().name)
            ),
        ):
            for number in range(OFTEN):
                write(graph, f"w{number}")
            assert done.wait(WAIT_S)

        graph.close()
    with reopen(root) as graph:
        assert threads == {"omnigraph-maintenance"}
        assert maintained(graph) >= before + 1
        assert set(ids(graph, "Person")) == {"first"} | {f"w{number}" for number in range(OFTEN)}
        assert_settled(graph)


@pytest.mark.case("engine", 496)
def test_while_it_waits_no_queue_is_held(root: Path) -> None:
    with opened(root) as graph:
        with passed("lock.post_sidecar_delete_pre_unlink") as done:
            for number in range(OFTEN):
                write(graph, f"w{number}")
            assert done.wait(WAIT_S)

        queues = internals(graph).parts.queues
        keys = [(key, "main") for key in pins(graph)]
        with queues.schema_gate, queues.branch_gates(["main"]), queues.acquire_many(keys):
            pass
        write(graph, "after")


@pytest.mark.case("engine", 496)
def test_an_error_is_a_warning_and_the_table_waits(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    tries = []
    with opened(root) as graph, caplog.at_level(logging.WARNING):
        told = threading.Event()

        def fail() -> None:
            tries.append(True)
            told.set()
            raise RuntimeError("no luck")

        with failpoint("upkeep.post_sidecar_pre_compact", call=fail):
            for number in range(until_due(graph)):
                write(graph, f"w{number}")
            assert told.wait(WAIT_S)
            for number in range(4):
                write(graph, f"x{number}")
        graph.close()

    assert len(tries) == 1
    assert any("node:Person" in record.getMessage() for record in caplog.records)
    with reopen(root) as graph:
        assert len(ids(graph, "Person")) == 1 + 3 + 4
        assert_settled(graph)


@pytest.mark.case("engine", 496)
def test_a_write_beside_a_round_that_fails_does_not_notice(root: Path) -> None:
    """It waits for the queue of its table while the round moves the table, and finds it ahead of its pin."""
    waiting, done = threading.Event(), []

    def fail() -> None:
        assert waiting.wait(WAIT_S)
        raise RuntimeError("no luck")

    with opened(root) as graph:
        for number in range(until_due(graph) - 1):
            write(graph, f"w{number}")

        def write_twice() -> None:
            write(graph, "due")
            with failpoint("write.post_stage_pre_gate", call=waiting.set):
                write(graph, "beside")
            done.append(True)

        with failpoint("upkeep.post_compact_pre_index", call=fail):
            writer = threading.Thread(target=write_twice)
            writer.start()
            writer.join(WAIT_S)
        assert done
        assert {"due", "beside"} <= set(ids(graph, "Person"))
        graph.close()
    with reopen(root) as graph:
        assert_settled(graph)


@pytest.mark.case("engine", 496)
def test_closing_waits_for_the_step_at_hand(root: Path) -> None:
    graph = opened(root)
    at_work, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        at_work.set()
        assert go_on.wait(WAIT_S)

    def close() -> None:
        graph.close()
        closed.set()

    with failpoint("upkeep.post_compact_pre_index", call=hold):
        for number in range(until_due(graph)):
            write(graph, f"w{number}")
        assert at_work.wait(WAIT_S)
        closing = threading.Thread(target=close)
        closing.start()
        assert not closed.is_set()
        go_on.set()
        closing.join()

    assert not [thread for thread in threading.enumerate() if thread.name == "omnigraph-maintenance"]
    with reopen(root) as other:
        assert_settled(other)
    graph.close()


PROGRAM = """
import sys
import omnigraph
import omnigraph.operations.upkeep
omnigraph.operations.upkeep.UPKEEP_INTERVAL = 8
graph = omnigraph.open(sys.argv[1])
for number in range(20):
    graph.mutate(f'query add() {{ insert Person {{ name: "w{number}" }} }}')
"""


@pytest.mark.case("engine", 496)
def test_a_program_that_does_not_close_its_graph_ends_in_order(root: Path) -> None:
    with Script(PROGRAM, root, OMNIGRAPH_MAINTENANCE="background") as script:
        assert script.wait() == 0

    with reopen(root) as graph:
        assert graph.recoveries() == []
        assert len(ids(graph, "Person")) == 21
        assert_settled(graph)


@pytest.mark.case("engine", 496)
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"mode": "ro"}, "for handles that write"),
        ({"upkeep": False}, "that do upkeep"),
        ({"maintenance": "later"}, "is not one of inline, background"),
    ],
)
def test_what_does_not_fit_is_refused(root: Path, given: dict[str, object], reason: str) -> None:
    arguments = {"maintenance": "background", **given}

    with pytest.raises(BadRequest, match=reason):
        omnigraph.open(root, **arguments)  # type: ignore[arg-type] # what is not allowed is the point


# Heavier things


@pytest.mark.case("engine", 497)
@pytest.mark.parametrize("branch", [None, "review"])
def test_many_small_fragments_are_folded_once(
    root: Path, branch: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.operations.upkeep.UPKEEP_INTERVAL", 1_000)
    patched(monkeypatch, "omnigraph.operations.background.SMALL_FRAGMENTS_MAX", 4)
    with reopen(root) as graph:
        if branch is not None:
            graph.create_branch(branch)
        for number in range(8):
            links = [edge("Knows", f"p{number}", "first")]
            graph.load(
                ndjson([node("Person", name=f"p{number}"), *links]), "append", index=False, branch=branch
            )
        before = {name: graph.table(name, branch=branch).to_pylist() for name in ("Person", "Knows")}
        commits = maintained(graph, branch=branch)

    done = threading.Semaphore(0)
    with opened(root) as graph, failpoint("optimize.post_publish_pre_sidecar_delete", call=done.release):
        write(graph, "last", branch=branch)
        assert done.acquire(timeout=WAIT_S)
        assert done.acquire(timeout=WAIT_S)
        write(graph, "again", branch=branch)
        graph.close()

    with reopen(root) as graph:
        assert maintained(graph, branch=branch) == commits + 2
        after = {name: graph.table(name, branch=branch).to_pylist() for name in ("Person", "Knows")}
        assert [row for row in after["Person"] if row["id"] not in {"last", "again"}] == before["Person"]
        assert after["Knows"] == before["Knows"]
        entry, parts = graph.snapshot(branch).entry("edge:Knows"), internals(graph).parts
        assert parts.open(entry).fragment_count == 1
        assert set(parts.store.index_coverage(parts.open(entry)).values()) <= {"indexed"}


@pytest.mark.case("engine", 497)
def test_a_table_that_is_in_order_is_left(root: Path) -> None:
    looked = threading.Event()
    with opened(root) as graph:
        before = maintained(graph)
        with failpoint("optimize.post_sidecar_pre_compact", "raise"):
            write(graph, "one")
            maintenance = internals(graph).maintenance
            assert maintenance is not None
            maintenance._jobs[Job("look", 3_600, lambda _graph: looked.set())] = 0.0
            write(graph, "two")
            assert looked.wait(WAIT_S)
        assert maintained(graph) == before
        assert person_fragments(graph) == 3
        assert contents(graph)["Person"].keys() == {"first", "one", "two"}


@pytest.mark.case("engine", 498)
def test_jobs_run_by_the_clock_and_do_not_stop_each_other(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = threading.Semaphore(0)

    def fail(_graph: object) -> None:
        raise RuntimeError("no luck today")

    jobs = (Job("first", 0.001, fail), Job("second", 0.001, lambda _graph: runs.release()))
    with reopen(root) as graph, caplog.at_level(logging.WARNING):
        maintenance = Maintenance(internals(graph), jobs)
        maintenance.begin()
        for _ in range(3):
            assert runs.acquire(timeout=WAIT_S)
        maintenance.end()
        maintenance.end()
        assert head(graph) is not None

    assert any(record.getMessage().startswith("first failed") for record in caplog.records)


@pytest.mark.case("surfaces", 255)
def test_many_writes_beside_the_thread_are_all_there(root: Path) -> None:
    names = [f"n{number:03d}" for number in range(200)]
    with opened(root) as graph:
        made = []
        for name in names:
            result = graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'), actor="ann")
            assert result.commit is not None
            made.append(result.commit.graph_commit_id)

    with reopen(root) as graph:
        own = [commit.graph_commit_id for commit in reversed(graph.commits()) if commit.actor_id == "ann"]
        assert own == made
        assert maintained(graph) > 3
        assert set(ids(graph, "Person")) == {"first", *names}
        assert graph.recoveries() == []
        assert person_fragments(graph) < 100
        assert_settled(graph)
