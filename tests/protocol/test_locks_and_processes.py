"""Several processes on one graph: who lives, who waits, who begins again."""

import fcntl
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import ExpectedVersionMismatch
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, failpoint
from omnigraph.graph.graph import Graph
from omnigraph.storage.control.locks import is_taken
from tests.support.books import (
    assert_reopening_changes_nothing,
    assert_settled,
    books,
    contents_of,
    fingerprint,
    recovery_files,
)
from tests.support.forked import Forked
from tests.support.protocol import (
    BEFORE,
    TABLE_KEYS,
    WRITERS,
    Contents,
    give_up,
    go_on,
    killed,
    paused_at,
    sidecars,
    stopped,
    with_extra,
    write_everywhere,
)
from tests.support.seam import internals

AFTER_INSERT = WRITERS["insert"].after
TOUCH_COMPANY = 'query touch() { update Company set { city: "Graz" } where name = "acme" }'
ADD_EVE = 'query add() { insert Person { name: "eve", age: 60 } }'
COMPANY_TOUCHED = frozenset({("acme", "Graz"), ("ibex", None)})
ALL_COMMITTED = "write.post_finalize_pre_publisher="
FIRST_COMMITTED = "write.post_table_commit="


def with_eve(contents: Contents) -> Contents:
    return {**contents, "Person": contents["Person"] | {("eve", 60)}}


# Alive or dead


@pytest.mark.case("engine", 311)
def test_a_stopped_writer_keeps_others_off_its_tables_and_no_further(root: Path) -> None:
    with stopped(root, "update", ALL_COMMITTED) as script, omnigraph.open(root) as graph:
        (sidecar,) = sidecars(root)
        before = books(root)

        with pytest.raises(ExpectedVersionMismatch, match="is committing") as caught:
            graph.mutate(ADD_EVE, retry=0)

        assert caught.value.in_flight_operation_id == sidecar.stem
        assert caught.value.recovery_operation_id is None
        assert (caught.value.table_key, caught.value.expected, caught.value.actual) == ("node:Person", 2, 3)
        assert books(root) == before
        graph.load(b'{"edge": "Knows", "from": "ann", "to": "cid", "data": {"since": 2005}}\n', "append")
        go_on(script)
        graph.mutate(ADD_EVE)
    knows = BEFORE["Knows"] | {("ann", "cid", 2005)}
    assert_settled(root, with_eve({**WRITERS["update"].after, "Knows": knows}), recoveries=0)


@pytest.mark.case("engine", 312)
@pytest.mark.parametrize("point", [FIRST_COMMITTED, ALL_COMMITTED], ids=["back", "forward"])
def test_a_killed_writer_is_healed_by_the_next_write_of_another_process(point: str, root: Path) -> None:
    with omnigraph.open(root) as graph:
        with stopped(root, "insert", point) as script:
            with pytest.raises(ExpectedVersionMismatch):
                write_everywhere(graph)
            script.kill()

        write_everywhere(graph)

    contents = BEFORE if point == FIRST_COMMITTED else AFTER_INSERT
    found = assert_settled(root, with_extra(contents), recoveries=1)
    assert found.recoveries[0].kind == ("RolledBack" if point == FIRST_COMMITTED else "RolledForward")
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 313)
def test_a_writer_that_finishes_between_two_looks_is_a_conflict_and_no_drift(root: Path) -> None:
    with omnigraph.open(root) as graph, stopped(root, "insert", ALL_COMMITTED) as script:
        # The first listing is the heal at the entry, the second the drift guard's, after its look at HEAD.
        with (
            paused_at("recovery.sidecar_list", "skip:1,call", lambda: go_on(script)),
            pytest.raises(ExpectedVersionMismatch) as caught,
        ):
            graph.mutate(ADD_EVE, retry=0)

        assert caught.value.in_flight_operation_id is None
        assert (caught.value.expected, caught.value.actual) == (2, 3)
        graph.mutate(ADD_EVE)
    assert_settled(root, with_eve(AFTER_INSERT), recoveries=0)


