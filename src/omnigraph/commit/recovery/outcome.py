"""What recovery does once it has decided: roll forward, roll back, or finish the bookkeeping.

Y1  The plan is written into the sidecar before the first effect, so that every later pass says the same.
Y2  Order: publish, audit, delete. Each step checks whether an earlier pass has done it.
Y3  After recovery, pin = HEAD for every table that the sidecar names.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from omnigraph.commit.changes import (
    Expectation,
    LineageIntent,
    ManifestChange,
    PinChange,
    RegisterTable,
    UpdateTable,
    published_version,
)
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher
from omnigraph.commit.reclaim import drop_unpublished_forks, drop_unpublished_tables
from omnigraph.commit.recovery.audit import record
from omnigraph.commit.recovery.classify import Classification, is_layout_only
from omnigraph.commit.recovery.fence import fenced_tables
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.recovery.observe import ObservedTable, observe
from omnigraph.commit.recovery.pending import bind_to_go_back, rewrite
from omnigraph.commit.sidecar import Outcome, PointerUpdate, RecoveryPlan, Sidecar
from omnigraph.core.errors import (
    CommitConflict,
    ExpectedVersionMismatch,
    OmnigraphError,
    SchemaChanged,
    StaleCommit,
)
from omnigraph.core.failpoint import hit
from omnigraph.history.ancestry import Ancestry
from omnigraph.history.commits import RECOVERY_ACTOR
from omnigraph.history.contract import promote_schema
from omnigraph.history.identity import MAIN_BRANCH, TableIdentity
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.durability import SyncFailed
from omnigraph.storage.files.added_files import files_between
from omnigraph.storage.tables.stage import CommittedTable
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.storage.tables.undo import TableUndo


class SweepResult(StrEnum):
    """How a pass over one sidecar ended."""

    DONE = "done"
    LEFT_ALIVE = "left to its live writer"
    UNRESOLVED = "unresolved"
    WAITS_FOR_OPEN = "needs a restore, which only a read-write open makes"


def finish(parts: Parts, publisher: ManifestPublisher, sidecar: Sidecar, state: ManifestState) -> SweepResult:
    """Finish a sidecar whose writer had published: a commit and an audit row that say so.

    A layout write may have left tables out, below which another writer was not done: they go forward now.
    """
    late = _left_out(parts, sidecar, state)
    heads = {found.table.identity: found.head for found in late}
    outcomes = [
        Outcome(
            table.table_key,
            table.expected_version,
            heads.get(table.identity, state.tables.pins[table.identity].version),
        )
        for table in sidecar.tables
    ]
    sidecar = _plan(parts, sidecar, RecoveryKind.ROLLED_FORWARD, outcomes)
    added = _added_files(parts, late)
    parts.syncer.sync(added, stage="table")
    changes: list[PinChange] = [
        change for change in fenced_tables(parts, sidecar, state) if change.identity not in heads
    ]
    changes += [_update(parts, sidecar, found, found.head) for found in late]
    expected = {
        change.identity: Expectation(change.table_key, published_version(state.tables, change.identity))
        for change in changes
    }
    _publish(parts, publisher, sidecar, changes, expected, files=added)
    return complete(parts, sidecar)


def _left_out(parts: Parts, sidecar: Sidecar, state: ManifestState) -> list[ObservedTable]:
    """Return the tables that a layout write moved and did not publish, and that hold nothing of others."""
    if not is_layout_only(sidecar.writer_kind):
        return []
    found = observe(parts, sidecar, state)
    return [table for table in found if table.classification is Classification.ROLLED_PAST_EXPECTED]


def _added_files(parts: Parts, moved: Iterable[ObservedTable]) -> list[str]:
    """Return what a dead writer committed and may not have synced: nothing builds on that unsynced."""
    return [
        file
        for found in moved
        for file in files_between(
            parts.store, found.address, older=found.pinned_version or None, newer=found.head
        )
    ]


def finish_effect_free(
    parts: Parts, publisher: ManifestPublisher, sidecar: Sidecar, observed: Sequence[ObservedTable]
) -> SweepResult:
    """Finish a sidecar whose tables never moved, except by fences, whatever was planned."""
    if sidecar.recovery_plan is not None and sidecar.recovery_plan.outcomes:
        emptied = sidecar.with_plan(RecoveryPlan(RecoveryKind.ROLLED_BACK, ()))
        rewrite(parts, sidecar, emptied)
        sidecar = emptied
    sidecar = _plan(parts, sidecar, RecoveryKind.ROLLED_BACK, [])
    fenced, expected = _fenced(parts, sidecar, observed)
    _publish(parts, publisher, sidecar, fenced, expected)
    return complete(parts, sidecar)


def discard(parts: Parts, publisher: ManifestPublisher, sidecar: Sidecar) -> SweepResult:
    """Finish a sidecar whose branch is gone: nothing of it can become visible; main's history says so."""
    sidecar = _plan(parts, sidecar, RecoveryKind.ORPHANED_BRANCH_DISCARDED, [])
    if parts.coordinator.state().commits.find(sidecar.recovery_commit_id) is None:
        lineage = LineageIntent(sidecar.recovery_commit_id, RECOVERY_ACTOR, parts.clock())
        publisher.publish(MAIN_BRANCH, (), {}, lineage)
    return complete(parts, sidecar)


