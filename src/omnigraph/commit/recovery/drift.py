"""Tables that are ahead of their pins without a sidecar: what was committed, and whether it may be published.

D1  HEAD is looked at first, then the sidecars, then the pin. A sidecar is durable before HEAD moves and goes
    only after the pin has moved, so what a live writer does is explained by one of the last two looks.
D2  What moved rows only, or nothing at all, is verified; everything else is in doubt, and published only if a
    person insists.
D3  A version that cannot be read, or does not have the columns of its type, is published by nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.catalog.arrow_schema import differing_columns
from omnigraph.catalog.model import Catalog
from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.fence import is_fence
from omnigraph.commit.recovery.quiet import Patience
from omnigraph.commit.write import owns
from omnigraph.core.errors import StorageError
from omnigraph.core.together import each
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.graph_files import graph_files
from omnigraph.storage.files.transactions import UNREADABLE, TransactionInfo
from omnigraph.storage.tables.handle import SnapshotHandle, ref_path

_MOVES_ROWS = frozenset({"reserve", "rewrite"})


class DriftClass(StrEnum):
    """What is known about the versions between the pin of a table and its HEAD."""

    NO_DRIFT = "no_drift"
    VERIFIED_MAINTENANCE = "verified_maintenance"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True)
class TableDrift:
    """One table: where it is published, where it is, and what was committed in between.

    `obstacle` says why its newest version cannot be published at all (D3).
    """

    entry: TableEntry
    head: int
    classification: DriftClass
    operations: tuple[str, ...] = ()
    obstacle: str | None = None


def classify_drift(made: Sequence[TransactionInfo]) -> DriftClass:
    """Return what the versions since a pin amount to (D2)."""
    if not made:
        return DriftClass.NO_DRIFT
    if any(version.operation == UNREADABLE for version in made):
        return DriftClass.UNVERIFIABLE
    is_known = all(version.operation in _MOVES_ROWS or is_fence(version) for version in made)
    return DriftClass.VERIFIED_MAINTENANCE if is_known else DriftClass.SUSPICIOUS


def observe_drift(
    parts: Parts, branch: BranchIdentity, catalog: Catalog, patience: Patience
) -> tuple[ManifestState, tuple[TableDrift, ...]] | None:
    """Return the tables that a branch writes, by name, and what nobody explains about them (D1).

    None means that a live writer is at work, or was a moment ago.

    Raises:
        PendingRecovery: a dead writer left something that may explain it.
        StorageError: the store failed.
    """
    state = parts.coordinator.state(branch)
    entries = [entry for entry in state.tables.entries() if owns(branch, entry)]
    heads = each(lambda entry: _head(parts, entry), entries, at_once=parts.local_root is None)
    if not patience.is_quiet(parts):
        return None
    pins = parts.coordinator.state(branch).tables.pins
    if any(not pins[entry.identity].names_same(entry.pin) for entry in entries):
        return None
    return state, tuple(
        _observed(parts, entry, head, catalog) for entry, head in zip(entries, heads, strict=True)
    )


def pin_at_head(parts: Parts, drift: TableDrift) -> PublishedPin:
    """Return the pin that publishes a table where it is."""
    handle, pin = _open_head(parts, drift.entry, drift.head), drift.entry.pin
    return PublishedPin(
        drift.head,
        pin.ref,
        handle.row_count,
        handle.transaction_uuid,
        pin.branch,
        upkeep_version=pin.upkeep_version,
    )


def _head(parts: Parts, entry: TableEntry) -> int:
    """Return the newest version of a table, readable or not; 0 if there is none."""
    try:
        return parts.store.latest_version(parts.address(entry))
    except StorageError as error:
        if error.kind in {"transient", "configuration"}:
            raise
        dataset = ref_path(entry.location, entry.pin.ref)
        return graph_files(parts.root).newest_version(dataset) or 0


def _observed(parts: Parts, entry: TableEntry, head: int, catalog: Catalog) -> TableDrift:
    if head == entry.version:
        return TableDrift(entry, head, DriftClass.NO_DRIFT)
    if head < entry.version:
        gone = "published versions are gone: put them back from a copy, or use omnigraph repair --to"
        return TableDrift(entry, head, DriftClass.UNVERIFIABLE, obstacle=gone)
    versions = range(entry.version + 1, head + 1)
    try:
        made = parts.store.transactions(parts.address(entry), versions)
        wrong = differing_columns(_open_head(parts, entry, head).schema, catalog.type_of(entry.table_key))
    except StorageError as error:
        if error.kind in {"transient", "configuration"}:
            raise
        return TableDrift(entry, head, DriftClass.UNVERIFIABLE, obstacle=f"cannot be read: {error}")
    obstacle = f"does not fit its type: {'; '.join(wrong)}" if wrong else None
    operations = tuple(version.operation for version in made)
    return TableDrift(entry, head, classify_drift(made), operations, obstacle)


def _open_head(parts: Parts, entry: TableEntry, head: int) -> SnapshotHandle:
    return parts.store.open_at(parts.address(entry), head)
