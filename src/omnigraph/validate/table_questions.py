"""The questions of the set checks about whole tables, whose rows are committed, answered by passes over them.

Nothing is written here, so nothing is replaced, retained or refused: every row of a table is asked about.

T1  What is held at a time is bounded. The keys of a large table are compared in parts, by ranges of their
    values, and each part is one pass over the columns in question.
T2  A row's line is its place in a pass, counted from one. The first row with a tuple holds it, whichever part
    it is in: equal tuples are in one part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType
from omnigraph.core.arrays import Positions
from omnigraph.validate.columns import Column, true_positions
from omnigraph.validate.questions import (
    COUNT,
    FILE,
    HOLDER,
    ID,
    LINE,
    NONE_REFUSED,
    NOTHING,
    FoundRows,
    Refused,
)
from omnigraph.validate.sets import is_not_among, later_positions, tuple_codes

KEYS_MAX = 2_000_000  # of one part: with their codes a few hundred megabytes
CHUNK_ROWS = 1_000_000  # compared with a part at a time: looking up a set costs as much as building it
SAMPLES_MAX = 65_536  # values from which the ranges of the parts are chosen


class TableRows(Protocol):
    """Tables at fixed versions, which every pass reads in the same order."""

    def count(self, table_key: str) -> int:
        """Return how many rows a table has."""
        ...

    def batches(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of a table's rows, batch by batch."""
        ...


@dataclass(frozen=True, slots=True)
class _Part:
    """A range of the values of one column: from `low`, below `high`; nulls belong to the last part."""

    low: Column = None
    high: Column = None

    def mask(self, values: Column) -> Column | None:
        """Return which values are inside; none if all are."""
        if self.low is None and self.high is None:
            return None
        if self.low is None:
            inside: Column = pc.less(values, self.high)
        elif self.high is None:
            inside = pc.greater_equal(values, self.low)
        else:
            inside = pc.and_(pc.greater_equal(values, self.low), pc.less(values, self.high))
        return pc.fill_null(inside, self.high is None)


_WHOLE = (_Part(),)