def roll_forward(
    parts: Parts,
    publisher: ManifestPublisher,
    sidecar: Sidecar,
    observed: Sequence[ObservedTable],
    *,
    may_restore: bool,
) -> SweepResult:
    """Publish what the writer had committed, at the versions seen when it was classified.

    A table that the write was validated against may have moved since: then its rows may no longer fit, and
    the write goes back instead.
    """
    moved = [found for found in observed if found.classification is Classification.ROLLED_PAST_EXPECTED]
    is_layout = is_layout_only(sidecar.writer_kind)
    outcomes = [Outcome(f.table.table_key, f.table.expected_version, f.head) for f in moved]
    sidecar = _plan(parts, sidecar, RecoveryKind.ROLLED_FORWARD, outcomes)
    files = _added_files(parts, moved)
    try:
        parts.syncer.sync(files, stage="table")
    except SyncFailed:
        back = [Outcome(f.table.table_key, f.head, f.pinned_version) for f in moved if not f.is_first_touch]
        planned = sidecar.with_plan(RecoveryPlan(RecoveryKind.ROLLED_BACK, tuple(back)))
        bind_to_go_back(parts, sidecar, planned)
        raise
    fenced, expected = _fenced(parts, sidecar, observed)
    changes: list[ManifestChange] = [_update(parts, sidecar, found, found.head) for found in moved]
    changes += fenced
    known = parts.coordinator.state(sidecar.branch).tables.pins.keys()
    changes += [_repoint(parts, sidecar, pointer, known) for pointer in sidecar.pointer_updates]
    if sidecar.schema_change is not None:
        changes += sidecar.schema_change.manifest_changes
    expected |= {
        found.table.identity: Expectation(
            found.table.table_key, found.pinned_version if is_layout else found.table.expected_version
        )
        for found in moved
    }
    for table in sidecar.read_set:
        expected[table.identity] = Expectation(table.table_key, table.expected_version)
    hit("recovery.before_roll_forward_publish")
    try:
        _publish(
            parts,
            publisher,
            sidecar,
            changes,
            expected,
            merged_parent=sidecar.merge_source_commit_id,
            files=files,
        )
    except (ExpectedVersionMismatch, SchemaChanged):
        return _converge(parts, publisher, sidecar, observed, may_restore=may_restore)
    return complete(parts, sidecar)


def roll_back(
    parts: Parts,
    publisher: ManifestPublisher,
    sidecar: Sidecar,
    observed: Sequence[ObservedTable],
    *,
    may_restore: bool,
) -> SweepResult:
    """Bring every table that moved back to its published content, and publish that.

    If one of them needs a restore and none is allowed here, nothing is done.

    Raises:
        ExpectedVersionMismatch: another writer moved a table since it was classified.
    """
    moved = [found for found in observed if found.has_moved and not found.is_first_touch]
    undo = []
    for found in moved:
        head = parts.store.open_at(found.address, found.head)
        pinned = parts.store.open_at(found.address, found.pinned_version)
        staged, kind = TableUndo(parts.store).stage_rollback(head, pinned)
        if kind == "restore" and not may_restore:
            return SweepResult.WAITS_FOR_OPEN
        undo.append((found, staged))
    outcomes = [Outcome(f.table.table_key, f.head, f.pinned_version) for f in moved]
    sidecar = _plan(parts, sidecar, RecoveryKind.ROLLED_BACK, outcomes)
    hit("recovery.post_plan_pre_undo")
    fenced, expected = _fenced(parts, sidecar, observed)
    changes: list[ManifestChange] = [*fenced]
    files: list[str] = []
    for found, staged in undo:
        committed = _undo(parts, sidecar, found, staged)
        parts.syncer.sync([*staged.files, *committed.files], stage="table")
        files += [*staged.files, *committed.files]
        changes.append(_update(parts, sidecar, found, committed.version))
        hit("recovery.post_table_undo_pre_publish")
    expected |= {
        found.table.identity: Expectation(found.table.table_key, found.pinned_version) for found in moved
    }
    _publish(parts, publisher, sidecar, changes, expected, files=files)
    hit("recovery.post_rollback_publish_pre_audit")
    return complete(parts, sidecar)


