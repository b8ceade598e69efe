"""Going back to an older version of a branch, as somebody's explicit decision.

B1  Nothing is deleted. Version files above the chosen version go to quarantine, of the manifest and of the
    tables that the branch writes; the files that they name stay where they are, so they can be put back.
B2  What would be lost is told before anything moves, and must still be the same when it does.
B3  What another branch reads or begins at is never moved.
B4  A note that says who decided what is on the disk before the first move. The manifest goes first and from
    the newest version down: after a crash the same decision can be carried out again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.commit.forks import owns
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import publish_lock_file
from omnigraph.commit.recovery.pending import PendingSidecar, list_pending
from omnigraph.commit.recovery.quarantine_note import write_note
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import BadRequest, ConflictError, UnsupportedError, VersionNotFound
from omnigraph.history.commits import CommitLog, GraphCommit
from omnigraph.history.coordinator import MAIN
from omnigraph.history.fold import TableEntry, fold
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.state import ManifestState
from omnigraph.storage.locks import PublishLock
from omnigraph.storage.manifest_survey import damage_at, rows_above, survey
from omnigraph.storage.quarantine import QUARANTINE_DIR, list_versions, move_to_quarantine
from omnigraph.storage.synced_mark import forget_mark, write_mark


@dataclass(frozen=True, slots=True)
class TableLoss:
    """A table that goes back: its rows now, as far as that can be told, and its rows then."""

    table_key: str
    rows: int
    rows_after: int


@dataclass(frozen=True, slots=True)
class Loss:
    """What a repair takes away: versions of a branch, with their commits and rows.

    `untold` are versions whose commit cannot be read any more, or that had none.
    """

    branch: str | None
    to_version: int
    newest_version: int
    commits: tuple[GraphCommit, ...]
    untold: tuple[int, ...]
    tables: tuple[TableLoss, ...]


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What is lost, and which versions of which datasets move; `refs` are forks that nothing names then."""

    loss: Loss
    moves: Mapping[str, tuple[int, ...]]
    sidecars: tuple[PendingSidecar, ...]
    refs: tuple[str, ...]


def plan_repair(parts: Parts, to_version: int, branch: str | None) -> RepairPlan:
    """Say what going back would take; nothing is changed.

    Raises:
        UnsupportedError: the graph lies on an object store.
        BranchNotFound, VersionNotFound: there is no such branch or version.
        GraphDamaged: that version is damaged, too.
        ConflictError: a writer is at work, or another branch needs what would move (B3).
        BadRequest: the branch is at that version.
    """
    root = parts.local_root
    if root is None:
        raise UnsupportedError("repair --to works on local disks: an object store keeps versions of its own")
    ref = None if branch is None else parts.branches.require(branch).ref
    folder = root / _manifest(ref)
    newest = survey(parts.coordinator.address(ref)).newest
    if to_version not in list_versions(folder) or to_version > newest:
        raise VersionNotFound(f"branch '{branch or MAIN}' has no version {to_version} on this disk")
    if to_version == newest:
        raise BadRequest(f"branch '{branch or MAIN}' is at version {to_version}: there is nothing to repair")
    state = _state_at(parts, branch, ref, to_version)
    above = rows_above(parts.coordinator.address(ref), to_version)
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
    loss = Loss(branch, to_version, newest, commits, untold, losses)
    moves = dict(_moves(root, _manifest(ref), to_version, entries, branch))
    refs = {pin.ref for pin in after.pins.values() if pin.ref} - {entry.owner for entry in entries}
    _refuse_others(parts, branch, to_version, entries)
    return RepairPlan(loss, moves, _dead_sidecars(parts, branch), tuple(sorted(ref for ref in refs if ref)))


