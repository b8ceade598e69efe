"""Rows of a delta, read in chunks and kept in memory only if there are few.

R1  However many rows a delta has, no more than a chunk of them is in memory at a time.
R2  Every row that is read is counted.
R3  A row is fetched by its row id where that is known: this costs one read of the row, while finding an id
    costs a walk through an index. A row that was already read when it was found is not fetched again.
R4  One column that differs is enough to tell that a row has changed. Columns of a fixed width are fetched
    first: from rows all over a table a text costs several times as much as a number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.changed_ids import TouchedRows, images, images_at
from omnigraph.changes.row_equality import rows_equal
from omnigraph.core.arrays import RowIds
from omnigraph.core.limits import MERGE_CHUNK_BYTES, MERGE_CHUNK_ROWS
from omnigraph.merge.shapes import NO_SHAPES, Shapes
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.rows import ReplacedRows, take_rows
from omnigraph.storage.tables.table import TableStore

_compute: Any = pc  # the stubs know too little of arrays of text


@dataclass(frozen=True, slots=True)
class PlacedIds:
    """Ids, ascending, with the row ids that they have at one point.

    Where known, also with the rows themselves, and with their addresses there.
    """

    ids: pa.StringArray
    rows: RowIds
    images: pa.Table | None = None
    addresses: RowIds | None = None

    @staticmethod
    def of(ids: list[str], rows: list[int]) -> "PlacedIds":
        """Return ids in order."""
        return PlacedIds(pa.array(ids, pa.utf8()), np.array(rows, dtype=np.int64)).in_order()

    @staticmethod
    def concat(pieces: Sequence["PlacedIds"]) -> "PlacedIds":
        """Return consecutive pieces as one; the rows of several are not kept (R1)."""
        found = [piece for piece in pieces if len(piece)]
        if len(found) == 1:
            return found[0]
        known = [piece.addresses for piece in found if piece.addresses is not None]
        return PlacedIds(
            pa.concat_arrays([NOWHERE.ids, *(piece.ids for piece in found)]),
            np.concatenate([NOWHERE.rows, *(piece.rows for piece in found)]),
            addresses=np.concatenate([NOWHERE.rows, *known]) if len(known) == len(found) else None,
        )

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.ids)

    def in_order(self) -> "PlacedIds":
        """Return the same ids, ascending."""
        order = _compute.sort_indices(self.ids)
        return PlacedIds(self.ids.take(order), self.rows[np.asarray(order)])

    def seen(self, images: pa.Table) -> "PlacedIds":
        """Return the same with their rows, unless these are too large to keep (R1)."""
        return replace(self, images=images) if images.nbytes <= MERGE_CHUNK_BYTES else self

    def with_others(self, others: "PlacedIds") -> "PlacedIds":
        """Return both, ascending."""
        if not len(others):
            return self
        ids = pa.concat_arrays([self.ids, others.ids])
        return PlacedIds(ids, np.concatenate([self.rows, others.rows])).in_order()

    def are_in(self, touched: TouchedRows) -> pa.BooleanArray:
        """Return which of them, placed where the others started from, are among the touched ones."""
        by_row = pa.array(np.isin(self.rows, touched.rows))
        found: pa.BooleanArray = _compute.or_(by_row, _compute.is_in(self.ids, value_set=touched.ids))
        return found

    def filter(self, mask: pa.BooleanArray) -> "PlacedIds":
        """Return those that a mask selects."""
        chosen = np.asarray(mask, dtype=np.bool_)
        return PlacedIds(
            self.ids.filter(mask),
            self.rows[chosen],
            None if self.images is None else self.images.filter(mask),
            None if self.addresses is None else self.addresses[chosen],
        )

    def chunks(self) -> Iterator["PlacedIds"]:
        """Yield pieces of at most a chunk."""
        for start in range(0, len(self), MERGE_CHUNK_ROWS):
            stop = start + MERGE_CHUNK_ROWS
            yield PlacedIds(
                self.ids.slice(start, MERGE_CHUNK_ROWS),
                self.rows[start:stop],
                None if self.images is None else self.images.slice(start, MERGE_CHUNK_ROWS),
                None if self.addresses is None else self.addresses[start:stop],
            )


NOWHERE = PlacedIds(pa.array([], pa.utf8()), np.empty(0, np.int64))


class RowReader:
    """Reads rows of tables, and counts them (R2)."""

    def __init__(self, store: TableStore, shapes: Shapes = NO_SHAPES) -> None:
        """Take the store that opens the tables, and how rows of some versions become those of the merge."""
        self.store = store
        self.shapes = shapes
        self.rows_read = 0

    def find(self, point: PinnedTable, ids: pa.StringArray) -> pa.Table:
        """Return the rows with these ids as one point shows them, ascending by id; without missing ones."""
        return self._shaped(point, self._counted(images(self.store, point, ids)))

    def fetch(self, point: PinnedTable, placed: PlacedIds) -> pa.Table:
        """Return the rows of ids that have these row ids at the point, in order (R3)."""
        if placed.images is not None:
            return placed.images
        rows = self._shaped(point, self._counted(images_at(self.store, point, placed.rows)))
        assert rows["id"].combine_chunks().equals(placed.ids), "a row id names one row of a lineage for good"
        return rows

    def differing(self, point: PinnedTable, placed: PlacedIds, rows: pa.Table) -> pa.BooleanArray:
        """Return which of the rows differ from what one point shows under these row ids (R4)."""
        handle = point.open(self.store)
        equal = np.ones(len(placed), np.bool_)
        for names in _by_cost(rows.schema):
            left = np.flatnonzero(equal)
            if len(left) and names:
                there = take_rows(handle, placed.rows[left], names)
                here = rows.select(names).take(left)
                equal[left] = rows_equal(there, here).to_numpy(zero_copy_only=False)
        self.rows_read += len(placed)
        return pa.array(~equal)

    def _shaped(self, point: PinnedTable, rows: pa.Table) -> pa.Table:
        shape = self.shapes.get(point)
        return rows if shape is None else shape.of(rows)

    def _counted(self, rows: pa.Table) -> pa.Table:
        self.rows_read += rows.num_rows
        return rows


class DeltaRows:
    """The rows of some ids as the source shows them; can be iterated more than once.

    `replaced` are the target's rows that they replace, where those are known.
    """

    def __init__(
        self,
        reader: RowReader,
        point: PinnedTable,
        placed: PlacedIds,
        *,
        replaced: ReplacedRows | None = None,
    ) -> None:
        """Take the ids with their row ids at the source."""
        self._reader, self._point = reader, point
        self.placed = placed
        self.replaced = replaced

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.placed)

    def chunks(self) -> Iterator[pa.Table]:
        """Yield the rows in order; if there are few, they are read once and kept (R1)."""
        for chunk in self.placed.chunks():
            rows = self._reader.fetch(self._point, chunk)
            if len(chunk) == len(self):
                self.placed = self.placed.seen(rows)
            yield rows

    def replacing_chunks(self) -> Iterator[tuple[pa.Table, ReplacedRows | None]]:
        """Yield the same, each chunk with the rows that it replaces."""
        start = 0
        for rows in self.chunks():
            stop = start + rows.num_rows
            yield rows, None if self.replaced is None else self.replaced[start:stop]
            start = stop


def _by_cost(schema: pa.Schema) -> tuple[list[str], list[str]]:
    """Return the columns that are quick to fetch, and the others; without the id, which the rows share."""
    narrow = [item.name for item in schema if pa.types.is_primitive(item.type)]
    return narrow, [name for name in schema.names if name not in {"id", *narrow}]


def as_texts(ids: "pa.StringArray | pa.ChunkedArray[pa.StringScalar]") -> list[str]:
    """Return ids, of which none is null, as plain texts."""
    return cast("list[str]", ids.to_pylist())
