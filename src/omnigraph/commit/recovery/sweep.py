"""Healing: go through the existing sidecars, and finish or undo each.

Z1  The sidecar of a live writer is left alone, whatever it says, and nothing waits for it.
Z2  Every sidecar is judged against a fresh state of its branch: an earlier one may have published.
Z3  Healing at the entry of a write rolls forward, finishes the bookkeeping, and rolls back only by strict
    inverses. A restore waits for a read-write open.
Z4  Of two healers on one table the one with the older sidecar continues: the other releases its lock at once.
Z5  On an object store there is no lock: a healer makes itself the owner of a sidecar, and fences its tables,
    before it judges. What it cannot settle it lets go. A full sweep waits until a silent owner is proven
    dead; an entry only looks, and goes by what earlier looks have seen.
Z6  A plan to go back binds: a write whose files could not be synced never goes forward, however whole it
    looks. Only what others have built on stays (`built_on`).
Z7  Whatever cannot be read or judged about a branch affects that branch alone: its sidecar waits, a warning
    says why, and everything else goes on. A sidecar is discarded only if its branch was certainly deleted.
Z8  A branch whose publish lock another process holds keeps its sidecars until that process releases it.
Z9  On an object store a write does without a sweep where the last one found nothing, this handle has left
    nothing since, and no other writer can have been proven dead in between (`is_due`). Whoever then meets a
    table that a dead writer has moved sweeps after all, and begins again. A change of a schema does not
    begin again: it does without only as the only writer.
"""

import threading
from collections.abc import Sequence
from enum import StrEnum

from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher, PublishLockHeld
from omnigraph.commit.recovery.branch_trouble import UNREADABLE, is_its_own
from omnigraph.commit.recovery.built_on import settle_built_on
from omnigraph.commit.recovery.classify import Classification, Decision, decide
from omnigraph.commit.recovery.fence import fence
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.recovery.observe import ObservedTable, observe
from omnigraph.commit.recovery.outcome import (
    SweepResult,
    complete,
    discard,
    finish,
    finish_effect_free,
    roll_back,
    roll_forward,
)
from omnigraph.commit.recovery.pending import (
    PendingSidecar,
    SidecarChanged,
    claim,
    let_go,
    list_pending,
    remove_litter,
    reread,
)
from omnigraph.commit.sidecar import Sidecar
from omnigraph.commit.table_locks import turn_of_tables
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import CommitConflict, ExpectedVersionMismatch, InvariantViolation
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import control_file
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.locks import HeldLock

LOOKS = 3  # at the lock of another sidecar: a healer releases it at once, a writer may not
PAUSE_S = 0.05  # between two looks
SWEEPS_PER_LIFETIME = 3  # the death of a writer takes a lifetime to prove: a third more to act on it


class SweepMode(StrEnum):
    """A read-write open sweeps fully; the entry of a writer heals."""

    FULL = "full"
    HEAL = "heal"


def is_due(parts: Parts, *, begins_again: bool = True) -> bool:
    """Return whether a sweep might find something that matters now (Z9).

    `begins_again` says that the caller sweeps and is run again if it meets what was missed.
    """
    last = parts.doubts.clear_at
    if parts.writer is None or last is None:
        return True
    if parts.writer.is_alone:
        return False
    return not begins_again or boot_clock() - last > parts.writer.lifetime_s / SWEEPS_PER_LIFETIME


def sweep(parts: Parts, publisher: ManifestPublisher, mode: SweepMode) -> dict[str, SweepResult]:
    """Process every pending sidecar, oldest first, and return how each pass ended.

    Raises:
        StorageError: recovery state cannot be read.
        InvariantViolation: a full sweep met a table of main behind its pin.
    """
    results: dict[str, SweepResult] = {}
    done: list[PendingSidecar] = []
    began_at = boot_clock()
    for pending in _looked_at(list_pending(parts)):
        hit("recovery.post_list_pre_lock")
        follows = any(_share_a_table(pending, other) for other in done)
        result = _process_if_dead(parts, publisher, pending, mode, follows=follows)
        results[pending.operation_id] = result
        if result is SweepResult.DONE:
            done.append(pending)
    parts.doubts.learn(
        left=[key for key, result in results.items() if result is SweepResult.UNRESOLVED],
        waiting=[key for key, result in results.items() if result is SweepResult.WAITS_FOR_OPEN],
        nothing_found_at=None if results else began_at,
    )
    if mode is SweepMode.FULL:
        remove_litter(parts)
    return results


def _looked_at(found: Sequence[PendingSidecar]) -> Sequence[PendingSidecar]:
    """Look at every owner once: whoever is silent from now on is so for all, and waits do not add up (Z5)."""
    for pending in found:
        if pending.is_of_others:
            _ = pending.has_ended
    return found


