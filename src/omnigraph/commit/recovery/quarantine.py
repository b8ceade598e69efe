"""Hollow versions after a power cut: moved aside at a read-write open, each dataset with its audit row.

A1  Exactly one audit row per quarantine folder and dataset: a folder without its row, left by a crash between
    the two, gets it at the next open.
A2  The manifest comes first: without it nothing else can be read.
A3  What is proven durable stays where it is. A manifest version is proven by the note of its publish, by a
    branch that begins at it, or by a whole version above it; a table version by the manifest naming it.
A4  An unreadable branch, with its forks of tables, affects only itself: an open reports it and goes on.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from omnigraph.commit.parts import RECOVERIES_DATASET, Parts
from omnigraph.commit.recovery.audit import read_records, record_quarantine
from omnigraph.commit.recovery.branch_trouble import UNREADABLE, is_its_own
from omnigraph.commit.recovery.pending import list_pending
from omnigraph.commit.sidecar import Outcome, SidecarTable
from omnigraph.core.damage import GraphDamaged
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import Branch
from omnigraph.history.coordinator import damage_explained, table_damage_explained
from omnigraph.history.identity import MAIN_BRANCH, BranchIdentity, branch_name
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.state import ManifestState
from omnigraph.storage.damage.manifest_survey import proven
from omnigraph.storage.damage.quarantine import (
    QUARANTINE_DIR,
    HollowVersion,
    find_hollow,
    find_unpublished,
    move_to_quarantine,
    translated,
)
from omnigraph.storage.files.version_file import version_of_file_name
from omnigraph.storage.tables.handle import ref_path
from omnigraph.storage.versions.newest import read_mark


def quarantine_manifest(parts: Parts) -> None:
    """Move aside hollow newest versions of the manifests; nothing needs to be readable yet (A2).

    Raises:
        GraphDamaged: the newest version of main's manifest is damaged and proven durable (A3).
        StorageError: something cannot be read.
    """
    if parts.local_root is None:
        return
    branches, unreadable = parts.branches.readable()
    for name, error in unreadable:
        parts.warn(f"branch '{name}' cannot be read: {error}")
    try:
        parts.branches.copies.refuse_lost()
    except GraphDamaged as error:
        parts.warn(str(error))
    _move_manifest(parts, MAIN_BRANCH, branches)
    for branch in branches:
        try:
            _move_manifest(parts, branch.identity, branches)
        except UNREADABLE as error:
            if not is_its_own(branch.identity, error):
                raise
            parts.warn(f"branch '{branch.name}' cannot be read: {error}")  # A4


def quarantine_tables(parts: Parts) -> None:
    """Move aside hollow newest versions of the audit dataset and of every table that a sidecar names.

    Raises:
        GraphDamaged: a published version is hollow.
        StorageError: something cannot be read.
    """
    root = parts.local_root
    if root is None:
        return
    pending = list_pending(parts)
    if (pending or (root / QUARANTINE_DIR).is_dir()) and (root / RECOVERIES_DATASET).exists():
        # Only then may a row have been in flight; the audit of a graph at rest must not be moved.
        durable = read_mark(root / RECOVERIES_DATASET).acknowledged
        _move(parts, RECOVERIES_DATASET, lambda: find_hollow(str(root), RECOVERIES_DATASET, durable=durable))
    for found in pending:
        sidecar = found.sidecar
        try:
            if not parts.branches.is_live(sidecar.branch):
                continue  # nothing of a deleted branch is looked at again; that of a lost one waits
            state = parts.coordinator.state(sidecar.branch)
            for table in sidecar.tables:
                _move_table(parts, root, table, state)
        except UNREADABLE as error:
            if not is_its_own(sidecar.branch, error):
                raise
            parts.warn(f"branch '{sidecar.branch.name}' cannot be read: {error}")  # A4
    record_missing_rows(parts)


def _move_manifest(parts: Parts, branch: BranchIdentity, branches: Sequence[Branch]) -> None:
    root = parts.local_root
    assert root is not None, "the caller has looked"
    dataset = ref_path(MANIFEST_DIR, branch.ref)
    # A branch that begins at a version has synced it first; so has this one with the version it began at.
    begun = [
        other.parent_manifest_version
        for other in branches
        if branch_name(other.parent_branch) == branch.name or other.identity == branch
    ]
    durable = proven(root / dataset, *begun)
    with damage_explained(parts.coordinator.address(branch.ref), branch.name):
        _move(parts, dataset, lambda: find_hollow(str(root), dataset, durable=durable))


def _move_table(parts: Parts, root: Path, table: SidecarTable, state: ManifestState) -> None:
    dataset, pin = _dataset(table), _published(state, table)
    with table_damage_explained(parts.root.uri, state, table.identity):
        _move(parts, dataset, lambda: find_unpublished(str(root), dataset, pin=pin))


def _move(parts: Parts, dataset: str, find: Callable[[], tuple[HollowVersion, ...]]) -> None:
    root = parts.local_root
    assert root is not None, "the caller has looked"
    while hollow := find():
        versions = [found.version for found in hollow]
        for file in move_to_quarantine(str(root), dataset, versions, parts.new_id()):
            parts.warn(f"a power cut left {dataset} with a hollow version: moved to {file}")


def record_missing_rows(parts: Parts) -> None:
    """Record every quarantined dataset that has no row yet (A1)."""
    hit("quarantine.post_move_pre_audit")
    root = parts.local_root
    assert root is not None, "only a local graph has a quarantine"
    folder = root / QUARANTINE_DIR
    with translated("list the quarantine"):
        moved = [(path.name, _moved_datasets(path)) for path in _moves(folder)]
    if not moved:
        return
    records = read_records(parts)
    known = {(found.operation_id, outcome.table_key) for found in records for outcome in found.outcomes}
    names = _labels(parts)
    for quarantine_id, datasets in moved:
        for dataset, newest in datasets.items():
            place, _, ref = dataset.partition("/tree/")
            label = names.get(dataset) or names.get(place, dataset)
            if (quarantine_id, label) in known:
                continue
            address = parts.address_of(place, ref or None)
            readable = parts.store.latest_version(address) if parts.store.exists(address) else 0
            record_quarantine(parts, quarantine_id, Outcome(label, newest, readable))


def _dataset(table: SidecarTable) -> str:
    return ref_path(table.table_path, table.ref)


def _published(state: ManifestState, table: SidecarTable) -> int:
    """Return the newest version that was certainly synced: the pin, or where an unpublished fork begins."""
    pin = state.tables.pins.get(table.identity)
    if pin is None:
        return 0
    return pin.version if pin.ref == table.ref else min(pin.version, table.expected_version)


def _labels(parts: Parts) -> dict[str, str]:
    """Return what datasets are called in the audit: tables by name, manifests with their branch."""
    tables = {entry.location: entry.table_key for entry in parts.coordinator.state().tables.entries()}
    branches, _ = parts.branches.readable()
    manifests = {
        ref_path(MANIFEST_DIR, branch.ref): f"{MANIFEST_DIR} of {branch.name}" for branch in branches
    }
    return tables | manifests


def _moves(folder: Path) -> list[Path]:
    """Return the folders of the quarantine, oldest first."""
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _moved_datasets(folder: Path) -> dict[str, int]:
    """Return the datasets of a quarantine folder, each with the newest version that was moved."""
    newest: dict[str, int] = {}
    for path in sorted(folder.rglob("*.manifest")):
        version = version_of_file_name(path.name)
        if version is not None:
            dataset = str(path.parent.relative_to(folder))
            newest[dataset] = max(version, newest.get(dataset, 0))
    return newest
