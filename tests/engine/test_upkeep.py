"""Upkeep: every 64 versions of a table, as part of writing, and never at the expense of a write."""

import base64
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import lance
import pytest

from omnigraph.commit.publish import UPKEEP_INTERVAL
from omnigraph.core.errors import ConflictError, DriftNeedsRepair, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.core.limits import SMALL_FRAGMENT_ROWS
from omnigraph.graph.graph import Graph
from omnigraph.history.commits import MAINTENANCE_ACTOR, RECOVERY_ACTOR
from omnigraph.operations.mutate import MutationResult
from tests.support.engine import (
    assert_settled,
    chain,
    copy_of,
    head,
    ids,
    ndjson,
    new_graph,
    node,
    people,
    pins,
    recovery_files,
    reopen,
    table_path,
    together,
)
from tests.support.forked import Forked
from tests.support.queries import mutation
from tests.support.seam import internals, patched

LARGE = SMALL_FRAGMENT_ROWS + 1
EVERYONE = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
OLDER = mutation('update Person set { age: 7 } where name >= "p000"')


@pytest.fixture(scope="session")
def due_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph whose persons and companies are one commit away from their first upkeep."""
    root = tmp_path_factory.mktemp("due") / "graph"
    with new_graph(root) as graph:
        graph.load({"Person": people(*(f"p{number:06d}" for number in range(LARGE)))}, "append")
        graph.load(ndjson([node("Company", name="first")]), "append")
        for number in range(UPKEEP_INTERVAL - 1 - pins(graph)["node:Person"]):
            write(graph, f"w{number}")
        assert {pins(graph)[key] for key in ("node:Person", "node:Company")} == {UPKEEP_INTERVAL - 1}
    return root


@pytest.fixture
def due(due_root: Path, tmp_path: Path) -> Iterator[Graph]:
    """The next write takes two tables across the interval."""
    with reopen(copy_of(due_root, tmp_path / "due")) as graph:
        yield graph


def write(graph: Graph, name: str) -> MutationResult:
    """Write one row into each of two tables."""
    return graph.mutate(mutation(f'insert Person {{ name: "{name}" }} insert Company {{ name: "{name}" }}'))


def write_person(graph: Graph, name: str) -> MutationResult:
    """Write one row into one table."""
    return graph.mutate(mutation(f'insert Person {{ name: "{name}" }}'))


def person_table(graph: Graph) -> lance.LanceDataset:
    """Return the table of persons at its newest version."""
    return lance.dataset(str(table_path(graph, "node:Person")))


def maintenance(graph: Graph) -> int:
    """Return how many commits the engine made by itself."""
    return sum(commit.actor_id == MAINTENANCE_ACTOR for commit in graph.commits())


# The work


@pytest.mark.case("engine", 51)
@pytest.mark.case("engine", 349)
def test_the_commit_that_crosses_the_interval_is_followed_by_one_of_the_engine(due: Graph) -> None:
    before, rows_before = maintenance(due), due.table("Person").to_pylist()
    large = [part.fragment_id for part in person_table(due).get_fragments() if part.count_rows() >= LARGE]
    assert len(person_table(due).get_fragments()) > 50

    result = write_person(due, "last")

    assert maintenance(due) == before + 1
    assert result.commit is not None
    assert head(due).parent_commit_id == result.commit.graph_commit_id
    fragments = {part.fragment_id: part.count_rows() for part in person_table(due).get_fragments()}
    assert len(fragments) == 2
    assert large == [number for number in fragments if fragments[number] >= LARGE]
    entry, parts = due.snapshot().entry("node:Person"), internals(due).parts
    coverage = parts.store.index_coverage(parts.open(entry))
    assert coverage
    assert set(coverage.values()) == {"indexed"}
    assert [row for row in due.table("Person").to_pylist() if row["id"] != "last"] == rows_before
    assert_settled(due)


@pytest.mark.case("engine", 455)
def test_a_round_removes_the_copies_of_old_transactions(due: Graph) -> None:
    folder = table_path(due, "node:Person") / "_transactions"
    assert len(list(folder.iterdir())) == UPKEEP_INTERVAL - 1
    past = due.commits()[5].graph_commit_id
    found = due.at(past).query(EVERYONE).row_count

    write_person(due, "last")

    kept = [int(path.name.partition("-")[0]) for path in folder.iterdir()]
    assert min(kept) == UPKEEP_INTERVAL
    assert len(kept) == pins(due)["node:Person"] - UPKEEP_INTERVAL
    assert due.verify().is_whole
    with reopen(Path(due.uri)) as other:
        assert other.at(past).query(EVERYONE).row_count == found
        write_person(other, "after")


@pytest.mark.case("engine", 454)
@pytest.mark.parametrize("write_many", ["load", "merge", "mutation"])
def test_a_write_of_many_rows_is_followed_by_one_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_many: str
) -> None:
    patched(monkeypatch, "omnigraph.operations.upkeep.UNCOVERED_ROWS_MAX", 50)
    everyone = [f"p{number:03d}" for number in range(100)]
    with new_graph(tmp_path / "graph") as graph:
        graph.load({"Person": people(*everyone)}, "append")
        graph.load({"Company": people("first")}, "append")
        write_person(graph, "one more")
        graph.create_branch("review")
        before = maintenance(graph)

        match write_many:
            case "load":
                graph.load({"Person": people(*everyone[:60])}, "merge")
            case "mutation":
                graph.mutate(OLDER)
            case _:
                graph.mutate(OLDER, branch="review")
                write_person(graph, "so that both sides have moved")
                graph.merge("review")

        assert maintenance(graph) == before + 1
        entry, parts = graph.snapshot().entry("node:Person"), internals(graph).parts
        assert parts.store.index_coverage(parts.open(entry))["id__btree"] == "indexed"
        assert_settled(graph)


@pytest.mark.case("engine", 454)
def test_few_rows_and_loads_without_indexes_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.operations.upkeep.UNCOVERED_ROWS_MAX", 50)
    everyone = [f"p{number:03d}" for number in range(100)]
    with new_graph(tmp_path / "graph") as graph:
        graph.load({"Person": people(*everyone)}, "append")
        before = maintenance(graph)

        graph.load({"Company": people("first")}, "append")
        before += 1  # the index of companies
        graph.load({"Person": people(*everyone[:20]), "Company": people(*everyone[:40])}, "merge")
        graph.load({"Person": people(*everyone[:45])}, "merge")
        graph.load({"Person": people(*everyone)}, "merge", index=False)

        assert maintenance(graph) == before


@pytest.mark.case("engine", 454)
def test_uncovered_rows_add_up_over_several_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.operations.upkeep.UNCOVERED_ROWS_MAX", 50)
    everyone = [f"p{number:03d}" for number in range(100)]
    with new_graph(tmp_path / "graph") as graph:
        graph.load({"Person": people(*everyone)}, "append")
        before = maintenance(graph)

        graph.load({"Person": people(*everyone[:30])}, "merge")
        assert maintenance(graph) == before
        graph.load({"Person": people(*everyone[30:60])}, "merge")
        assert maintenance(graph) == before + 1


@pytest.mark.case("engine", 349)
def test_between_two_crossings_nothing_happens(due: Graph) -> None:
    write_person(due, "last")
    before = maintenance(due)

    for number in range(5):
        write_person(due, f"next{number}")

    assert maintenance(due) == before


def test_upkeep_can_be_turned_off(due_root: Path, tmp_path: Path) -> None:
    graph = reopen(copy_of(due_root, tmp_path / "off"), upkeep=False)
    before = maintenance(graph)

    write(graph, "last")

    assert maintenance(graph) == before
    assert pins(graph)["node:Person"] == UPKEEP_INTERVAL


@pytest.mark.case("engine", 353)
def test_two_due_tables_have_a_sidecar_each_in_turn(due: Graph) -> None:
    before, seen = maintenance(due), list[list[str]]()

    with failpoint("upkeep.post_sidecar_pre_compact", call=lambda: seen.append(recovery_files(due))):
        write(due, "last")

    assert [sum(name.endswith(".json") for name in names) for names in seen] == [1, 1]
    assert seen[0] != seen[1]
    assert maintenance(due) == before + 2
    assert_settled(due)


@pytest.mark.case("engine", 353)
def test_a_kill_between_two_due_tables_leaves_nothing_to_roll_back(due: Graph) -> None:
    before = maintenance(due)

    # The second lock file that goes is that of the first upkeep; the first was the write's own.
    _write_and_die(due, "lock.post_sidecar_delete_pre_unlink=skip:1,exit")

    assert [name for name in recovery_files(due) if name.endswith(".json")] == []
    opened = reopen(due)
    assert opened.recoveries() == []
    assert maintenance(opened) == before + 1
    assert "last" in ids(opened, "Company")
    assert_settled(opened)


WRITER = """
import sys
from pathlib import Path
from tests.engine.test_upkeep import write, write_person
from tests.support.engine import reopen
write(reopen(Path(sys.argv[1])), sys.argv[2])
"""


def _write_and_die(graph: Graph, failpoints: str) -> None:
    with Forked(WRITER, graph.uri, "last", OMNIGRAPH_FAILPOINTS=failpoints) as script:
        assert script.wait() == 86


# Beside other writers

CROWD = """
import sys
from pathlib import Path
import omnigraph.operations.upkeep
from tests.engine.test_upkeep import OFTEN, write_many
from tests.support.engine import reopen
omnigraph.operations.upkeep.UPKEEP_INTERVAL = OFTEN
print("ready", flush=True)
sys.stdin.readline()
print(write_many(reopen(Path(sys.argv[1])), sys.argv[2]), flush=True)
"""
WRITES_EACH = 20
OFTEN = 3  # commits between two rounds, so that writers and upkeep meet all the time


def write_many(graph: Graph, prefix: str) -> int:
    """Write rows one by one, retrying what a caller may retry, and return how many conflicts there were."""
    conflicts = 0
    for number in range(WRITES_EACH):
        while True:
            try:
                write_person(graph, f"{prefix}{number}")
                break
            except DriftNeedsRepair:
                raise
            except ConflictError:
                conflicts += 1
            except RecoveryRequired:  # upkeep lay over a write that lost its race: an open restores the table
                reopen(graph).close()
                conflicts += 1
    return conflicts


@pytest.mark.case("engine", 148)
def test_upkeep_beside_other_handles_and_processes_loses_and_invents_no_row(
    due: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.operations.upkeep.UPKEEP_INTERVAL", OFTEN)
    before, rows_before = maintenance(due), set(ids(due, "Person"))
    other = reopen(due)

    with Forked(CROWD, due.uri, "process") as script:
        assert script.read_line() == "ready"
        script.write_line()
        outcomes = together(lambda: write_many(due, "one"), lambda: write_many(other, "two"))
        conflicts = script.read_line()
        assert script.wait() == 0

    assert all(isinstance(outcome, int) for outcome in outcomes), outcomes
    assert int(conflicts) >= 0
    written = {f"{prefix}{number}" for prefix in ("one", "two", "process") for number in range(WRITES_EACH)}
    assert set(ids(due, "Person")) == rows_before | written
    assert len(chain(due)) > 3 * WRITES_EACH
    assert maintenance(due) > before
    reopen(due).close()
    assert_settled(due)


# Whatever goes wrong

Trouble = Callable[[Graph], AbstractContextManager[None]]


def _raising(place: str) -> Trouble:
    return lambda _graph: failpoint(place, "raise")


@contextmanager
def _losing_a_race(graph: Graph) -> Iterator[None]:
    """A writer of another process publishes a row after upkeep has looked."""

    def overtake() -> None:
        with Forked(WRITER.replace("write(", "write_person("), graph.uri, "rival") as rival:
            assert rival.wait() == 0

    with failpoint("upkeep.post_sidecar_pre_compact", call=overtake):
        yield


@contextmanager
def _busy_queue(graph: Graph) -> Iterator[None]:
    """Somebody of this process holds the queue of the table while upkeep asks for it."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with internals(graph).parts.queues.acquire_many([("node:Person", "main")]):
            held.set()
            done.wait(20)

    thread = threading.Thread(target=hold)

    def take() -> None:
        if not thread.is_alive():
            thread.start()
            held.wait(20)

    try:
        with failpoint("upkeep.post_write_pre_plan", call=take):
            yield
    finally:
        done.set()
        thread.join()