def _process_if_dead(
    parts: Parts, publisher: ManifestPublisher, pending: PendingSidecar, mode: SweepMode, *, follows: bool
) -> SweepResult:
    """Take the dead writer's lock and its queues, then process its sidecar (Z1).

    A sidecar that follows one just processed can only be locked by a healer that gives way to us (Z4).
    """
    if pending.lock_path is None:
        is_left = _is_kept_by_others(parts, pending, mode)
        return SweepResult.LEFT_ALIVE if is_left else _process_as_owner(parts, publisher, pending, mode)
    lock = _try_lock(pending, looks=LOOKS if follows else 1)
    if lock is None:
        return SweepResult.LEFT_ALIVE
    result = SweepResult.UNRESOLVED
    try:
        if _is_shared_with_the_living(parts, pending):
            return SweepResult.LEFT_ALIVE
        result = _process_under_queues(parts, publisher, pending.sidecar, mode)
        return result
    finally:
        lock.release(remove=result is SweepResult.DONE)


def _is_kept_by_others(parts: Parts, pending: PendingSidecar, mode: SweepMode) -> bool:
    """Return whether the owner of a sidecar on an object store is alive, as far as anybody knows (Z5)."""
    if mode is SweepMode.HEAL or not pending.is_of_others:
        return pending.is_alive
    assert parts.writer is not None
    assert pending.sidecar.owner is not None

    def is_over() -> bool:
        now = reread(parts, pending.sidecar.name)
        return now is None or now.owner != pending.sidecar.owner

    return not parts.writer.watch.await_sign(pending.sidecar.owner, is_over)


def _process_as_owner(
    parts: Parts, publisher: ManifestPublisher, pending: PendingSidecar, mode: SweepMode
) -> SweepResult:
    """Claim a sidecar that nobody keeps, then process it; whatever is not settled is let go (Z5)."""
    parts.check_writer()
    with parts.queues.acquire_many(_keys(pending.sidecar)):
        listed = reread(parts, pending.sidecar.name)
        if listed is None:
            return SweepResult.DONE
        found = PendingSidecar(listed, None, parts.writer)
        if found.is_alive:
            return SweepResult.LEFT_ALIVE
        result = SweepResult.UNRESOLVED
        try:
            claimed = claim(parts, listed)
        except SidecarChanged:
            return SweepResult.LEFT_ALIVE
        try:
            if _is_shared_with_the_living(parts, found):
                return SweepResult.LEFT_ALIVE
            result = _process_guarded(parts, publisher, claimed, mode)
            return result
        except (ExpectedVersionMismatch, CommitConflict) as moved:
            parts.warn(f"sidecar {claimed.operation_id} waits: {moved}")  # for the next look at what is there
            return result
        finally:
            if result is not SweepResult.DONE:
                let_go(parts, claimed.operation_id)


def _keys(sidecar: Sidecar) -> list[tuple[str, str]]:
    return [(table.table_key, sidecar.branch.name) for table in sidecar.tables]


def _try_lock(pending: PendingSidecar, *, looks: int) -> HeldLock | None:
    for look in range(looks):
        if look:
            _pause()
        lock = pending.try_lock()
        if lock is not None:
            return lock
    return None


def _is_shared_with_the_living(parts: Parts, pending: PendingSidecar) -> bool:
    """Return whether a live writer may have made some of the movement, or an older sidecar is first (Z4)."""
    for look in range(LOOKS):
        if look:
            _pause()
        others = [other for other in list_pending(parts) if other.operation_id != pending.operation_id]
        living = [other for other in others if _share_a_table(pending, other) and other.is_alive]
        if not living:
            return False
        if any(other.operation_id < pending.operation_id for other in living):
            return True
    return True


def _share_a_table(one: PendingSidecar, other: PendingSidecar) -> bool:
    ours, theirs = (
        {(table.identity, table.ref) for table in pending.sidecar.tables} for pending in (one, other)
    )
    return not ours.isdisjoint(theirs)


def _pause() -> None:
    threading.Event().wait(PAUSE_S)


def _process_under_queues(
    parts: Parts, publisher: ManifestPublisher, sidecar: Sidecar, mode: SweepMode
) -> SweepResult:
    tables = [table.table_key for table in sidecar.tables]
    with (
        parts.queues.acquire_many(_keys(sidecar)),
        turn_of_tables(parts, sidecar.branch.name, moved=tables),  # its publish moves pins that others read
    ):
        return _process_guarded(parts, publisher, sidecar, mode)


def _process_guarded(
    parts: Parts, publisher: ManifestPublisher, sidecar: Sidecar, mode: SweepMode
) -> SweepResult:
    try:
        return _process(parts, publisher, sidecar, mode)
    except SidecarChanged:
        # Its writer woke up after its publish and has finished it, or another healer did; not an error.
        return SweepResult.DONE if reread(parts, sidecar.name) is None else SweepResult.UNRESOLVED
    except PublishLockHeld as held:
        parts.warn(f"sidecar {sidecar.operation_id} waits: {held}")
        return SweepResult.UNRESOLVED  # Z8
    except UNREADABLE as error:
        if not is_its_own(sidecar.branch, error):
            raise
        waits = f"sidecar {sidecar.operation_id} waits until its branch '{sidecar.branch.name}' can be read"
        parts.warn(f"{waits}: {error}")  # Z7
        return SweepResult.UNRESOLVED


