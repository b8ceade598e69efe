"""Going back to an older version of a branch, as a person's explicit decision.

B1  Nothing is deleted and nothing moves. The manifest gets a new version that shows what the chosen one
    shows, and the tables follow it by the ordinary recovery of a write that goes back. What was given up
    stays where it is: its readers go on reading it, and the same command goes back to it.
B2  What would be lost is reported before anything happens, and must still be the same when it does.
B3  No number of a version, fragment or row is used twice: a handle that saw what was given up notices.
B4  A sidecar that says what goes back is on the disk before the manifest's new version. If the process dies
    in between, the next open, or the same command, does the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from omnigraph.commit.parts import Parts, boot_id, host_name, process_id
from omnigraph.commit.publish import publish_lock_file
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.recovery.pending import PendingSidecar, list_pending
from omnigraph.commit.recovery.repair_note import write_note
from omnigraph.commit.sidecar import (
    RECOVERY_DIR,
    Outcome,
    RecoveryPlan,
    Sidecar,
    SidecarTable,
    WriterKind,
)
from omnigraph.commit.write import owns
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import BadRequest, ConflictError, UnsupportedError, VersionNotFound
from omnigraph.core.failpoint import hit
from omnigraph.core.shield import shielded
from omnigraph.history.commits import CommitLog, GraphCommit
from omnigraph.history.fold import TableEntry, TableStates, fold
from omnigraph.history.identity import BranchIdentity, branch_name, stored_name
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.locks import PublishLock, WriterLock
from omnigraph.storage.damage.manifest_survey import damage_at, rows_above, survey
from omnigraph.storage.damage.quarantine import QUARANTINE_DIR, VersionGone, list_versions, version_damage
from omnigraph.storage.damage.restored_version import write_restored
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.handle import ref_path
from omnigraph.storage.versions.newest import write_mark


@dataclass(frozen=True, slots=True)
class TableLoss:
    """A table that goes back: its current number of rows, if known, and its number of rows then."""

    table_key: str
    rows: int
    rows_after: int


@dataclass(frozen=True, slots=True)
class Loss:
    """What a repair gives up: versions of a branch, with their commits and rows.

    `untold` are versions whose commit can no longer be read, or that had none.
    """

    branch: str | None
    to_version: int
    newest_version: int
    commits: tuple[GraphCommit, ...]
    untold: tuple[int, ...]
    tables: tuple[TableLoss, ...]


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table of the branch that was written since: its newest version, and whether that can be read."""

    entry: TableEntry
    newest: int
    is_damaged: bool


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What is lost, which tables go back, and which sidecars no longer matter then.

    `refs` are forks that only what is given up names.
    """

    loss: Loss
    branch: BranchIdentity
    tables: tuple[MovedTable, ...]
    sidecars: tuple[PendingSidecar, ...]
    refs: tuple[str, ...]


def plan_repair(parts: Parts, to_version: int, name: str) -> RepairPlan:
    """Return what going back would give up; nothing is changed.

    Raises:
        UnsupportedError: the graph is on an object store.
        BranchNotFound, VersionNotFound: there is no such branch or version.
        GraphDamaged: that version is damaged too.
        ConflictError: a writer is active.
        BadRequest: the branch is already at that version.
    """
    root = parts.local_root
    if root is None:
        raise UnsupportedError("repair --to needs a local disk: an object store keeps its own versions")
    branch = parts.branches.resolve(name)
    address = parts.coordinator.address(branch.ref)
    folder = root / ref_path(MANIFEST_DIR, branch.ref)
    newest = survey(address).newest
    if to_version not in list_versions(folder) or to_version > newest:
        raise VersionNotFound(f"branch '{name}' has no version {to_version} on this disk")
    if to_version == newest:
        raise BadRequest(f"branch '{name}' is at version {to_version}: there is nothing to repair")
    state = _state_at(parts, branch, to_version)
    _refuse_damaged_tables(root, state)
    above = rows_above(address, to_version)
    commits = () if above is None else tuple(CommitLog().with_rows(above).newest_first())
    commits = tuple(commit for commit in commits if commit.manifest_version > to_version)
    told = {commit.manifest_version for commit in commits}
    after = state.tables if above is None else fold(state.tables, above)
    entries = state.tables.entries()
    losses = tuple(
        TableLoss(entry.table_key, after.pins[entry.identity].row_count, entry.row_count)
        for entry in entries
        if not after.pins[entry.identity].names_same(entry.pin)
    )
    untold = tuple(version for version in range(to_version + 1, newest + 1) if version not in told)
    loss = Loss(stored_name(name), to_version, newest, commits, untold, losses)
    refs = {pin.ref for pin in after.pins.values() if pin.ref} - {entry.pin.ref for entry in entries}
    return RepairPlan(
        loss,
        branch,
        tuple(_moved(parts, root, entries, branch, after)),
        _dead_sidecars(parts, name),
        tuple(sorted(ref for ref in refs if ref)),
    )


def carry_out(parts: Parts, loss: Loss, actor: str | None) -> str:
    """Give up what was reported; return the operation's id. The tables follow with the next sweep (B4).

    Raises:
        ConflictError: something was published since the loss was reported (B2).
        StorageError: the system failed; the same call continues from there.
    """
    root = parts.local_root
    assert root is not None, "a loss is only reported for a local graph"
    branch = branch_name(loss.branch)
    with (
        shielded(),
        parts.queues.schema_gate,
        parts.queues.branch_gates([branch]),
        PublishLock(root / publish_lock_file(branch)) as is_held,
    ):
        plan = plan_repair(parts, loss.to_version, branch)
        if not is_held or plan.loss != loss:
            raise ConflictError(f"branch '{branch}' moved since the loss was reported: look again")
        lock = WriterLock.acquire(root / RECOVERY_DIR, parts.new_id)
        try:
            _go_back(parts, root, plan, lock.operation_id, actor)
        finally:
            lock.release()
        parts.coordinator.forget()
    return lock.operation_id


def _go_back(parts: Parts, root: Path, plan: RepairPlan, operation_id: str, actor: str | None) -> None:
    loss, folder = plan.loss, root / ref_path(MANIFEST_DIR, plan.branch.ref)
    write_note(
        parts,
        operation_id,
        branch=loss.branch,
        to_version=loss.to_version,
        newest_version=loss.newest_version,
        actor_id=actor,
        commits=[commit.graph_commit_id for commit in loss.commits],
        refs=list(plan.refs),
    )
    sidecar = _sidecar(parts, plan, operation_id, actor)
    parts.adapter.write_text(sidecar.name, sidecar.to_text())
    for found in plan.sidecars:
        # Their writes are given up too, or were never done: our sidecar says where every table goes.
        target = f"{QUARANTINE_DIR}/{operation_id}/{found.sidecar.name}"
        parts.adapter.rename_text(found.sidecar.name, target)
    hit("repair.post_sidecar_pre_manifest")
    made = write_restored(folder, loss.to_version, loss.newest_version)
    write_mark(folder, made, is_synced=True)
    hit("repair.post_manifest_pre_tables")
    for table in plan.tables:
        if table.is_damaged:  # the library could not build on it
            write_restored(
                root / ref_path(table.entry.location, table.entry.pin.ref), table.entry.version, table.newest
            )


def _sidecar(parts: Parts, plan: RepairPlan, operation_id: str, actor: str | None) -> Sidecar:
    tables = tuple(SidecarTable.of(table.entry) for table in plan.tables)
    outcomes = tuple(
        Outcome(table.entry.table_key, table.newest, table.entry.version) for table in plan.tables
    )
    return Sidecar(
        operation_id=operation_id,
        writer_kind=WriterKind.REPAIR,
        started_at=parts.clock(),
        branch=plan.branch,
        actor_id=actor,
        graph_commit_id=parts.new_id(),
        recovery_commit_id=parts.new_id(),
        tables=tables,
        host=host_name(),
        boot_id=boot_id() or "unknown",
        pid=process_id(),
        recovery_plan=RecoveryPlan(RecoveryKind.ROLLED_BACK, outcomes),
    )


def _state_at(parts: Parts, branch: BranchIdentity, version: int) -> ManifestState:
    address = parts.coordinator.address(branch.ref)
    damage = damage_at(address, version)
    if damage is not None:
        dataset = ref_path(MANIFEST_DIR, branch.ref)
        raise GraphDamaged(
            file=f"{dataset}/{damage[0]}", reason=damage[1], dataset=dataset, versions=[version]
        )
    handle = parts.coordinator.manifest.open_at(address, version)
    rows = parts.coordinator.manifest.read(handle)
    return ManifestState(branch, 0).with_rows(rows, version=version, fragments={})


def _refuse_damaged_tables(root: Path, state: ManifestState) -> None:
    """Refuse a version whose tables cannot be read."""
    for entry in state.tables.entries():
        dataset = ref_path(entry.location, entry.pin.ref)
        damage = _damage(root / dataset, entry.version)
        if damage is not None:
            raise GraphDamaged(
                file=f"{dataset}/{damage[0]}", reason=damage[1], dataset=dataset, versions=[entry.version]
            )


def _moved(
    parts: Parts, root: Path, entries: tuple[TableEntry, ...], branch: BranchIdentity, after: TableStates
) -> Iterator[MovedTable]:
    """Yield every table that the branch itself writes and that had versions above the chosen one.

    One that is gone from the disk is known from the pins that name it, and its number is not reused (B3).
    """
    branches, _ = parts.branches.readable()
    states = [after, *(parts.coordinator.state(other.identity).tables for other in branches)]
    for entry in (entry for entry in entries if owns(branch, entry)):
        pins = [pin for tables in states if (pin := tables.pins.get(entry.identity)) is not None]
        named = [pin.version for pin in pins if pin.ref == entry.pin.ref]
        folder = root / ref_path(entry.location, entry.pin.ref)
        newest = max([*list_versions(folder)[:1], *named])
        if newest > entry.version:
            yield MovedTable(
                entry, newest, _damage(root / ref_path(entry.location, entry.pin.ref), newest) is not None
            )


def _damage(folder: Path, version: int) -> tuple[str, str] | None:
    try:
        return version_damage(folder, version)
    except VersionGone:
        return version_file_name(version), "is missing"


def _dead_sidecars(parts: Parts, branch: str) -> tuple[PendingSidecar, ...]:
    found = tuple(pending for pending in list_pending(parts) if pending.sidecar.branch.name == branch)
    alive = [pending.operation_id for pending in found if pending.is_alive]
    if alive:
        raise ConflictError(f"operation {alive[0]} is active on branch '{branch}': wait for its end")
    return found