class TableQuestions:
    """Answers about all rows of some tables."""

    def __init__(self, tables: TableRows, limit: int, keys_max: int | None = None) -> None:
        """Take the tables, how many rows an answer may hold, and how many keys are compared at a time."""
        self._tables, self._limit = tables, limit
        self._keys_max = KEYS_MAX if keys_max is None else keys_max

    def duplicates(self, table_key: str, columns: Sequence[str], shown: Sequence[str] = ()) -> FoundRows:
        """Return the rows whose tuple an earlier row has, with that row's id as `HOLDER` (T2)."""
        pivot, parts = self._parts(table_key, columns)
        names = list(dict.fromkeys([ID, *columns, *shown]))
        found = [_repeated(self._part(table_key, names, pivot, part), columns, self._limit) for part in parts]
        return self._first(found)

    def existing(self, table_key: str, columns: Sequence[str]) -> FoundRows:  # noqa: ARG002 - the protocol's
        """Return nothing: no row is outside of the tables."""
        return NOTHING

    def missing(
        self,
        edge: EdgeType,
        refused: Refused = NONE_REFUSED,  # noqa: ARG002 - nothing was refused
    ) -> tuple[FoundRows, FoundRows]:
        """Return the edges whose `src`, and those whose `dst`, is the id of no node."""
        return self._without_end(edge, "src", edge.source), self._without_end(edge, "dst", edge.target)

    def following(self, edge: EdgeType, refused: Refused) -> tuple[FoundRows, FoundRows]:  # noqa: ARG002
        """Return nothing: no node was refused."""
        return NOTHING, NOTHING

    def retained(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:  # noqa: ARG002 - the protocol's
        """Return nothing: no node is removed."""
        return NOTHING, NOTHING

    def counts(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:
        """Return the last edge of each source beyond the maximum, and the sources below the minimum."""
        _, parts = self._parts(edge.table_key, ["src"])
        beyond, below = [], []
        for part in parts:
            counted = self._counted(edge, part)
            if edge.high is not None:
                beyond.append(_placed(counted.filter(pc.greater(counted[COUNT], pa.scalar(edge.high)))))
            few = counted.filter(pc.less(counted[COUNT], pa.scalar(edge.low)))
            below.append(few.select(["src", COUNT]).rename_columns([ID, COUNT]))
        return (
            self._first([FoundRows(rows[: self._limit], rows.num_rows) for rows in beyond]),
            self._first([FoundRows(rows[: self._limit], rows.num_rows) for rows in below]),
        )

    def _counted(self, edge: EdgeType, part: _Part) -> pa.Table:
        """Return each source of a part once: its number of edges, and the greatest id among them."""
        columns: list[tuple[str, pa.DataType]] = [("src", pa.utf8()), (ID, pa.utf8()), (COUNT, pa.int64())]
        counted = pa.schema(columns).empty_table()
        for rows in self._chunks(edge.table_key, [ID, "src"], "src", part):
            ones = rows.select(["src", ID]).append_column(COUNT, pa.array(np.ones(rows.num_rows, np.int64)))
            every = pa.concat_tables([counted, ones.cast(counted.schema)]).group_by("src")
            grouped = every.aggregate([(ID, "max"), (COUNT, "sum")])
            counted = grouped.select(["src", f"{ID}_max", f"{COUNT}_sum"]).rename_columns(["src", ID, COUNT])
        return counted

    def _without_end(self, edge: EdgeType, column: str, node: str) -> FoundRows:
        table_key = f"node:{node}"
        _, parts = self._parts(table_key, [ID])
        found = []
        for part in parts:
            ids = self._part(table_key, [ID], ID, part)[ID]
            for rows in self._chunks(edge.table_key, [ID, column], column, part):
                at = true_positions(is_not_among(rows[column], ids))
                found.append(FoundRows(rows.take(at[: self._limit]), len(at)))
        return self._first(found)

    def _parts(self, table_key: str, columns: Sequence[str]) -> tuple[str, Sequence[_Part]]:
        """Return the column whose values divide a table, and its ranges (T1)."""
        parts = -(-self._tables.count(table_key) // self._keys_max)
        if parts <= 1:
            return columns[0], _WHOLE
        sample = self._sample(table_key, columns)
        pivot = max(columns, key=lambda name: len(pc.unique(sample[name])))
        ordered = sample[pivot].drop_null().sort()
        places = [len(ordered) * number // parts for number in range(1, parts)]
        bounds: list[Column] = list(pc.unique(ordered.take(places))) if len(ordered) else []
        edges: list[Column] = [None, *bounds, None]
        return pivot, [_Part(low, high) for low, high in pairwise(edges)]

    def _sample(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        stride = -(-self._tables.count(table_key) // SAMPLES_MAX)
        taken, at = [], 0
        for batch in self._tables.batches(table_key, columns):
            places = np.arange(-at % stride, batch.num_rows, stride)
            taken.append(batch.take(places))
            at += batch.num_rows
        return pa.Table.from_batches(taken)

    def _part(self, table_key: str, columns: Sequence[str], pivot: str, part: _Part) -> pa.Table:
        """Return the rows of one part, with their places."""
        return pa.concat_tables([*self._chunks(table_key, columns, pivot, part)] or [_no_rows(columns)])

    def _chunks(self, table_key: str, columns: Sequence[str], pivot: str, part: _Part) -> Iterator[pa.Table]:
        """Yield the rows of one part in chunks, with their places (T2)."""
        held: list[pa.RecordBatch] = []
        line = rows = 0
        for batch in self._tables.batches(table_key, columns):
            lines = np.arange(line + 1, line + batch.num_rows + 1, dtype=np.int64)
            line += batch.num_rows
            placed = batch.append_column(FILE, pa.array(np.zeros(len(lines), np.int32)))
            placed = placed.append_column(LINE, pa.array(lines))
            mask = part.mask(batch.column(pivot))
            held.append(placed if mask is None else placed.filter(mask))
            rows += held[-1].num_rows
            if rows >= CHUNK_ROWS:
                yield pa.Table.from_batches(held)
                held, rows = [], 0
        if held:
            yield pa.Table.from_batches(held)

    def _first(self, found: Sequence[FoundRows]) -> FoundRows:
        """Return several answers as one."""
        some = [answer for answer in found if answer.total]
        if not some:
            return NOTHING
        rows = pa.concat_tables([answer.rows for answer in some])
        keys: Column = [(name, "ascending") for name in (LINE, ID) if name in rows.column_names]
        return FoundRows(rows.sort_by(keys)[: self._limit], sum(answer.total for answer in some))


def _repeated(rows: pa.Table, columns: Sequence[str], limit: int) -> FoundRows:
    codes = tuple_codes(rows.select(list(columns)))
    later = later_positions(codes)
    if len(later) == 0:
        return NOTHING
    first = later[:limit]
    holders = rows[ID].take(_first_with(codes, codes[first]))
    return FoundRows(rows.take(first).append_column(HOLDER, holders), len(later))


def _first_with(codes: Positions, wanted: Positions) -> Positions:
    """Return the first position of each wanted code."""
    distinct, places = np.unique(codes, return_index=True)
    return places[np.searchsorted(distinct, wanted)].astype(np.int64)


def _placed(rows: pa.Table) -> pa.Table:
    """Return rows that stand for a whole table: they have no place of their own."""
    nowhere = np.zeros(rows.num_rows, np.int64)
    return rows.append_column(FILE, pa.array(nowhere.astype(np.int32))).append_column(LINE, pa.array(nowhere))


def _no_rows(columns: Sequence[str]) -> pa.Table:
    texts: list[tuple[str, pa.DataType]] = [(name, pa.utf8()) for name in columns]
    return pa.schema([*texts, (FILE, pa.int32()), (LINE, pa.int64())]).empty_table()