def _undo(parts: Parts, sidecar: Sidecar, found: ObservedTable, staged: StagedWrite) -> CommittedTable:
    """Commit an inverse or a restore; if refused, the sidecar stays and the next pass classifies again."""
    parts.check_writer()
    try:
        return parts.stager.commit_staged(
            staged, operation_id=sidecar.operation_id, writer_kind=sidecar.writer_kind.value
        )
    except (CommitConflict, StaleCommit) as conflict:
        head = parts.store.latest_version(found.address)
        refused = ExpectedVersionMismatch(table_key=found.table.table_key, expected=found.head, actual=head)
        refused.recovery_operation_id = sidecar.operation_id
        raise refused from conflict


def complete(parts: Parts, sidecar: Sidecar) -> SweepResult:
    """Write the audit row of a published recovery and delete its sidecar (Y2)."""
    # Without a plan, the file has reappeared: a writer on an object store sent it and stalled, and the
    # request was repeated after recovery had found no effect and removed the file.
    plan = sidecar.recovery_plan or RecoveryPlan(RecoveryKind.ROLLED_BACK, ())
    if plan.kind is not RecoveryKind.ROLLED_FORWARD:
        drop_unpublished_forks(parts, sidecar)
        drop_unpublished_tables(parts, sidecar)
    elif sidecar.schema_change is not None and sidecar.branch.is_main:
        promote_schema(parts.adapter, parts.coordinator)
    record(parts, sidecar, plan.kind, sidecar.recovery_commit_id, plan.outcomes)
    hit("recovery.post_audit_pre_delete")
    parts.adapter.delete(sidecar.name)
    return SweepResult.DONE


def _plan(parts: Parts, sidecar: Sidecar, kind: RecoveryKind, outcomes: Sequence[Outcome]) -> Sidecar:
    """Write the plan into the sidecar, or keep the one that an earlier pass wrote (Y1)."""
    if sidecar.recovery_plan is not None and sidecar.recovery_plan.kind is kind:
        return sidecar
    planned = sidecar.with_plan(RecoveryPlan(kind, tuple(outcomes)))
    rewrite(parts, sidecar, planned)
    return planned


def _publish(
    parts: Parts,
    publisher: ManifestPublisher,
    sidecar: Sidecar,
    changes: Iterable[ManifestChange],
    expected: dict[TableIdentity, Expectation],
    *,
    merged_parent: str | None = None,
    files: Iterable[str] = (),
) -> None:
    lineage = LineageIntent(
        sidecar.recovery_commit_id,
        RECOVERY_ACTOR,
        parts.clock(),
        merged_parent_commit_id=merged_parent,
        sums=parts.summer.sum(files),
        merged_history=None if merged_parent is None else _merged_history(parts, sidecar, merged_parent),
    )
    parts.check_writer()
    try:
        publisher.publish(sidecar.branch, changes, expected, lineage)
    except ExpectedVersionMismatch:
        state = parts.coordinator.state(sidecar.branch)
        if state.commits.find(sidecar.recovery_commit_id) is None:
            raise
        # Another healer on an object store, which had stalled before its publish, was faster.


def _fenced(
    parts: Parts, sidecar: Sidecar, observed: Sequence[ObservedTable]
) -> tuple[list[UpdateTable], dict[TableIdentity, Expectation]]:
    """Return the pins of tables that only fences have moved, and where these must still be (Y3)."""
    found = [table for table in observed if table.is_only_fenced]
    changes = [
        UpdateTable(table.table.identity, table.table.table_key, _pin(parts, sidecar, table, table.head))
        for table in found
    ]
    expected = {
        table.table.identity: Expectation(table.table.table_key, table.pinned_version) for table in found
    }
    return changes, expected


