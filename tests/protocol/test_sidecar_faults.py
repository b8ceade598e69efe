"""Sidecars that cannot be written, listed, read, deleted or understood, and audits that fail."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.recovery.sweep import SweepMode, sweep
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import (
    InvariantViolation,
    RecoveryRequired,
    SidecarCorrupt,
    SidecarTooNew,
    StorageError,
)
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.history.commits import RECOVERY_ACTOR
from omnigraph.storage.files.version_file import version_file_name
from tests.protocol.conftest import NewRoot
from tests.support.books import (
    assert_reopening_changes_nothing,
    assert_settled,
    books,
    contents_of,
    fingerprint,
    recovery_files,
)
from tests.support.protocol import BEFORE, WRITERS, give_up, sidecars, with_extra, write_everywhere
from tests.support.seam import internals

AFTER_INSERT = WRITERS["insert"].after
OPERATION = "01J00000000000000000000000"


# Phase A


@pytest.mark.case("engine", 187)
@pytest.mark.parametrize("writer", WRITERS.values(), ids=str)
@pytest.mark.parametrize(
    "place", ["recovery.sidecar_write", "lock.post_create_pre_flock", "lock.post_flock_pre_sidecar"]
)
def test_a_writer_that_cannot_say_what_it_will_do_does_nothing(
    writer: str, place: str, root_for: NewRoot
) -> None:
    chosen = WRITERS[str(writer)]
    root = root_for(chosen.name)
    heads = books(root).heads
    skip = "skip:1," if chosen.lands_first else ""  # the write before upkeep has a sidecar of its own
    with omnigraph.open(root) as graph:
        with failpoint(place, f"{skip}raise"):
            if chosen.lands_first:
                chosen.run(graph)
            else:
                with pytest.raises(InjectedFault):
                    chosen.run(graph)

        found = assert_settled(root, chosen.after if chosen.lands_first else BEFORE, recoveries=0)
        moved = {key for key in heads if found.heads[key] != heads[key]}
        assert moved == ({"node:Person"} if chosen.lands_first else set())
        write_everywhere(graph)
    assert_reopening_changes_nothing(root)


def test_a_sidecar_that_was_written_but_not_synced_is_taken_back(root: Path) -> None:
    """A full disk or a dying one can fail after the rename: the file is there and the write has failed."""
    folder = root / RECOVERY_DIR
    folder.mkdir(exist_ok=True)
    with omnigraph.open(root) as graph:
        adapter = internals(graph).parts.adapter
        sync = adapter._sync_folder  # type: ignore[attr-defined]

        def fail_in_recovery(path: Path) -> None:
            if path == folder:
                raise OSError(5, "Input/output error")
            sync(path)

        adapter._sync_folder = fail_in_recovery  # type: ignore[attr-defined]
        with pytest.raises(StorageError, match="Input/output error"):
            WRITERS["insert"].run(graph)
        adapter._sync_folder = sync  # type: ignore[attr-defined]

        assert_settled(root, BEFORE, recoveries=0)
        write_everywhere(graph)
    assert_settled(root, with_extra(BEFORE), recoveries=0)


# Listing and reading


@pytest.mark.case("engine", 190)
def test_a_folder_that_cannot_be_listed_fails_writes_and_opens_but_not_readers(root: Path) -> None:
    graph = omnigraph.open(root)
    with failpoint("recovery.sidecar_list", "raise"):
        with pytest.raises(InjectedFault):
            WRITERS["insert"].run(graph)
        with pytest.raises(InjectedFault):
            omnigraph.open(root)
        assert_settled(root, BEFORE, recoveries=0)

    WRITERS["insert"].run(graph)
    omnigraph.open(root).close()
    assert_settled(root, AFTER_INSERT, recoveries=0)


@pytest.mark.case("engine", 191)
def test_a_sidecar_that_cannot_be_read_is_loud(root: Path) -> None:
    give_up(root, "insert", "P3")
    before = fingerprint(root)
    with failpoint("recovery.sidecar_read", "raise"):
        with pytest.raises(InjectedFault):
            omnigraph.open(root)
        assert books(root).contents == BEFORE
    assert fingerprint(root) == before

    omnigraph.open(root).close()
    assert_settled(root, AFTER_INSERT, recoveries=1)


@pytest.mark.case("engine", 191)
@pytest.mark.parametrize("entry", ["open", "heal", "read-only"])
def test_a_sidecar_that_is_gone_when_it_is_read_was_finished_by_its_writer(entry: str, root: Path) -> None:
    graph = omnigraph.open(root)
    give_up(root, "insert", "P1")
    (sidecar,) = sidecars(root)

    with failpoint("recovery.post_list_pre_read", "call", lambda: sidecar.unlink(missing_ok=True)):
        if entry == "heal":
            write_everywhere(graph)
        else:
            sidecar.unlink() if entry == "read-only" else None
            omnigraph.open(root, mode="ro" if entry == "read-only" else "rw").close()

    omnigraph.open(root).close()
    assert_settled(root, with_extra(BEFORE) if entry == "heal" else BEFORE, recoveries=0)


@pytest.mark.case("engine", 192)
@pytest.mark.case("engine", 401)
@pytest.mark.case("surfaces", 106)
@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 2}', '{"schema_version": 1}', "no json", "[]"])
def test_a_corrupt_sidecar_stops_writers_and_stays(text: str, root: Path) -> None:
    graph = omnigraph.open(root)
    path = _put(root, text)

    with pytest.raises(SidecarCorrupt, match=OPERATION):
        WRITERS["insert"].run(graph)
    with pytest.raises(SidecarCorrupt, match=OPERATION):
        graph.refresh()
    with pytest.raises(SidecarCorrupt, match=f"{OPERATION}.json"):
        omnigraph.open(root)
    with omnigraph.open(root, mode="ro") as reader:
        assert contents_of(reader) == BEFORE

    assert path.read_text() == text
    assert books(root).contents == BEFORE
    path.unlink()
    WRITERS["insert"].run(graph)


@pytest.mark.case("engine", 193)
def test_a_sidecar_of_a_newer_build_stops_writers_and_stays(root: Path) -> None:
    graph = omnigraph.open(root)
    path = _put(root, '{"schema_version": 99}')

    with pytest.raises(SidecarTooNew, match="upgrade") as caught:
        WRITERS["insert"].run(graph)
    with pytest.raises(SidecarTooNew):
        omnigraph.open(root)

    assert (caught.value.uri, caught.value.found) == (f"{RECOVERY_DIR}/{path.name}", 99)
    assert path.is_file()
    assert books(root).contents == BEFORE


@pytest.mark.case("engine", 194)
def test_other_files_in_the_folder_are_nobodys_and_a_lone_lock_is_litter(root: Path) -> None:
    note = _put(root, "a note", suffix=".txt")
    lock = _put(root, "", suffix=".lock")
    with omnigraph.open(root) as graph:
        assert recovery_files(root) == (note.name,)
        lock.touch()
        WRITERS["insert"].run(graph)
        assert lock.exists()  # healing leaves it: only an open sweeps fully

    omnigraph.open(root).close()

    assert recovery_files(root) == (note.name,)
    found = books(root)
    assert (found.contents, found.recoveries, found.recovery_commits) == (AFTER_INSERT, (), ())


# The audit


@pytest.mark.case("engine", 195)
@pytest.mark.parametrize("entry", ["open", "write"])
def test_an_audit_that_cannot_be_written_keeps_the_sidecar(entry: str, root: Path) -> None:
    graph = omnigraph.open(root)
    give_up(root, "insert", "P3")
    with failpoint("recovery.record_audit", "raise"), pytest.raises(InjectedFault):
        omnigraph.open(root) if entry == "open" else write_everywhere(graph)
    found = books(root)
    assert (found.contents, len(found.recovery_commits)) == (AFTER_INSERT, 1)
    assert found.recoveries == ()
    assert len(sidecars(root)) == 1

    omnigraph.open(root).close() if entry == "open" else graph.refresh()

    assert_settled(root, AFTER_INSERT, recoveries=1)
    assert_reopening_changes_nothing(root)


@pytest.mark.case("engine", 196)
def test_two_healers_may_create_the_audit_at_once(root: Path) -> None:
    handles = [omnigraph.open(root), omnigraph.open(root)]
    update = 'query update() { update Company set { city: "Graz" } where name = "acme" }'
    with failpoint("write.post_finalize_pre_publisher", "raise"):
        for mutation in (update, 'query insert() { insert Person { name: "dan", age: 50 } }'):
            with pytest.raises(RecoveryRequired):
                handles[0].mutate(mutation)
            (root / RECOVERY_DIR / "aside").mkdir(exist_ok=True)
            for path in sidecars(root):
                path.rename(root / RECOVERY_DIR / "aside" / path.name)
    for path in (root / RECOVERY_DIR / "aside").iterdir():
        path.rename(root / RECOVERY_DIR / path.name)
    (root / RECOVERY_DIR / "aside").rmdir()
    together = threading.Barrier(2, timeout=60)

    def meet() -> None:
        together.wait()

    with failpoint("recovery.record_audit", "call", meet), ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(handle.refresh) for handle in handles]:
            done.result()

    found = assert_settled(
        root,
        {
            **BEFORE,
            "Person": BEFORE["Person"] | {("dan", 50)},
            "Company": frozenset({("acme", "Graz"), ("ibex", None)}),
        },
        recoveries=2,
    )
    assert {recovery.kind for recovery in found.recoveries} == {"RolledForward"}


@pytest.mark.case("engine", 201)
def test_a_recovery_for_nobody_says_so(root: Path) -> None:
    with omnigraph.open(root) as graph:
        with failpoint("write.post_table_commit", "raise"), pytest.raises(RecoveryRequired):
            graph.mutate('query touch() { update Person set { age: 31 } where name = "ann" }')
        graph.refresh()

        found = assert_settled(root, {**BEFORE, "Person": _with_ann(31)}, recoveries=1)
        assert found.recoveries[0].actor is None
        assert graph.commits(limit=1)[0].actor_id == RECOVERY_ACTOR


# What recovery itself cannot make sense of


@pytest.mark.case("engine", 199)
def test_a_table_behind_its_pin_stops_the_open_and_is_left_by_a_heal(root: Path) -> None:
    graph = omnigraph.open(root)
    warnings: list[str] = []
    internals(graph).parts = replace(internals(graph).parts, warn=warnings.append)
    give_up(root, "insert", "P1")
    entry = graph.snapshot().entry("edge:Knows")
    (root / entry.location / version_file_name(entry.version)).unlink()
    before = fingerprint(root)

    with pytest.raises(GraphDamaged, match=f"{version_file_name(entry.version)}' is missing"):
        omnigraph.open(root)
    parts = internals(graph).parts
    with pytest.raises(InvariantViolation, match="edge:Knows is at version 1, published at 2"):
        sweep(parts, internals(graph).publisher, SweepMode.FULL)  # on a disk another look comes first
    graph.refresh()

    assert fingerprint(root) == before
    (sidecar,) = sidecars(root)
    assert any(sidecar.stem in message and "behind its published version" in message for message in warnings)


@pytest.mark.case("engine", 200)
@pytest.mark.parametrize("writer", ["overwrite", "append"])
def test_a_sidecar_that_expected_something_else_is_undone(writer: str, root: Path) -> None:
    graph = omnigraph.open(root)
    give_up(root, writer, "P3")
    (sidecar,) = sidecars(root)
    document = json.loads(sidecar.read_text())
    for table in document["tables"]:
        table["expected_version"] -= 1
    sidecar.write_text(json.dumps(document))
    heads = books(root).heads

    graph.refresh()

    if writer == "overwrite":
        assert (books(root).heads, sidecars(root)) == (heads, (sidecar,))
        omnigraph.open(root).close()
    found = assert_settled(root, BEFORE, recoveries=1)
    assert found.recoveries[0].kind == "RolledBack"
    assert found.recoveries[0].tables == WRITERS[writer].tables
    write_everywhere(graph)
    assert_settled(root, with_extra(BEFORE), recoveries=1)


def _put(root: Path, text: str, suffix: str = ".json") -> Path:
    path = root / RECOVERY_DIR / f"{OPERATION}{suffix}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def _with_ann(age: int) -> frozenset[tuple[object, ...]]:
    return frozenset({("ann", age), ("bob", 40), ("cid", None)})
