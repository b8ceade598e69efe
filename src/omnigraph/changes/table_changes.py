"""The changes of one table in the order of ids, with images, some rows at a time.

K1  What is in memory at a time is the changed ids and one chunk of images.
K2  Rows that were written again with equal values are not changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import PROPERTY_ID_KEY
from omnigraph.changes.changed_ids import ChangedIds, changed_ids, images_at
from omnigraph.changes.model import ChangeFilter, Op
from omnigraph.changes.pairs import TablePair
from omnigraph.changes.position import Position
from omnigraph.changes.row_equality import rows_equal
from omnigraph.core.arrays import RowIds
from omnigraph.core.clock import look_at_deadline
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.table import TableStore

CHUNK_ROWS_MAX = 8_192
CHUNK_BYTES = 32 * 1024 * 1024  # of images on one side, estimated from the rows so far
_FIRST_ROWS = 16  # the size of rows is unknown before some are read
_GROWTH = 8
_INSERT, _UPDATE, _DELETE = 0, 1, 2
_OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)
_NO_ROW = -1


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Some changes of a table, ascending by id; each side has the rows of those that have an image there."""

    pair: TablePair
    ids: pa.StringArray
    ops: tuple[Op, ...]
    before: pa.Table
    after: pa.Table


def table_changes(
    store: TableStore, pair: TablePair, wanted: ChangeFilter, beyond: Position | None = None
) -> Iterator[ChangedRows]:
    """Yield the wanted changes of one table, starting after a position.

    Raises:
        ChangeCursorRejected: the position is not in this table.
        HistoricalVersionReclaimed: a pinned version was cleaned up.
        StorageError: the store failed.
    """
    listed = _listed(changed_ids(store, pair.before, pair.after))
    start = 0 if beyond is None else beyond.place_in(listed.ids) + 1
    codes = [code for code, op in enumerate(_OPS) if wanted.wants_op(op)]
    yield from _chunks(store, pair, listed, start + np.flatnonzero(np.isin(listed.ops[start:], codes)))


def count_changes(store: TableStore, pair: TablePair, wanted: ChangeFilter) -> dict[Op, int]:
    """Count the wanted changes of one table; only updates are compared, to leave out equal ones (K2).

    Raises:
        HistoricalVersionReclaimed: a pinned version was cleaned up.
        StorageError: the store failed.
    """
    listed = _listed(changed_ids(store, pair.before, pair.after))
    counts = {op: int((listed.ops == code).sum()) for code, op in enumerate(_OPS)}
    if counts[Op.UPDATE] and wanted.wants_op(Op.UPDATE):
        updates = _chunks(store, pair, listed, np.flatnonzero(listed.ops == _UPDATE))
        counts[Op.UPDATE] = sum(len(chunk.ops) for chunk in updates)
    return {op: count if wanted.wants_op(op) else 0 for op, count in counts.items()}


def _chunks(store: TableStore, pair: TablePair, listed: "_Listed", places: RowIds) -> Iterator[ChangedRows]:
    size = _FIRST_ROWS
    while len(places):
        look_at_deadline()
        chunk = listed.at(places[:size])
        places = places[size:]
        before = _images(store, pair.before, chunk.rows_before)
        after = _images(store, pair.after, chunk.rows_after)
        size = _next_size(size, len(chunk.ids), max(before.nbytes, after.nbytes))
        yield _without_equal(pair, chunk, _aligned(before, after), after)


@dataclass(frozen=True, slots=True)
class _Listed:
    """Changed ids ascending, with what happened and the row id on either side."""

    ids: pa.StringArray
    ops: RowIds
    rows_before: RowIds
    rows_after: RowIds

    def at(self, places: RowIds) -> "_Listed":
        return _Listed(
            self.ids.take(places), self.ops[places], self.rows_before[places], self.rows_after[places]
        )


def _listed(changed: ChangedIds) -> _Listed:
    counts = len(changed.inserted), len(changed.updated), len(changed.deleted)
    ids = pa.concat_arrays([changed.inserted, changed.updated, changed.deleted])
    none_before, none_after = np.full(counts[0], _NO_ROW), np.full(counts[2], _NO_ROW)
    whole = _Listed(
        ids,
        np.repeat([_INSERT, _UPDATE, _DELETE], counts),
        np.concatenate([none_before, changed.rows_before]),
        np.concatenate([changed.rows_after, none_after]),
    )
    return whole.at(pc.sort_indices(ids).to_numpy().astype(np.int64))


def _images(store: TableStore, point: PinnedTable | None, row_ids: RowIds) -> pa.Table:
    return pa.table({}) if point is None else images_at(store, point, row_ids[row_ids != _NO_ROW])


def _next_size(size: int, count: int, nbytes: int) -> int:
    """Return how many rows to read next: more, but no more than would fit if they are as large as these."""
    fitting = CHUNK_BYTES * count // max(1, nbytes)
    return max(1, min(size * _GROWTH, fitting, CHUNK_ROWS_MAX))


def _aligned(before: pa.Table, after: pa.Table) -> pa.Table:
    """Return the earlier images under the later names of their properties."""
    names = {_property_id(item): item.name for item in after.schema}
    return before.rename_columns([names.get(_property_id(item), item.name) for item in before.schema])


def _property_id(item: "pa.Field[pa.DataType]") -> bytes:
    return (item.metadata or {}).get(PROPERTY_ID_KEY, item.name.encode())


def _without_equal(pair: TablePair, chunk: _Listed, before: pa.Table, after: pa.Table) -> ChangedRows:
    """Leave out updates that changed nothing (K2)."""
    is_update = chunk.ops == _UPDATE
    kept = np.ones(len(chunk.ids), np.bool_)
    has_before, has_after = chunk.ops != _INSERT, chunk.ops != _DELETE
    if is_update.any():
        both = before.filter(pa.array(is_update[has_before])), after.filter(pa.array(is_update[has_after]))
        kept[is_update] = ~rows_equal(*both).to_numpy(zero_copy_only=False)
    return ChangedRows(
        pair,
        chunk.ids.filter(pa.array(kept)),
        tuple(_OPS[code] for code in chunk.ops[kept].tolist()),
        before.filter(pa.array(kept[has_before])),
        after.filter(pa.array(kept[has_after])),
    )