@pytest.mark.case("engine", 319)
def test_a_dead_sidecar_waits_while_a_live_one_names_its_table(root: Path) -> None:
    give_up(root, "insert", "P1")
    (dead,) = sidecars(root)
    # Index builds heal nothing, so a live writer of the same tables can come after a dead one.
    program = """
import sys
from omnigraph.operations.open import open_graph
from tests.support.protocol import tell_and_wait, paused_at
from omnigraph.operations.ensure_indices import ensure_indices
graph = open_graph(sys.argv[1], is_writable=False)
graph.is_writable = True
with paused_at("ensure_indices.post_phase_b_pre_manifest_commit", "call", tell_and_wait):
    ensure_indices(graph)
print("done", flush=True)
"""
    with Forked(program, root) as script:
        assert script.read_line() == "paused"
        before = fingerprint(root)

        with omnigraph.open(root) as graph:
            graph.refresh()

        assert fingerprint(root) == before
        assert dead in sidecars(root)
        go_on(script)
    with omnigraph.open(root) as graph:
        found = assert_settled(root, BEFORE, recoveries=1)
        assert (found.recoveries[0].kind, found.recoveries[0].outcomes) == ("RolledBack", ())
        assert graph.ensure_indices().commit is None  # every index of the live writer is there
        write_everywhere(graph)


# Readers beside a writer

COUNT_PERSONS = "query q() { match { $p: Person } return { count($p) as n } }"
PUBLISH_LOCK = Path("__locks", "publish-main.lock")


