"""Syncs that fail, versions that a power cut hollowed out, and opens that fail late."""

import errno
import json
import os
import stat
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, InjectedFault, failpoint
from omnigraph.storage.control.durability import Durability, Syncer, SyncFailed
from omnigraph.storage.files.version_file import version_file_name
from tests.support.books import assert_reopening_changes_nothing, assert_settled, books, contents_of
from tests.support.forked import Forked
from tests.support.protocol import BEFORE, WRITERS, Contents, give_up, sidecars, with_extra, write_everywhere
from tests.support.seam import internals, patched

AFTER = WRITERS["insert"].after
OPEN = "import sys, omnigraph; omnigraph.open(sys.argv[1])"


# Syncs


@pytest.mark.case("engine", 365)
@pytest.mark.parametrize(
    ("place", "error", "unfinished"),
    [
        ("durability.pre_staged_sync", SyncFailed, 0),
        ("durability.pre_table_sync", RecoveryRequired, 1),
        ("durability.pre_manifest_sync", RecoveryRequired, 1),
    ],
)
def test_a_write_that_could_not_be_synced_goes_back(
    place: str, error: type[Exception], unfinished: int, root: Path
) -> None:
    """A second sync would succeed over what the first one lost: nothing is synced again and published."""
    with omnigraph.open(root) as graph:
        with failpoint(place, "raise:once"), pytest.raises(error):
            WRITERS["insert"].run(graph)
        assert books(root).contents == contents_of(graph) == BEFORE
        assert len(sidecars(root)) == unfinished

        write_everywhere(graph)

    found = assert_settled(root, with_extra(BEFORE), recoveries=unfinished)
    assert {recovery.kind for recovery in found.recoveries} <= {"RolledBack"}
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 365)
def test_a_recovery_that_cannot_sync_goes_back(root: Path) -> None:
    give_up(root, "insert", "P3")
    with failpoint("durability.pre_table_sync", "raise:once"), pytest.raises(SyncFailed):
        omnigraph.open(root)

    with omnigraph.open(root) as graph:
        assert contents_of(graph) == BEFORE
        write_everywhere(graph)
    found = assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert found.recoveries[0].kind == "RolledBack"


def test_a_publish_that_can_be_neither_synced_nor_taken_back_is_taken_back_by_recovery(root: Path) -> None:
    """The second sync is the one of the commit that takes it back: by then the publish is undone."""
    with omnigraph.open(root) as graph:
        with failpoint("durability.pre_manifest_sync", "raise:2"), pytest.raises(RecoveryRequired):
            WRITERS["insert"].run(graph)
        write_everywhere(graph)
    assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 365)
def test_a_handle_that_saw_a_publish_forgets_it_when_it_is_taken_back(root: Path) -> None:
    seen: list[Contents] = []
    with omnigraph.open(root) as graph, omnigraph.open(root) as watcher:

        def look_and_fail() -> None:
            seen.append(contents_of(watcher))
            if len(seen) == 1:
                raise InjectedFault("a sync failed")

        with (
            failpoint("durability.pre_manifest_sync", "call", look_and_fail),
            pytest.raises(RecoveryRequired),
        ):
            WRITERS["insert"].run(graph)
        assert seen[0] == AFTER, "a publish is visible before it is synced"
        assert contents_of(watcher) == BEFORE

        write_everywhere(graph)

        assert contents_of(watcher) == with_extra(BEFORE)


@pytest.mark.case("engine", 366)
def test_a_file_whose_sync_failed_is_never_synced_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = next(root.glob("*.pg"))
    syncer = Syncer(Durability.FULL, is_local=True, root=str(root))
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is dying")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(SyncFailed):
        syncer.sync([str(failing)], stage="table")
    monkeypatch.setattr(os, "fsync", fsync)

    with pytest.raises(SyncFailed, match="an earlier sync failed"):
        syncer.sync([str(failing)], stage="table")


# Syncs that fail for good, and the processes behind


