"""Several sidecars of one table: the oldest comes first, however they are listed and whoever heals."""

from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.recovery.outcome import SweepResult
from omnigraph.commit.recovery.pending import list_pending, lock_path
from omnigraph.commit.recovery.sweep import SweepMode, sweep
from omnigraph.commit.sidecar import Sidecar
from omnigraph.commit.sidecar_reader import read_sidecar
from omnigraph.core.ids import new_ulid
from omnigraph.graph.graph import Graph
from omnigraph.storage.control.locks import HeldLock, try_lock
from tests.support.protocol import give_up, sidecars
from tests.support.seam import internals, patched

MANY = 12  # a folder lists so many files in order once in 479 million times


def left_by_a_writer(root: Path) -> Sidecar:
    """Return the sidecar of a write that ended before its first commit."""
    give_up(root, "insert", "P1")
    (path,) = sidecars(root)
    return read_sidecar(f"{path.parent.name}/{path.name}", path.read_text())


def another(root: Path, sidecar: Sidecar) -> Sidecar:
    """Leave a younger sidecar of the same tables."""
    younger = replace(
        sidecar, operation_id=new_ulid(), graph_commit_id=new_ulid(), recovery_commit_id=new_ulid()
    )
    (root / younger.name).write_text(younger.to_text())
    return younger


def taken(graph: Graph, sidecar: Sidecar) -> HeldLock:
    """Take the lock of a sidecar, as another healer does."""
    path = lock_path(internals(graph).parts, sidecar.operation_id)
    assert path is not None
    lock = try_lock(path)
    assert lock is not None
    return lock


def heal(graph: Graph) -> dict[str, SweepResult]:
    return sweep(internals(graph).parts, internals(graph).publisher, SweepMode.HEAL)


def test_sidecars_are_listed_oldest_first(root: Path) -> None:
    oldest = left_by_a_writer(root)
    ids = sorted(new_ulid() for _ in range(MANY))
    for operation_id in [*ids[1::2], *ids[::2]]:
        copy = replace(oldest, operation_id=operation_id)
        (root / copy.name).write_text(copy.to_text())

    with omnigraph.open(root, mode="ro") as graph:
        pending = list_pending(internals(graph).parts)

    assert [found.operation_id for found in pending] == [oldest.operation_id, *ids]


def test_the_healer_of_the_older_sidecar_waits_for_one_of_a_younger_to_let_go(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = left_by_a_writer(root)
    younger = another(root, older)
    with omnigraph.open(root, mode="ro") as graph:
        locks = [taken(graph, younger)]
        patched(
            monkeypatch, "omnigraph.commit.recovery.sweep._pause", lambda: locks.pop().release(remove=False)
        )

        results = heal(graph)

    assert locks == []
    assert results == {older.operation_id: SweepResult.DONE, younger.operation_id: SweepResult.DONE}


def test_the_healer_of_the_younger_sidecar_lets_go_at_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = left_by_a_writer(root)
    younger = another(root, older)
    pauses: list[bool] = []
    patched(monkeypatch, "omnigraph.commit.recovery.sweep._pause", lambda: pauses.append(True))
    with omnigraph.open(root, mode="ro") as graph:
        lock = taken(graph, older)

        results = heal(graph)

        lock.release(remove=False)
    assert results == {
        older.operation_id: SweepResult.LEFT_ALIVE,
        younger.operation_id: SweepResult.LEFT_ALIVE,
    }
    assert pauses == []