def _process(parts: Parts, publisher: ManifestPublisher, listed: Sidecar, mode: SweepMode) -> SweepResult:
    sidecar = reread(parts, listed.name)
    if sidecar is None:
        return SweepResult.DONE
    if (sidecar.writer_kind, sidecar.branch.name) != (listed.writer_kind, listed.branch.name):
        raise InvariantViolation(f"sidecar {listed.operation_id} changed while it was recovered")
    if not _is_branch_live(parts, sidecar):
        return discard(parts, publisher, sidecar)
    state = parts.coordinator.state(sidecar.branch)
    if parts.writer is not None and not _is_published(sidecar, state):
        fence(parts, sidecar, state)  # Z5
        state = parts.coordinator.state(sidecar.branch)
    if state.commits.find(sidecar.recovery_commit_id) is not None:
        return complete(parts, sidecar)
    if state.commits.find(sidecar.graph_commit_id) is not None:
        if not (_goes_back(sidecar) and parts.syncer.is_active):
            return finish(parts, publisher, sidecar, state)
        if not publisher.take_back(sidecar.branch, sidecar.graph_commit_id):
            return settle_built_on(parts, publisher, sidecar)
        state = parts.coordinator.state(sidecar.branch)
    observed = observe(parts, sidecar, state)
    decision = decide(sidecar.writer_kind, tuple(found.classification for found in observed))
    if decision is Decision.ROLL_FORWARD and _goes_back(sidecar):
        decision = Decision.ROLL_BACK
    may_restore = mode is SweepMode.FULL
    match decision:
        case Decision.ABORT:
            return _abort(parts, sidecar, observed, mode)
        case Decision.ROLL_FORWARD:
            return roll_forward(parts, publisher, sidecar, observed, may_restore=may_restore)
        case Decision.EFFECT_FREE:
            return finish_effect_free(parts, publisher, sidecar, observed)
        case Decision.ROLL_BACK:
            if _may_be_of_the_living(parts, sidecar, state):
                return SweepResult.LEFT_ALIVE
            return roll_back(parts, publisher, sidecar, observed, may_restore=may_restore)


def _may_be_of_the_living(parts: Parts, sidecar: Sidecar, state: ManifestState) -> bool:
    """Return whether what stands in front of the pins may belong to a live writer of an object store (Z5).

    It began after we looked for it. Its own sidecar is there until its publish, which moves the pin.
    """
    if parts.writer is None:
        return False
    if _is_shared_with_the_living(parts, PendingSidecar(sidecar, None, parts.writer)):
        return True
    pins = parts.coordinator.state(sidecar.branch).tables.pins
    return any(pins.get(table.identity) != state.tables.pins.get(table.identity) for table in sidecar.tables)


def _goes_back(sidecar: Sidecar) -> bool:
    """Return whether it is decided that the write goes back: its files could not be synced (Z6)."""
    plan = sidecar.recovery_plan
    return plan is not None and plan.kind is RecoveryKind.ROLLED_BACK


def _is_published(sidecar: Sidecar, state: ManifestState) -> bool:
    """Return whether the write, or an earlier recovery of it, is in the manifest: no table of it moves."""
    ids = (sidecar.recovery_commit_id, sidecar.graph_commit_id)
    return any(state.commits.find(commit_id) is not None for commit_id in ids)


def _is_branch_live(parts: Parts, sidecar: Sidecar) -> bool:
    """Return whether the branch that was written still exists, under the same ref.

    Raises:
        GraphDamaged: it is missing, and was never deleted (Z7).
    """
    branch = sidecar.branch
    if branch.ref is None or parts.branches.is_live(branch):
        return True
    parts.branches.copies.refuse_unended(branch.ref, control_file(branch.name))
    return False


def _abort(parts: Parts, sidecar: Sidecar, observed: Sequence[ObservedTable], mode: SweepMode) -> SweepResult:
    error = _behind(parts, sidecar, observed)
    if mode is SweepMode.FULL or not sidecar.branch.is_main:
        raise error
    parts.warn(str(error))
    return SweepResult.UNRESOLVED


def _behind(parts: Parts, sidecar: Sidecar, observed: Sequence[ObservedTable]) -> InvariantViolation:
    """Return the error for tables that lack published versions: which ones, and what to do."""
    tables = ", ".join(
        f"{found.table.table_key} is at version {found.head}, published at {found.pinned_version}"
        for found in observed
        if found.classification is Classification.INVARIANT_VIOLATION
    )
    return InvariantViolation(
        f"sidecar {sidecar.operation_id}: a table is behind its published version: {tables}. Nothing was "
        f"changed. Way out: 'omnigraph verify {parts.root.uri}' lists the missing files: put them back "
        "from a copy, or give up what needs them with 'omnigraph repair --to VERSION'"
    )