class Disk:
    """Fails to sync, while it is told to, and knows what it failed on and what is synced again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures_left = 0
        self.failed: set[tuple[Path, int]] = set()
        self.again: list[Path] = []
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._sync)

    def fail(self, times: int = 10**9) -> None:
        self.failures_left = times

    def _sync(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        key = (Path(f"/proc/self/fd/{descriptor}").readlink(), found.st_ino)
        if self.failures_left and not stat.S_ISDIR(found.st_mode):
            self.failures_left -= 1
            self.failed.add(key)
            raise OSError(errno.EIO, "the disk is dying")
        if key in self.failed:
            self.again.append(key[0])
        self._fsync(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.mark.skipif(sys.platform != "linux", reason="the disk names files by their descriptors")
@pytest.mark.case("engine", 365)
@pytest.mark.case("engine", 428)
@pytest.mark.parametrize(
    "place",
    [
        "write.post_sidecar_pre_commit",
        "durability.pre_table_sync",
        "publish.before_update",
        "durability.pre_manifest_sync",
    ],
)
def test_a_write_whose_every_sync_fails_is_undone_by_the_next_process(
    place: str, root: Path, disk: Disk
) -> None:
    with omnigraph.open(root) as graph, failpoint(place, "call", disk.fail), pytest.raises(RecoveryRequired):
        WRITERS["insert"].run(graph)
    disk.fail(times=0)

    with omnigraph.open(root) as graph:
        assert contents_of(graph) == BEFORE
        graph.create_branch("june")
        write_everywhere(graph)

    found = assert_settled(root, with_extra(BEFORE), recoveries=1)
    assert found.recoveries[0].kind == "RolledBack"
    assert disk.failed
    assert disk.again == []
    assert_reopening_changes_nothing(root)


@pytest.mark.skipif(sys.platform != "linux", reason="the disk names files by their descriptors")
@pytest.mark.case("engine", 428)
def test_a_recovery_whose_every_sync_fails_goes_back(root: Path, disk: Disk) -> None:
    give_up(root, "insert", "P3")
    with failpoint("durability.pre_table_sync", "call", disk.fail), pytest.raises(SyncFailed):
        omnigraph.open(root)
    disk.fail(times=0)

    with omnigraph.open(root) as graph:
        assert contents_of(graph) == BEFORE
    assert disk.again == []


@pytest.mark.skipif(sys.platform != "linux", reason="the disk names files by their descriptors")
@pytest.mark.case("engine", 428)
@pytest.mark.parametrize("failures", [1, 2])
def test_a_manifest_compaction_that_cannot_be_synced_is_taken_back(
    failures: int,
    root: Path,
    disk: Disk,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The second failure is that of the version which takes it back."""
    patched(monkeypatch, "omnigraph.commit.publish.FRAGMENTS_MAX", 3)
    with omnigraph.open(root) as graph, omnigraph.open(root) as watcher:
        with failpoint("publish.before_auto_compaction", "call", lambda: disk.fail(failures)):
            WRITERS["insert"].run(graph)
        assert "the manifest could not be compacted" in caplog.text
        assert (len(disk.failed), disk.failures_left) == (failures, 0)
        patched(monkeypatch, "omnigraph.commit.publish.FRAGMENTS_MAX", 80)
        assert contents_of(watcher) == contents_of(graph) == AFTER

        write_everywhere(graph)

        assert contents_of(watcher) == with_extra(AFTER)
    with omnigraph.open(root) as other:
        other.create_branch("june")
        patched(monkeypatch, "omnigraph.commit.publish.FRAGMENTS_MAX", 3)
        other.mutate('query touch() { update Person set { age: 30 } where name = "ann" }')
    assert disk.again == []
    assert_settled(root, with_extra(AFTER), recoveries=0)
    assert_reopening_changes_nothing(root)


# A commit that could not be synced, and that others have built on


def build_on_a_doubtful_commit(root: Path, durability: str) -> str:
    """Leave a commit whose sidecar says that it goes back, below another one; return the first one's id."""
    give_up(root, "insert", "P5")
    (path,) = sidecars(root)
    text = json.loads(path.read_text())
    away = path.rename(root / "away")
    with omnigraph.open(root, durability=durability) as graph:
        graph.mutate('query add() { insert Company { name: "built" } }')
    away.unlink()
    path.write_text(json.dumps(text | {"recovery_plan": {"kind": "RolledBack", "outcomes": []}}))
    return str(text["graph_commit_id"])