RIVAL = """
import sys
from pathlib import Path
from omnigraph.core.failpoint import failpoint
from tests.support.engine import reopen
from tests.engine.test_upkeep import write_person
graph = reopen(Path(sys.argv[1]))
def stop():
    print("committed", flush=True)
    sys.stdin.readline()
with failpoint("write.post_finalize_pre_publisher", call=stop):
    write_person(graph, "rival")
print("published", flush=True)
"""


@contextmanager
def _drifted_table(graph: Graph) -> Iterator[None]:
    """A writer of another process stands between its commit and its publish while upkeep looks."""
    with ExitStack() as stack:
        rivals: list[Forked] = []

        def let_a_rival_commit() -> None:
            rivals.append(stack.enter_context(Forked(RIVAL, graph.uri)))
            assert rivals[0].read_line() == "committed"

        with failpoint("upkeep.post_write_pre_plan", call=let_a_rival_commit):
            yield
        assert [name[-5:] for name in recovery_files(graph)] == [".json", ".lock"]  # the rival's alone
        rivals[0].write_line()
        assert rivals[0].read_line() == "published"


TROUBLES: dict[str, Trouble] = {
    "raises before its plan": _raising("upkeep.post_write_pre_plan"),
    "raises after its sidecar": _raising("upkeep.post_sidecar_pre_compact"),
    "raises after the fold": _raising("upkeep.post_compact_pre_index"),
    "raises before its publish": _raising("upkeep.post_phase_b_pre_manifest_commit"),
    "raises before the end": _raising("upkeep.post_publish_pre_sidecar_delete"),
    "loses a race": _losing_a_race,
    "finds the queue busy": _busy_queue,
    "finds the table moved by a live writer": _drifted_table,
}