def assert_reads_take_no_lock(root: Path, opened: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open read-only and read, through a handle from before as well; no lock is tried and no file is made."""
    (sidecar,) = sidecars(root)
    assert is_taken(sidecar.with_suffix(".lock"))
    assert is_taken(root / PUBLISH_LOCK)
    before = fingerprint(root)
    tried: list[object] = []

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", lambda *arguments: tried.append(arguments))
        with omnigraph.open(root, mode="ro") as reader:
            for graph in (reader, opened):
                assert contents_of(graph) == BEFORE
                assert graph.query(COUNT_PERSONS).to_pylist() == [{"n": 3}]
                assert (len(graph.commits()), graph.recoveries()) == (2, [])
                assert {state.table_key for state in graph.index_status()} == set(TABLE_KEYS)
            reader.refresh()

    assert tried == []
    assert fingerprint(root) == before


@pytest.mark.case("engine", 323)
def test_a_reader_does_not_wait_for_a_writer_of_this_process_that_holds_every_lock(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, opened = omnigraph.open(root), omnigraph.open(root)
    read: list[bool] = []

    def meanwhile() -> None:
        for table_key in TABLE_KEYS:
            with internals(writer).parts.queues.try_one((table_key, "main")) as is_free:
                assert not is_free
        with ThreadPoolExecutor(1) as pool:
            pool.submit(assert_reads_take_no_lock, root, opened, monkeypatch).result(timeout=60)
        read.append(True)

    with paused_at("publish.before_update", "call", meanwhile):
        write_everywhere(writer)

    assert read == [True]
    assert_settled(root, with_extra(BEFORE), recoveries=0)


@pytest.mark.case("engine", 323)
def test_a_reader_does_not_wait_for_another_process_that_holds_its_locks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with omnigraph.open(root) as opened, stopped(root, "delete", "publish.before_update=") as script:
        assert_reads_take_no_lock(root, opened, monkeypatch)
        go_on(script)
    assert_settled(root, WRITERS["delete"].after, recoveries=0)


# Lock files


@pytest.mark.case("engine", 314)
@pytest.mark.parametrize(
    "place",
    ["lock.post_create_pre_flock", "lock.post_flock_pre_sidecar", "lock.post_sidecar_delete_pre_unlink"],
)
def test_a_kill_around_the_lock_leaves_at_most_a_lone_lock_file(place: str, root: Path) -> None:
    killed(root, "insert", f"{place}=")
    (name,) = recovery_files(root)
    assert name.endswith(".lock")

    omnigraph.open(root).close()

    contents = AFTER_INSERT if "delete" in place else BEFORE
    assert_settled(root, contents, recoveries=0)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 314)
def test_a_lock_that_is_held_without_a_sidecar_is_left(root: Path) -> None:
    with stopped(root, "insert", "lock.post_flock_pre_sidecar=") as script:
        files = recovery_files(root)
        omnigraph.open(root).close()
        assert recovery_files(root) == files
        go_on(script)
    assert_settled(root, AFTER_INSERT, recoveries=0)


@pytest.mark.case("engine", 315)
def test_a_writer_whose_lock_file_was_swept_begins_again(root: Path) -> None:
    swept: list[str] = []
    used: list[str] = []

    def sweep() -> None:
        swept.extend(recovery_files(root))
        omnigraph.open(root).close()
        assert recovery_files(root) == ()

    def look() -> None:
        (sidecar,) = sidecars(root)
        assert is_taken(sidecar.with_suffix(".lock"))
        used.append(sidecar.stem)

    with (
        omnigraph.open(root) as graph,
        paused_at("lock.post_create_pre_flock", "call", sweep),
        failpoint("write.post_sidecar_pre_commit", "call", look),
        failpoint("write.post_publish_pre_sidecar_delete", "call", look),
    ):
        WRITERS["insert"].run(graph)

    assert len(swept) == 1
    assert len(used) == 2
    assert f"{used[0]}.lock" not in swept
    assert_settled(root, AFTER_INSERT, recoveries=0)


@pytest.mark.case("engine", 317)
@pytest.mark.parametrize("point", ["P1", "P2", "P3", "P5"])
def test_a_copy_without_lock_files_recovers_and_leaves_the_original_alone(point: str, root: Path) -> None:
    give_up(root, "insert", point)
    before = fingerprint(root)
    copy = root.parent / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*.lock"))
    assert len(recovery_files(copy)) == 1

    omnigraph.open(copy).close()

    assert_settled(copy, AFTER_INSERT if point in {"P3", "P5"} else BEFORE, recoveries=1)
    assert fingerprint(root) == before


# Healers beside healers

OPENER = """
import sys
import omnigraph
from tests.support.protocol import tell_and_wait, paused_at
with paused_at("recovery.post_list_pre_lock", "call", tell_and_wait):
    omnigraph.open(sys.argv[1])
print("done", flush=True)
"""


@pytest.mark.case("engine", 318)
def test_two_processes_that_open_at_once_process_each_sidecar_once(root: Path) -> None:
    give_up(root, "insert", "P5")
    for table_key in ("node:Person", "node:Company"):
        program = f"""
import sys
from omnigraph.operations.ensure_indices import ensure_indices
from omnigraph.operations.open import open_graph
graph = open_graph(sys.argv[1], is_writable=False)
graph.is_writable = True
ensure_indices(graph, tables=["{table_key}"])
"""
        place = "ensure_indices.post_phase_b_pre_manifest_commit=exit"
        with Forked(program, root, **{ENVIRONMENT: place}) as script:
            assert script.wait() == EXIT_STATUS
    assert len(sidecars(root)) == 3

    with Forked(OPENER, root) as one, Forked(OPENER, root) as other:
        assert (one.read_line(), other.read_line()) == ("paused", "paused")
        one.write_line()
        other.write_line()
        assert (one.read_line(), other.read_line()) == ("done", "done")
        assert (one.wait(), other.wait()) == (0, 0)

    found = assert_settled(root, AFTER_INSERT, recoveries=3)
    assert {recovery.kind for recovery in found.recoveries} == {"RolledForward"}
    with omnigraph.open(root) as graph:
        write_everywhere(graph)
    assert_reopening_changes_nothing(root)


# Publishing together

FOUR_TYPES = "".join(f"node Type{number} {{ name: String @key }}\n" for number in range(4))
PUBLISHER = """
import sys
import omnigraph
root, number, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
graph = omnigraph.open(root, durability="process")
print("ready", flush=True)
input()
for turn in range(count):
    graph.mutate(f'query add() {{ insert Type{number} {{ name: "{turn:03}" }} }}', actor=f"process-{number}")
print("done", flush=True)
"""


def publish_together(root: Path, *, processes: int, publishes: int) -> None:
    scripts = [Forked(PUBLISHER, root, number, publishes) for number in range(processes)]
    try:
        assert [script.read_line() for script in scripts] == ["ready"] * processes
        for script in scripts:
            script.write_line()
        assert [script.read_line() for script in scripts] == ["done"] * processes
    finally:
        for script in scripts:
            script.__exit__(None, None, None)


def assert_one_chain(root: Path, *, processes: int, publishes: int) -> None:
    with omnigraph.open(root) as graph:
        commits = graph.commits()
        by_user = [commit for commit in commits if (commit.actor_id or "").startswith("process-")]
        assert len(by_user) == processes * publishes
        parents = [commit.parent_commit_id for commit in commits]
        assert parents[:-1] == [commit.graph_commit_id for commit in commits[1:]]
        assert parents[-1] is None
        for number in range(processes):
            assert graph.table(f"Type{number}").num_rows == publishes
        assert graph.recoveries() == []
    assert recovery_files(root) == ()


def test_four_processes_publish_on_one_branch(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, FOUR_TYPES).close()

    publish_together(root, processes=4, publishes=8)

    assert_one_chain(root, processes=4, publishes=8)


@pytest.mark.slow
@pytest.mark.case("engine", 322)
def test_four_processes_with_a_hundred_publishes_each_all_land(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, FOUR_TYPES).close()

    publish_together(root, processes=4, publishes=100)

    assert_one_chain(root, processes=4, publishes=100)