def carry_out(parts: Parts, loss: Loss, actor: str | None) -> tuple[str, tuple[str, ...]]:
    """Move what was told of to quarantine; return its id there, and the paths of what moved.

    Raises:
        ConflictError: something was published since the loss was told (B2).
        StorageError: the system failed; the same call goes on from there.
    """
    root = parts.local_root
    assert root is not None, "a loss was told of a local graph"
    branch = loss.branch
    with (
        parts.queues.schema_gate,
        parts.queues.branch_gates([branch]),
        PublishLock(root / publish_lock_file(branch)) as is_held,
    ):
        plan = plan_repair(parts, loss.to_version, branch)
        if not is_held or plan.loss != loss:
            raise ConflictError(f"branch '{branch or MAIN}' moved since the loss was told: look again")
        quarantine_id = parts.new_id()
        _write_note(parts, quarantine_id, plan, actor)
        moved = [_move_sidecar(parts, quarantine_id, found) for found in plan.sidecars]
        manifest = next(iter(plan.moves))
        forget_mark(root / manifest)
        for dataset, versions in plan.moves.items():
            moved += move_to_quarantine(str(root), dataset, versions, quarantine_id)
        write_mark(root / manifest, loss.to_version, is_synced=False)
        parts.coordinator.forget()
    return quarantine_id, tuple(moved)


def _manifest(ref: str | None) -> str:
    return MANIFEST_DIR if ref is None else f"{MANIFEST_DIR}/tree/{ref}"


def _state_at(parts: Parts, branch: str | None, ref: str | None, version: int) -> ManifestState:
    address = parts.coordinator.address(ref)
    damage = damage_at(address, version)
    if damage is not None:
        raise GraphDamaged(
            file=f"{_manifest(ref)}/{damage[0]}", reason=damage[1], dataset=_manifest(ref), versions=[version]
        )
    handle = parts.coordinator.manifest.open_at(address, version)
    rows = parts.coordinator.manifest.read(handle)
    return ManifestState(branch, ref, 0).with_rows(rows, version=version, fragments=frozenset())


def _moves(
    root: Path, manifest: str, to_version: int, entries: tuple[TableEntry, ...], branch: str | None
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the manifest first, then every table that the branch writes itself (B4)."""
    yield manifest, tuple(version for version in list_versions(root / manifest) if version > to_version)
    for entry in entries:
        if owns(branch, entry):
            dataset = entry.location if entry.owner is None else f"{entry.location}/tree/{entry.owner}"
            above = tuple(version for version in list_versions(root / dataset) if version > entry.version)
            if above:
                yield dataset, above


def _refuse_others(
    parts: Parts, branch: str | None, to_version: int, entries: tuple[TableEntry, ...]
) -> None:
    """Refuse to move what another branch needs; one that cannot be read may need anything (B3)."""
    kept = {(entry.identity, entry.owner): entry for entry in entries if owns(branch, entry)}
    for other in parts.branches.all():
        if other.name == branch:
            continue
        if other.parent_branch == branch and other.parent_manifest_version > to_version:
            raise ConflictError(f"branch '{other.name}' begins at version {other.parent_manifest_version}")
        for identity, pin in parts.coordinator.state(other.name, other.ref).tables.pins.items():
            entry = kept.get((identity, pin.ref))
            if entry is not None and pin.version > entry.version:
                raise ConflictError(f"branch '{other.name}' reads version {pin.version} of {entry.table_key}")
    if branch is not None:
        for identity, pin in parts.coordinator.state().tables.pins.items():
            entry = kept.get((identity, pin.ref))
            if entry is not None and pin.version > entry.version:
                raise ConflictError(f"main reads version {pin.version} of {entry.table_key}")


def _dead_sidecars(parts: Parts, branch: str | None) -> tuple[PendingSidecar, ...]:
    found = tuple(pending for pending in list_pending(parts) if pending.sidecar.branch == branch)
    alive = [pending.operation_id for pending in found if pending.is_alive]
    if alive:
        raise ConflictError(f"operation {alive[0]} is at work on branch '{branch or MAIN}': wait for its end")
    return found


def _write_note(parts: Parts, quarantine_id: str, plan: RepairPlan, actor: str | None) -> None:
    write_note(
        parts,
        quarantine_id,
        branch=plan.loss.branch,
        to_version=plan.loss.to_version,
        newest_version=plan.loss.newest_version,
        actor_id=actor,
        commits=[commit.graph_commit_id for commit in plan.loss.commits],
        refs=list(plan.refs),
    )


def _move_sidecar(parts: Parts, quarantine_id: str, found: PendingSidecar) -> str:
    target = f"{QUARANTINE_DIR}/{quarantine_id}/{found.sidecar.name}"
    parts.adapter.rename_text(found.sidecar.name, target)
    return target