@pytest.mark.case("engine", 350)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_write_does_not_notice_what_happens_to_its_upkeep(
    due: Graph, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    parent, before = head(due).graph_commit_id, maintenance(due)

    with caplog.at_level(logging.WARNING), TROUBLES[trouble](due):
        result = write_person(due, "last")

    assert (result.affected_nodes, result.affected_edges) == (1, 0)
    assert result.commit is not None
    assert (result.commit.parent_commit_id, result.commit.actor_id) == (parent, None)
    assert maintenance(due) == before + (trouble == "raises before the end")
    write_person(due, "next")
    assert {"last", "next"} <= set(ids(due, "Person"))
    chain(due)
    assert [name for name in recovery_files(due) if name.endswith(".json")] == []


@pytest.mark.case("engine", 350)
def test_a_failed_round_is_tried_again_one_interval_later(due: Graph) -> None:
    with failpoint("upkeep.post_write_pre_plan", "raise"):
        write_person(due, "last")
    before = maintenance(due)

    for number in range(UPKEEP_INTERVAL - 1):
        write_person(due, f"n{number}")
        assert maintenance(due) == before
    write_person(due, "crossing")

    assert maintenance(due) == before + 1
    assert len(person_table(due).get_fragments()) == 2
    assert_settled(due)


@pytest.mark.case("engine", 350)
@pytest.mark.parametrize(
    "place",
    [
        "upkeep.post_sidecar_pre_compact",
        "upkeep.post_compact_pre_index",
        "upkeep.post_phase_b_pre_manifest_commit",
        "upkeep.post_publish_pre_sidecar_delete",
    ],
)
def test_a_kill_during_upkeep_is_finished_by_the_next_write_of_anybody(due: Graph, place: str) -> None:
    assert "last" not in ids(due, "Person")

    _write_and_die(due, f"{place}=exit")

    write(due, "next")
    assert {"last", "next"} <= set(ids(due, "Person")) & set(ids(due, "Company"))
    assert [commit.actor_id for commit in due.commits()].count(RECOVERY_ACTOR) == 1
    assert_settled(due)


@pytest.mark.case("engine", 355)
def test_mutations_build_no_index(graph: Graph) -> None:
    for number in range(3):
        write(graph, f"w{number}")

    assert maintenance(graph) == 0
    assert person_table(graph).describe_indices() == []


@pytest.mark.case("engine", 265)
def test_a_compaction_keeps_null_empty_and_other_blobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.operations.upkeep.UPKEEP_INTERVAL", 6)
    values: list[bytes | None] = [None, b"", b"x", bytes(range(256)) * 4_096, b"", None]
    with new_graph(tmp_path / "graph", "node Page { code: String @key  scan: Blob? }") as graph:
        expected = {}
        for number in range(14):
            code, value = f"p{number:02d}", values[number % len(values)]
            given = None if value is None else f"base64:{base64.b64encode(value).decode()}"
            graph.load(ndjson([node("Page", code=code, scan=given)]), "append", index=False)
            expected[code] = value
        entry = graph.snapshot().entry("node:Page")
        fragments = lance.dataset(str(table_path(graph, "node:Page")), version=entry.version).get_fragments()

        assert entry.pin.upkeep_version > 6, "it was compacted twice"
        assert len(fragments) < 6
        assert {row["code"]: row["scan"] for row in graph.table("Page").to_pylist()} == expected
    with reopen(tmp_path / "graph") as graph:
        assert {row["code"]: row["scan"] for row in graph.table("Page").to_pylist()} == expected
