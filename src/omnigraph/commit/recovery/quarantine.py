"""Hollow versions after a power cut: moved aside at a read-write open, each dataset with its audit row.

A1  Exactly one audit row per quarantine folder and dataset: a folder without its row, left by a crash between
    the two, gets it at the next open.
A2  The manifest comes first: without it nothing else can be read.
"""

from pathlib import Path

from omnigraph.commit.parts import RECOVERIES_DATASET, Parts
from omnigraph.commit.recovery.audit import read_records, record_quarantine
from omnigraph.commit.recovery.pending import list_pending
from omnigraph.commit.sidecar import Outcome, SidecarTable
from omnigraph.core.failpoint import hit
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.state import ManifestState
from omnigraph.storage.quarantine import QUARANTINE_DIR, find_hollow, move_to_quarantine
from omnigraph.storage.version_file import version_of_file_name

_FIRST_VERSION = 1  # a manifest's first version was published by whoever opened the graph before


def quarantine_manifest(parts: Parts) -> None:
    """Move aside hollow newest versions of the manifests; nothing needs to be readable yet (A2)."""
    _move(parts, MANIFEST_DIR, pin=_FIRST_VERSION)
    for branch in parts.branches.all():
        _move(parts, f"{MANIFEST_DIR}/tree/{branch.ref}", pin=branch.parent_manifest_version)


def quarantine_tables(parts: Parts) -> None:
    """Move aside hollow newest versions of the audit dataset and of every table that a sidecar names.

    Raises:
        StorageError: a published version is hollow, or something cannot be read.
    """
    root = parts.local_root
    if root is None:
        return
    if (root / RECOVERIES_DATASET).exists():
        _move(parts, RECOVERIES_DATASET, pin=0)
    for pending in list_pending(parts):
        sidecar = pending.sidecar
        branch = None if sidecar.branch is None else parts.branches.find(sidecar.branch)
        if sidecar.branch is not None and (branch is None or branch.ref != sidecar.branch_ref):
            continue  # nothing of a deleted branch is looked at again
        state = parts.coordinator.state(sidecar.branch, sidecar.branch_ref)
        for table in sidecar.tables:
            _move(parts, _dataset(table), pin=_published(state, table))
    _write_missing_rows(parts, root)


def _move(parts: Parts, dataset: str, *, pin: int) -> None:
    root = parts.local_root
    if root is None:
        return
    hollow = find_hollow(str(root / dataset), pin=pin)
    while hollow:
        moved = move_to_quarantine(str(root), dataset, hollow, parts.new_id())
        for file in moved:
            parts.warn(f"a power cut left {dataset} with a hollow version: moved to {file}")
        hollow = find_hollow(str(root / dataset), pin=pin)


def _write_missing_rows(parts: Parts, root: Path) -> None:
    """Record every quarantined dataset that has no row yet (A1)."""
    hit("quarantine.post_move_pre_audit")
    folder = root / QUARANTINE_DIR
    if not folder.is_dir():
        return
    records = read_records(parts)
    known = {(found.operation_id, outcome.table_key) for found in records for outcome in found.outcomes}
    names = _labels(parts)
    for quarantined in sorted(path for path in folder.iterdir() if path.is_dir()):
        for dataset, newest in _moved_datasets(quarantined).items():
            place, _, ref = dataset.partition("/tree/")
            label = names.get(dataset) or names.get(place, dataset)
            if (quarantined.name, label) in known:
                continue
            address = parts.address_of(place, ref or None)
            readable = parts.store.latest_version(address) if parts.store.exists(address) else 0
            record_quarantine(parts, quarantined.name, Outcome(label, newest, readable))


def _dataset(table: SidecarTable) -> str:
    return table.table_path if table.table_branch is None else f"{table.table_path}/tree/{table.table_branch}"


def _published(state: ManifestState, table: SidecarTable) -> int:
    """Return the newest version that was certainly synced: the pin, or where an unpublished fork begins."""
    pin = state.tables.pins.get(table.identity)
    if pin is None:
        return 0
    return pin.version if pin.ref == table.table_branch else min(pin.version, table.expected_version)


def _labels(parts: Parts) -> dict[str, str]:
    """Return what datasets are called in the audit: tables by name, manifests with their branch."""
    tables = {entry.location: entry.table_key for entry in parts.coordinator.state().tables.entries()}
    manifests = {
        f"{MANIFEST_DIR}/tree/{branch.ref}": f"{MANIFEST_DIR} of {branch.name}"
        for branch in parts.branches.all()
    }
    return tables | manifests


def _moved_datasets(folder: Path) -> dict[str, int]:
    """Return the datasets of a quarantine folder, each with the newest version that was moved."""
    newest: dict[str, int] = {}
    for path in sorted(folder.rglob("*.manifest")):
        version = version_of_file_name(path.name)
        if version is not None:
            dataset = str(path.parent.relative_to(folder))
            newest[dataset] = max(version, newest.get(dataset, 0))
    return newest
