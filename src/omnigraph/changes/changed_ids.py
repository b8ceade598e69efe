"""Which ids may differ between two points of one table, found from files and row ids.

N1  Every id whose row differs is reported. `updated` may also hold rows that were written again with equal
    values; `inserted` and `deleted` are exact.
N2  The work depends on the rows that were written or deleted between the points, not on the table or the
    number of commits: places that both points show are equal whatever happened in between, and are not read.
N3  Rows that were only moved are not reported: along a common history the row id and the version of the last
    change identify the content. Elsewhere row ids mean nothing, so ids decide.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.row_equality import rows_equal
from omnigraph.core.arrays import RowIds
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.rows import take_rows
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.difference import UNKNOWN_VERSION, Along, OwnRows, all_rows, own_rows

__all__ = [
    "ChangedIds",
    "TouchedRows",
    "changed_ids",
    "images",
    "images_at",
    "rows_equal",
    "touched_rows",
]

_UNBOUNDED = sys.maxsize
_NO_IDS = pa.array([], pa.utf8())
_NO_ROWS: RowIds = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ChangedIds:
    """Ids, ascending, that may differ between two points (N1), and how many rows were looked at for them.

    `rows_before` are the row ids, at the earlier point, of the updated ones and then of the deleted ones;
    `rows_after`, at the later point, those of the inserted ones and then of the updated ones. `addresses` say
    where the updated ones are at the earlier point. `images` are the rows of `rows_after` themselves, if they
    were asked for and reading them at the same time was cheaper than fetching them later.
    """

    inserted: pa.StringArray
    updated: pa.StringArray
    deleted: pa.StringArray
    rows_read: int
    rows_before: RowIds
    rows_after: RowIds
    addresses: RowIds = field(default_factory=lambda: _NO_ROWS)
    images: pa.Table | None = None

    def __len__(self) -> int:
        """Return how many ids there are."""
        return len(self.inserted) + len(self.updated) + len(self.deleted)


@dataclass(frozen=True, slots=True)
class TouchedRows:
    """What differs between two points, in just enough detail to tell whether another side touched the same.

    `rows` are row ids of the earlier point; `ids` are those of entities that have no row there, and of all
    that may differ if the row ids of the two points are unrelated.
    """

    rows: RowIds
    ids: pa.StringArray
    rows_read: int


_NOTHING = ChangedIds(_NO_IDS, _NO_IDS, _NO_IDS, 0, _NO_ROWS, _NO_ROWS)


def changed_ids(
    store: TableStore, before: PinnedTable | None, after: PinnedTable | None, *, with_images: bool = False
) -> ChangedIds:
    """Return the ids that differ between two points of one table; None is a table that does not exist.

    Raises:
        HistoricalVersionReclaimed: a pinned version was cleaned up.
        StorageError: the store failed.
    """
    if before is None or after is None:
        return _one_sided(store, before, after)
    found = _differing(store, before, after, Along.IMAGES if with_images else Along.IDS)
    return _NOTHING if found is None else _paired(found)


def touched_rows(store: TableStore, before: PinnedTable | None, after: PinnedTable) -> TouchedRows:
    """Return the same for a caller that looks for only some of them; ids of updated rows are not read.

    Raises:
        HistoricalVersionReclaimed: a pinned version was cleaned up.
        StorageError: the store failed.
    """
    found = None if before is None else _differing(store, before, after, Along.NOTHING)
    if found is None or not found.is_one_lineage:
        changed = changed_ids(store, before, after)
        ids = pa.concat_arrays([changed.inserted, changed.updated, changed.deleted])
        return TouchedRows(_NO_ROWS, ids, changed.rows_read)
    rows = found.was.row_ids[found.at_was]
    is_new = ~np.isin(found.now.row_ids[found.at_now], rows)
    ids = found.now.ids_of(found.at_now[is_new])
    return TouchedRows(rows, ids, len(found.was) + len(found.now))


def images(store: TableStore, point: PinnedTable, ids: pa.StringArray) -> pa.Table:
    """Return the rows with these ids as one point shows them, ascending by id; missing ones are left out.

    Raises:
        HistoricalVersionReclaimed: the pinned version was cleaned up.
        StorageError: the store failed.
    """
    handle = point.open(store)
    if not len(ids):
        return handle.schema.empty_table()
    found = store.rows_by_id(handle, cast("list[str]", ids.to_pylist()))
    return found.sort_by("id")


def images_at(store: TableStore, point: PinnedTable, row_ids: RowIds) -> pa.Table:
    """Return the rows with these row ids as one point shows them, in the order asked for; faster than by id.

    Raises:
        HistoricalVersionReclaimed: the pinned version was cleaned up.
        StorageError: the store failed.
    """
    handle = point.open(store)
    return take_rows(handle, row_ids, handle.schema.names) if len(row_ids) else handle.schema.empty_table()


def shared_version(store: TableStore, one: TableAddress, other: TableAddress) -> int:
    """Return the version up to which two refs of a table share their history; 0 if they share none.

    Raises:
        StorageError: the store failed.
    """
    if one.ref == other.ref:
        return _UNBOUNDED
    ancestors = dict(_ancestry(store, one))
    for ref, version in _ancestry(store, other):
        if ref in ancestors:
            return min(version, ancestors[ref])
    return 0


def _ancestry(store: TableStore, address: TableAddress) -> Iterator[tuple[str | None, int]]:
    """Yield a ref and what it was forked from, each with the version up to which they share a history."""
    ref, version = address.ref, _UNBOUNDED
    yield ref, version
    while ref is not None:
        start = store.ref_start(TableAddress(address.uri, ref))
        if start is None:
            return
        ref, version = start.parent, min(version, start.version)
        yield ref, version


@dataclass(frozen=True, slots=True)
class _Differing:
    """Rows that are in different places on the two sides, and the positions of those that may differ."""

    was: OwnRows
    now: OwnRows
    at_was: RowIds
    at_now: RowIds
    is_one_lineage: bool  # whether row ids of both sides name the same rows


def _differing(store: TableStore, before: PinnedTable, after: PinnedTable, along: Along) -> _Differing | None:
    """Compare two points by their files; None if they show the same."""
    if before == after:
        return None
    older, newer = before.open(store), after.open(store)
    was, now = own_rows(older, newer, along, store.row_sequences)
    if not len(was) and not len(now):
        return None
    shared = shared_version(store, before.address, after.address)
    at_was, at_now = np.arange(len(was)), np.arange(len(now))
    if older.schema.equals(newer.schema):
        at_was, at_now = _without_moved(was, now, shared)
    return _Differing(was, now, at_was, at_now, shared >= min(older.version, newer.version))


def _without_moved(was: OwnRows, now: OwnRows, shared: int) -> tuple[RowIds, RowIds]:
    """Return the positions of all rows except those that were moved and are the same (N3)."""
    _, at_was, at_now = np.intersect1d(was.row_ids, now.row_ids, assume_unique=True, return_indices=True)
    version = was.updated_at[at_was]
    is_moved = (version != UNKNOWN_VERSION) & (version == now.updated_at[at_now]) & (version <= shared)
    return (
        np.delete(np.arange(len(was)), at_was[is_moved]),
        np.delete(np.arange(len(now)), at_now[is_moved]),
    )


def _paired(found: _Differing) -> ChangedIds:
    """Tell updates from inserts and deletes: by row id along one lineage, the rest by id."""
    was, now = found.was, found.now
    left_was, left_now = found.at_was, found.at_now
    both_was = both_now = _NO_ROWS
    updated = _NO_IDS
    if found.is_one_lineage:
        _, at_was, at_now = np.intersect1d(
            was.row_ids[left_was], now.row_ids[left_now], assume_unique=True, return_indices=True
        )
        both_was, both_now = left_was[at_was], left_now[at_now]
        updated = now.ids_of(both_now)
        left_was, left_now = np.delete(left_was, at_was), np.delete(left_now, at_now)
    ids_was, ids_now = was.ids_of(left_was), now.ids_of(left_now)
    at_was, at_now = _meeting(ids_was, ids_now)
    updated = pa.concat_arrays([updated, ids_now.take(at_now)])
    both_was = np.concatenate([both_was, left_was[at_was]])
    both_now = np.concatenate([both_now, left_now[at_now]])
    gone, come = np.delete(np.arange(len(left_was)), at_was), np.delete(np.arange(len(left_now)), at_now)
    inserted, deleted = _Ordered.of(ids_now.take(come)), _Ordered.of(ids_was.take(gone))
    changed = _Ordered.of(updated)
    before = both_was[changed.order]
    after = np.concatenate([left_now[come[inserted.order]], both_now[changed.order]])
    return ChangedIds(
        inserted=inserted.ids,
        updated=changed.ids,
        deleted=deleted.ids,
        rows_read=len(was) + len(now),
        rows_before=was.row_ids[np.concatenate([before, left_was[gone[deleted.order]]])],
        rows_after=now.row_ids[after],
        addresses=was.addresses[before],
        images=now.images_of(after),
    )


def _meeting(ids_was: pa.StringArray, ids_now: pa.StringArray) -> tuple[RowIds, RowIds]:
    """Return the positions, on each side, of the ids that both sides have."""
    found = pc.index_in(ids_now, value_set=ids_was)
    at_now = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    at_was = found.drop_null().to_numpy().astype(np.int64)
    return at_was, at_now


def _one_sided(store: TableStore, before: PinnedTable | None, after: PinnedTable | None) -> ChangedIds:
    gone, gone_rows = _all_of(store, before)
    come, come_rows = _all_of(store, after)
    return ChangedIds(come, _NO_IDS, gone, len(gone) + len(come), gone_rows, come_rows)


def _all_of(store: TableStore, point: PinnedTable | None) -> tuple[pa.StringArray, RowIds]:
    if point is None:
        return _NO_IDS, _NO_ROWS
    ids, row_ids = all_rows(point.open(store))
    ordered = _Ordered.of(ids)
    return ordered.ids, row_ids[ordered.order]


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Ids in ascending order, and where each was."""

    ids: pa.StringArray
    order: RowIds

    @staticmethod
    def of(ids: pa.StringArray) -> "_Ordered":
        order = pc.sort_indices(ids)
        return _Ordered(ids.take(order), order.to_numpy().astype(np.int64))
