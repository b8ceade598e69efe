"""Running a write again that lost a race.

A write is a declaration: when another writer was first, running it on the new head is what its caller would
do by hand. So the engine does, from a fresh snapshot, validation included, until a time has passed; the
pauses grow and are random, so that processes which met once do not go on meeting.

Index builds and upkeep move tables without changing a row. A write that meets one of them is run again
whatever its caller asked for, a few times.

A1  Nothing is run again once a part of it has had an effect, or may have had one.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from omnigraph.commit.recovery.classify import is_layout_only
from omnigraph.commit.recovery.fence import adopt
from omnigraph.commit.recovery.pending import list_pending, lock_path, reread
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.cancellation import pause
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import (
    DriftNeedsRepair,
    ExpectedVersionMismatch,
    HistoricalVersionReclaimed,
    ReadSetChanged,
    RecoveryRequired,
    StorageError,
)
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph
from omnigraph.storage.control.locks import wait_until_free

MAINTENANCE_RETRIES_MAX = 4  # upkeep runs once in 64 commits: meeting it even twice in a row is rare
PAUSE_S = 0.004  # the longest pause after the first lost race: about what a small commit takes at its door
PAUSE_S_MAX = 0.25  # it doubles up to this: a writer should not sleep through many of its chances
LOOK_EVERY_S = 0.1  # at a sidecar on an object store, each time by a request
MAINTENANCE_WAIT_S = 5.0  # an index build of a large table takes longer: then the caller is told
Attempted = TypeVar("Attempted")
Lost = ExpectedVersionMismatch | ReadSetChanged  # the two ways to learn that another writer was first


class RetryTime:
    """How long lost races are run again: the time counts from the first one."""

    def __init__(self, retry_s: float) -> None:
        """Take how long; with 0 no lost race is run again."""
        self._retry_s = retry_s
        self._deadline: float | None = None
        self._pause_s = PAUSE_S
        self._random = random.Random()  # noqa: S311 - pauses, not secrets

    @property
    def left_s(self) -> float:
        """How much of the time is left; negative if it has passed."""
        if self._deadline is None:
            self._deadline = boot_clock() + self._retry_s
        return self._deadline - boot_clock()

    @property
    def is_over(self) -> bool:
        """Whether a race that was lost now is not run again."""
        return self._retry_s == 0 or self.left_s <= 0

    def pause(self) -> None:
        """Wait a moment, for longer each time, and not beyond the end."""
        wait_s = self._random.uniform(0, self._pause_s)
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
        pause(min(wait_s, self.left_s))


@dataclass(slots=True)
class Begun:
    """The state that an attempt began on, once it has looked."""

    base: ManifestState | None = None


def retry_on_conflict(
    graph: OpenGraph,
    branch: str,
    attempt: Callable[[ManifestState], Attempted],
    *,
    time: RetryTime,
    lost: Callable[[Lost], None] = lambda _conflict: None,
) -> Attempted:
    """Run an attempt on the newest state, and again on a newer one where that is safe (A1).

    `time` is how long races lost to rows of others are run again; `lost` is told of each that is.

    Raises:
        ConflictError: another writer's rows came in between, and the time has passed.
    """

    def looked_up(begun: Begun) -> Attempted:
        begun.base = graph.state(branch)
        return attempt(begun.base)

    return retry_begun(graph, branch, looked_up, time=time, lost=lost)


def retry_begun(
    graph: OpenGraph,
    branch: str,
    attempt: Callable[[Begun], Attempted],
    *,
    time: RetryTime,
    lost: Callable[[Lost], None] = lambda _conflict: None,
) -> Attempted:
    """Do the same with an attempt that looks for the newest state itself, and says which it has begun on.

    Raises:
        ConflictError: another writer's rows came in between, and the time has passed.
    """
    maintenance = MAINTENANCE_RETRIES_MAX
    gone: tuple[str, int] | None = None
    while True:
        begun = Begun()
        try:
            return attempt(begun)
        except (ExpectedVersionMismatch, ReadSetChanged) as conflict:
            if conflict.recovery_operation_id is not None:
                raise
            base = begun.base or graph.state(branch)
            if graph.heal_late():
                continue
            if maintenance and _is_maintenance(graph, base, conflict):
                maintenance -= 1
            elif maintenance and _is_left_by_layout(graph, conflict):
                maintenance -= 1
                graph.heal()
            elif time.is_over:
                raise
            else:
                lost(conflict)
                _await_winner(graph, conflict, time)
        except HistoricalVersionReclaimed as removed:
            # What a branch shows is never removed: somebody has replaced it, and cleaned up, since we looked.
            base = begun.base or graph.state(branch)
            mismatch = _as_conflict(graph, base, removed)
            if mismatch is None:
                if gone == (removed.table_key, removed.version):
                    raise
                gone = removed.table_key, removed.version
            elif time.is_over:
                raise mismatch from removed
            else:
                lost(mismatch)
        except RecoveryRequired as blocked:
            # Upkeep that lost its race leaves work that only the next healing finishes; a write of ours that
            # ended unfinished is never of that kind.
            if not maintenance or not _is_left_by_layout_write(graph, blocked):
                raise
            maintenance -= 1
            graph.heal()
        except DriftNeedsRepair as drift:
            # A writer that was taken for dead may have built an index or folded files late.
            if not maintenance or not adopt(graph.parts, graph.publisher, branch, drift.table_key):
                raise
            maintenance -= 1


def _await_winner(graph: OpenGraph, conflict: Lost, time: RetryTime) -> None:
    """Wait until the writer that was first is through, and a moment more; settle what it left if it died."""
    operation_id = getattr(conflict, "in_flight_operation_id", None)
    if operation_id is not None:
        _is_through(graph, operation_id, time.left_s)
    time.pause()
    graph.heal()


def _as_conflict(
    graph: OpenGraph, base: ManifestState, removed: HistoricalVersionReclaimed
) -> ExpectedVersionMismatch | None:
    """Return the conflict that a removed version stands for; `None` where only another try can tell.

    That is so after maintenance, which changes no row, and where another branch that was read has moved.
    """
    now = graph.state(base.branch.name)
    if now.sequence == base.sequence or _only_maintenance_since(base, now):
        return None
    places = {entry.location: entry.table_key for entry in base.tables.entries()}
    table_key = places.get(removed.table_key, removed.table_key)
    actual = {entry.table_key: entry.version for entry in now.tables.entries()}.get(table_key, 0)
    return ExpectedVersionMismatch(table_key=table_key, expected=removed.version, actual=actual)


def _is_left_by_layout(graph: OpenGraph, conflict: Lost) -> bool:
    """Return whether maintenance that ended half-way, perhaps on a thread beside us, stands in the way."""
    table_key = getattr(conflict, "table_key", None)
    return any(
        is_layout_only(found.sidecar.writer_kind) and not found.is_alive
        for found in list_pending(graph.parts)
        if any(table.table_key == table_key for table in found.sidecar.tables)
    )


def _is_left_by_layout_write(graph: OpenGraph, blocked: RecoveryRequired) -> bool:
    """Return whether what is unfinished is maintenance; where nobody can say now, it may be our own write."""
    try:
        sidecar = reread(graph.parts, f"{RECOVERY_DIR}/{blocked.operation_id}.json")
    except StorageError as error:  # the caller must not take this for a write without effect
        blocked.add_note(f"what is left of it could not be looked at: {error}")
        return False
    return sidecar is not None and is_layout_only(sidecar.writer_kind)


def _is_maintenance(graph: OpenGraph, base: ManifestState, conflict: Lost) -> bool:
    """Return whether only index builds and upkeep are in the way; waits for one that is running."""
    operation_id = getattr(conflict, "in_flight_operation_id", None)
    if operation_id is not None:
        return _awaited_layout_write(graph, operation_id)
    return _only_maintenance_since(base, graph.state(base.branch.name))


def _awaited_layout_write(graph: OpenGraph, operation_id: str) -> bool:
    sidecar = reread(graph.parts, f"{RECOVERY_DIR}/{operation_id}.json")
    if sidecar is None:
        return True
    if not is_layout_only(sidecar.writer_kind):
        return False
    return _is_through(graph, operation_id, MAINTENANCE_WAIT_S)


def _is_through(graph: OpenGraph, operation_id: str, wait_s: float) -> bool:
    """Wait for the end of a write of another process, and return whether it came in time."""
    path = lock_path(graph.parts, operation_id)
    if path is not None:
        return wait_until_free(path, wait_s)
    deadline = boot_clock() + wait_s  # on an object store only its sidecar tells
    while boot_clock() < deadline:
        if reread(graph.parts, f"{RECOVERY_DIR}/{operation_id}.json") is None:
            return True
        threading.Event().wait(LOOK_EVERY_S)
    return False


def _only_maintenance_since(base: ManifestState, now: ManifestState) -> bool:
    """Return whether the head moved, and every commit since the base is maintenance."""
    since = []
    for commit in now.commits.newest_first():
        if commit.manifest_version <= base.sequence:
            break
        since.append(commit)
    return bool(since) and all(commit.actor_id == MAINTENANCE_ACTOR for commit in since)
