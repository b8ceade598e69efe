"""Forks and tables that nothing names: dropped with the sidecar that made them, or once they are old enough.

R1  A fork that is named by a pin of a live branch, past pins included, by a sidecar or by a version in
    quarantine is never dropped.
R2  A fork is not considered a leftover before `ORPHAN_GRACE` has passed: a distributed load may hold one for
    hours without a sidecar, and a commit on a dropped ref lands without an error and cannot be read.
R3  If anything cannot be listed or read, nothing is dropped.
R4  A table is removed only by what its first commit says: what somebody else put at its place is not ours.
"""

from collections.abc import Iterable

from omnigraph.commit.parts import Parts
from omnigraph.commit.recovery.pending import list_pending
from omnigraph.commit.recovery.repair_note import refs_given_up
from omnigraph.commit.sidecar import Sidecar
from omnigraph.core.errors import OmnigraphError, StorageError
from omnigraph.core.failpoint import hit
from omnigraph.core.ids import ulid_millis
from omnigraph.history.fold import TableEntry
from omnigraph.storage.tables.handle import TableAddress

ORPHAN_GRACE_S = 7 * 24 * 3600  # as long as the library keeps files that no version names


def drop_unpublished_forks(parts: Parts, sidecar: Sidecar) -> None:
    """Drop the forks of a write that came to nothing; a failure is a warning, and leaves them to cleanup."""
    forks = [table for table in sidecar.tables if table.ref is not None]
    if not forks:
        return
    try:
        named = named_refs(parts, but=sidecar.operation_id)
    except OmnigraphError as error:
        parts.warn(f"forks of {sidecar.operation_id} are left for cleanup: {error}")
        return
    for table in forks:
        if table.ref not in named:
            drop_refs(parts, [parts.address_of(table.table_path, table.ref)])


def reclaim_orphaned_forks(parts: Parts, entry: TableEntry) -> None:
    """Drop forks of a table that nothing names and that are old enough (R1, R2, R3)."""
    try:
        refs = [ref.name for ref in parts.store.list_refs(parts.address(entry))]
        old = [ref for ref in refs if is_old_ref(parts, ref)]
        if not old:
            return
        hit("fork.before_classify")
        named = named_refs(parts)
        hit("fork.before_reclaim")
    except Exception as error:  # noqa: BLE001 - R3: doubt keeps everything, and fails no write
        parts.warn(f"unused forks of {entry.table_key} are left for later: {error}")
        return
    drop_refs(parts, (parts.address_of(entry.location, ref) for ref in old if ref not in named))


def named_refs(parts: Parts, but: str | None = None) -> frozenset[str]:
    """Return every ref in use: those of live branches, of their pins, of other sidecars.

    A branch that cannot be read, or whose control object was lost, is an error (R3).
    """
    parts.branches.copies.refuse_lost()
    named: set[str] = set(parts.coordinator.state().pinned_refs()) | refs_given_up(parts)
    for branch in parts.branches.all():
        named.add(branch.ref)
        named |= parts.coordinator.state(branch.identity).pinned_refs()
    for pending in list_pending(parts):
        if pending.operation_id != but:
            named.update(table.ref for table in pending.sidecar.tables if table.ref)
    return frozenset(named)


def is_old_ref(parts: Parts, ref: str) -> bool:
    """Return whether a ref was minted before the grace period (R2); one that was not minted here is new."""
    made = ulid_millis(ref.rpartition("-")[2])
    return made is not None and made < parts.clock() // 1_000 - ORPHAN_GRACE_S * 1_000


def drop_unpublished_tables(parts: Parts, sidecar: Sidecar) -> None:
    """Drop the tables that a write had made and that came to nothing; no branch ever knew them."""
    created = [table for table in sidecar.tables if table.is_created and table.ref is None]
    drop_made_tables(parts, ((table.table_path, table.transaction_uuid) for table in created))


def drop_made_tables(parts: Parts, made: Iterable[tuple[str, str | None]]) -> None:
    """Remove tables that no manifest names, each with the commit that made it (R4).

    What cannot be removed is a warning, and left for cleanup.
    """
    for location, transaction_uuid in made:
        try:
            if parts.store.transaction_info(parts.address_of(location, None), 1).uuid == transaction_uuid:
                parts.adapter.delete_prefix(location)
        except StorageError as error:
            if error.kind != "not_found":
                parts.warn(f"an unused table is left for cleanup: {error}")
        except OmnigraphError as error:
            parts.warn(f"an unused table is left for cleanup: {error}")


def drop_refs(parts: Parts, addresses: Iterable[TableAddress]) -> None:
    """Drop refs that nothing names; what cannot be dropped is a warning, and left for cleanup."""
    for address in addresses:
        try:
            parts.refs.drop(address)
        except OmnigraphError as error:
            parts.warn(f"an unused ref is left for cleanup: {error}")
