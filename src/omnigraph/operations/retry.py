"""Retrying a write that met a conflict.

Index builds and upkeep move tables without changing a row. The caller of a write that meets one of them would
have to send it again for no visible reason, so the engine does that itself, a few times. For writes that only
add rows, a caller may allow more retries: the attempt is discarded and run again from a fresh snapshot,
validation included.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from omnigraph.commit.recovery.classify import is_layout_only
from omnigraph.commit.recovery.fence import adopt
from omnigraph.commit.recovery.pending import list_pending, lock_path, reread
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import (
    BadRequest,
    DriftNeedsRepair,
    ExpectedVersionMismatch,
    ReadSetChanged,
    RecoveryRequired,
)
from omnigraph.history.commits import MAINTENANCE_ACTOR
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph
from omnigraph.storage.control.locks import wait_until_free

MAINTENANCE_RETRIES_MAX = 4  # upkeep runs once in 64 commits: meeting it even twice in a row is rare
CALLER_RETRIES_MAX = 32  # what a caller may ask for; beyond that contention is a design question
LOOK_EVERY_S = 0.1  # at a sidecar on an object store, each time by a request
MAINTENANCE_WAIT_S = 5.0  # an index build of a large table takes longer: then the caller is told
Attempted = TypeVar("Attempted")


def retry_on_conflict(
    graph: OpenGraph, branch: str, attempt: Callable[[ManifestState], Attempted], *, budget: int = 0
) -> Attempted:
    """Run an attempt on the newest state, and again on a newer one where that is safe.

    Nothing is replayed after phase A.

    Raises:
        BadRequest: the budget is more than a caller may ask for.
        ConflictError: another writer's rows came in between, and the budgets are spent.
    """
    if not 0 <= budget <= CALLER_RETRIES_MAX:
        raise BadRequest(f"the number of retries must be between 0 and {CALLER_RETRIES_MAX}")
    maintenance = MAINTENANCE_RETRIES_MAX
    while True:
        base = graph.state(branch)
        try:
            return attempt(base)
        except (ExpectedVersionMismatch, ReadSetChanged) as conflict:
            if conflict.recovery_operation_id is not None:
                raise
            if graph.heal_late():
                continue
            if maintenance and _is_maintenance(graph, base, conflict):
                maintenance -= 1
            elif maintenance and _is_left_by_layout(graph, conflict):
                maintenance -= 1
                graph.heal()
            elif budget:
                budget -= 1
            else:
                raise
        except RecoveryRequired as blocked:
            # Upkeep that lost its race leaves work that only the next healing finishes; a write of ours that
            # ended unfinished is never of that kind.
            if not maintenance or not _is_left_by_layout_write(graph, blocked.operation_id):
                raise
            maintenance -= 1
            graph.heal()
        except DriftNeedsRepair as drift:
            # A writer that was taken for dead may have built an index or folded files late.
            if not maintenance or not adopt(graph.parts, graph.publisher, branch, drift.table_key):
                raise
            maintenance -= 1


def _is_left_by_layout(graph: OpenGraph, conflict: ExpectedVersionMismatch | ReadSetChanged) -> bool:
    """Return whether maintenance that ended half-way, perhaps on a thread beside us, stands in the way."""
    table_key = getattr(conflict, "table_key", None)
    return any(
        is_layout_only(found.sidecar.writer_kind) and not found.is_alive
        for found in list_pending(graph.parts)
        if any(table.table_key == table_key for table in found.sidecar.tables)
    )


def _is_left_by_layout_write(graph: OpenGraph, operation_id: str) -> bool:
    sidecar = reread(graph.parts, f"{RECOVERY_DIR}/{operation_id}.json")
    return sidecar is not None and is_layout_only(sidecar.writer_kind)


def _is_maintenance(
    graph: OpenGraph, base: ManifestState, conflict: ExpectedVersionMismatch | ReadSetChanged
) -> bool:
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
    path = lock_path(graph.parts, operation_id)
    return _is_gone_soon(graph, sidecar.name) if path is None else wait_until_free(path, MAINTENANCE_WAIT_S)


def _is_gone_soon(graph: OpenGraph, name: str) -> bool:
    """Wait for the end of a write of another process on an object store: only its sidecar tells of that."""
    deadline = boot_clock() + MAINTENANCE_WAIT_S
    while boot_clock() < deadline:
        if reread(graph.parts, name) is None:
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