def _merged_history(parts: Parts, sidecar: Sidecar, merged_parent: str) -> dict[str, object] | None:
    """Return what the dead writer's merge records of its source; None if no branch shows the commit."""
    target = parts.coordinator.state(sidecar.branch)
    branches = parts.branches.live()
    refs = {branch.name: branch.ref for branch in branches}
    for branch in branches:
        try:
            state = parts.coordinator.state(branch)
        except OmnigraphError as error:  # the merge goes forward without it: later ones ask the branch itself
            parts.warn(f"branch '{branch.name}' cannot be read while a merge is recovered: {error}")
            continue
        if state.commits.has(merged_parent):
            return Ancestry(state, target).record(merged_parent, refs.get)
    return None


def _update(parts: Parts, sidecar: Sidecar, found: ObservedTable, version: int) -> PinChange:
    kind = RegisterTable if found.pin is None else UpdateTable
    return kind(found.table.identity, found.table.table_key, _pin(parts, sidecar, found, version))


def _pin(parts: Parts, sidecar: Sidecar, found: ObservedTable, version: int) -> PublishedPin:
    handle = parts.store.open_at(found.address, version)
    return PublishedPin(
        version, found.address.ref, handle.row_count, handle.transaction_uuid, sidecar.branch.name
    )


def _repoint(
    parts: Parts, sidecar: Sidecar, pointer: PointerUpdate, known: Collection[TableIdentity]
) -> PinChange:
    """Return the pin of a table that a merge only points at; its path is that of its identity."""
    path = pointer.identity.location(pointer.table_key)
    handle = parts.store.open_at(parts.address_of(path, pointer.ref), pointer.version)
    pin = PublishedPin(
        pointer.version, pointer.ref, pointer.row_count, handle.transaction_uuid, sidecar.branch.name
    )
    kind = UpdateTable if pointer.identity in known else RegisterTable
    return kind(pointer.identity, pointer.table_key, pin)


def _converge(
    parts: Parts,
    publisher: ManifestPublisher,
    sidecar: Sidecar,
    observed: Sequence[ObservedTable],
    *,
    may_restore: bool,
) -> SweepResult:
    """Settle a roll-forward that was refused: another healer did it first, or the tables have moved."""
    moved = [found for found in observed if found.classification is Classification.ROLLED_PAST_EXPECTED]
    state = parts.coordinator.state(sidecar.branch)
    if state.commits.find(sidecar.graph_commit_id) is not None:
        return finish(parts, publisher, sidecar, state)  # its writer was alive, and faster
    if any(state.tables.is_dead(found.table.identity) for found in moved):  # dropped at this very moment
        return roll_back(parts, publisher, sidecar, observe(parts, sidecar, state), may_restore=may_restore)
    if all(published_version(state.tables, found.table.identity) >= found.head for found in moved):
        return _reached_by_rival(parts, sidecar, state)
    is_stale = any(
        published_version(state.tables, table.identity) != table.expected_version
        for table in sidecar.read_set
    )
    change = sidecar.schema_change
    is_stale = is_stale or (change is not None and change.follows != state.schema.published_at)
    is_unmoved = all(published_version(state.tables, f.table.identity) == f.pinned_version for f in moved)
    if is_stale and is_unmoved:
        return roll_back(parts, publisher, sidecar, observed, may_restore=may_restore)
    return SweepResult.UNRESOLVED


def _reached_by_rival(parts: Parts, sidecar: Sidecar, state: ManifestState) -> SweepResult:
    """Finish the bookkeeping of what another healer did; its commit is named, never the branch head."""
    if parts.adapter.read_text_if_exists(sidecar.name) is None:
        return SweepResult.DONE
    commits = state.commits.newest_first()
    by_recovery = next((commit for commit in commits if commit.actor_id == RECOVERY_ACTOR), None)
    known = state.commits.find(sidecar.recovery_commit_id) or by_recovery
    plan = sidecar.recovery_plan
    assert plan is not None, "the plan was written before the publish"
    commit_id = known.graph_commit_id if known else sidecar.recovery_commit_id
    record(parts, sidecar, plan.kind, commit_id, plan.outcomes)
    parts.adapter.delete(sidecar.name)
    return SweepResult.DONE