@pytest.mark.case("engine", 427)
def test_a_commit_that_others_synced_and_built_on_has_landed(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit_id = build_on_a_doubtful_commit(root, "full")

    with omnigraph.open(root) as graph:
        assert f"commit {commit_id} on branch 'main' stands" in caplog.text
        assert contents_of(graph)["Person"] == AFTER["Person"]
        write_everywhere(graph)
    assert sidecars(root) == ()
    assert [recovery.kind for recovery in books(root).recoveries] == ["RolledForward"]
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 427)
def test_a_commit_that_nobody_synced_and_others_built_on_waits_for_a_decision(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit_id = build_on_a_doubtful_commit(root, "process")

    with omnigraph.open(root) as graph:
        assert f"commit {commit_id} on branch 'main' could not be synced" in caplog.text
        assert contents_of(graph)["Person"] == AFTER["Person"]
        with pytest.raises(RecoveryRequired, match=r'durability="process".* omnigraph repair --to 2$'):
            graph.mutate('query touch() { update Person set { age: 30 } where name = "ann" }')
        graph.create_branch("june")
        graph.mutate('query add() { insert Company { name: "june" } }', branch="june")
        assert len(sidecars(root)) == 1

        omnigraph.open(root, durability="process").close()

        assert sidecars(root) == ()
        write_everywhere(graph)
    assert_reopening_changes_nothing(root)


def test_process_durability_syncs_nothing(root: Path) -> None:
    places = ("durability.pre_staged_sync", "durability.pre_table_sync", "durability.pre_manifest_sync")
    with omnigraph.open(root, durability="process") as graph:
        for place in places:
            with failpoint(place, "raise"):
                write_everywhere(graph) if place == places[0] else graph.refresh()

    assert_settled(root, with_extra(BEFORE), recoveries=0)


# The handle that publishes


@pytest.mark.case("engine", 341)
def test_a_publish_takes_a_fresh_handle_when_its_own_grew_too_old(root: Path) -> None:
    """The clock goes on while the machine sleeps between the look at the manifest and the merge."""
    with omnigraph.open(root) as graph:
        publisher = internals(graph).publisher
        now = [0.0]
        sleeps = [publisher._horizon_s]
        publisher._boot_clock = lambda: now[0]

        def sleep() -> None:
            now[0] += sleeps.pop() if sleeps else 0

        attempts: list[float] = []
        with (
            failpoint("publish.post_open_pre_update", "call", sleep),
            failpoint("publish.load_state_retryable_contention", "call", lambda: attempts.append(now[0])),
        ):
            WRITERS["insert"].run(graph)

    assert attempts == [0.0, publisher._horizon_s]
    assert_settled(root, AFTER, recoveries=0)


# Hollow versions


def hollow(root: Path, table_key: str) -> None:
    """Empty the newest version of a table, as a power cut leaves a file that was never synced."""
    found = books(root)
    with omnigraph.open(root, mode="ro") as graph:
        location = graph.snapshot().entry(table_key).location
    path = root / location / version_file_name(found.heads[table_key])
    assert found.heads[table_key] > found.pins[table_key], "an acknowledged version is synced"
    path.write_bytes(b"")


@pytest.mark.case("engine", 331)
@pytest.mark.parametrize("place", ["quarantine.pre_move", "quarantine.post_move_pre_audit"])
def test_a_quarantine_that_is_killed_is_taken_up_by_the_next_open(place: str, root: Path) -> None:
    give_up(root, "insert", "P2")
    hollow(root, "edge:Knows")
    with Forked(OPEN, root, **{ENVIRONMENT: f"{place}=exit"}) as script:
        assert script.wait() == EXIT_STATUS

    with omnigraph.open(root) as graph:
        kinds = [recovery.kind for recovery in books(root).recoveries]
        assert sorted(kinds) == ["RolledBack", "VersionQuarantined"]
        assert contents_of(graph) == BEFORE
        write_everywhere(graph)

    assert len(books(root).recoveries) == 2
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 332)
@pytest.mark.parametrize(("point", "undone"), [("P2", ()), ("P3", ("node:Person",))])
def test_a_commit_that_was_quarantined_never_happened(
    point: str, undone: tuple[str, ...], root: Path
) -> None:
    give_up(root, "insert", point)
    hollow(root, "edge:Knows")

    with omnigraph.open(root) as graph:
        found = books(root)
        quarantined = next(row for row in found.recoveries if row.kind == "VersionQuarantined")
        rolled_back = next(row for row in found.recoveries if row.kind == "RolledBack")
        assert quarantined.outcomes == (("edge:Knows", 3, 2),)
        assert rolled_back.tables == undone
        assert (found.contents, found.heads) == (BEFORE, found.pins)
        write_everywhere(graph)

    assert books(root).contents == with_extra(BEFORE)
    assert_reopening_changes_nothing(root)


# Late failures of an open and a refresh


def test_an_open_that_fails_after_its_sweep_has_recovered_all_the_same(root: Path) -> None:
    give_up(root, "insert", "P3")
    with failpoint("open.before_schema_contract_read", "raise"), pytest.raises(InjectedFault):
        omnigraph.open(root)

    assert_settled(root, AFTER, recoveries=1)
    assert_reopening_changes_nothing(root)


def test_a_refresh_that_fails_leaves_the_handle_as_it_was(root: Path) -> None:
    with omnigraph.open(root) as graph:
        catalog = internals(graph).catalog
        with failpoint("refresh.before_schema_reload", "raise"), pytest.raises(InjectedFault):
            graph.refresh()

        assert internals(graph).catalog is catalog
        write_everywhere(graph)
    assert_settled(root, with_extra(BEFORE), recoveries=0)


# An answer that was lost


@pytest.mark.case("engine", 368)
def test_a_publish_that_landed_and_is_told_of_contention_has_landed(root: Path) -> None:
    """The library may report contention for a write of its own that it repeated after a lost answer."""
    with omnigraph.open(root) as graph:
        with failpoint("publish.after_update_ack_lost", "contention"):
            WRITERS["insert"].run(graph)

        assert contents_of(graph) == AFTER
        assert len(graph.commits()) == len({commit.graph_commit_id for commit in graph.commits()})
    assert_settled(root, AFTER, recoveries=0)


@pytest.mark.case("engine", 368)
def test_a_recovery_commit_is_never_its_own_parent(root: Path) -> None:
    give_up(root, "insert", "P3")
    with failpoint("publish.after_update_ack_lost", "contention"):
        omnigraph.open(root).close()

    with omnigraph.open(root) as graph:
        commits = graph.commits()
        assert all(commit.parent_commit_id != commit.graph_commit_id for commit in commits)
        parents = [commit.parent_commit_id for commit in commits]
        assert len(set(parents)) == len(parents), "the history forks"
    assert_settled(root, AFTER, recoveries=1)
