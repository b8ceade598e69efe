"""The questions of the set checks, answered from rows in memory and lookups at the pins of a snapshot."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType
from omnigraph.core.arrays import Mask, Positions
from omnigraph.validate.columns import Column, TypedRows, first_positions, true_positions
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
    null_of,
)
from omnigraph.validate.sets import NO_IDS, KeyOps, holds_one_of, is_among, is_not_among


@dataclass(frozen=True, slots=True)
class Delta:
    """One table's part of a write in the set checks.

    `rows` are in order, including repetitions; `folded` has the last row of each id. `removed_ids` are gone
    after the write.
    """

    rows: TypedRows
    folded: TypedRows
    removed_ids: Column

    @property
    def replaced_ids(self) -> Column:
        """The ids under which committed rows may be replaced."""
        return NO_IDS if self.folded.has_fresh_ids else self.folded.ids

    @property
    def touched_ids(self) -> Column:
        """The ids of committed rows that are replaced or removed: all others are outside the delta."""
        return concat_ids(self.replaced_ids, self.removed_ids)


class ArrowQuestions:
    """Answers about a write held in memory."""

    def __init__(self, deltas: Mapping[str, Delta], ops: KeyOps, limit: int) -> None:
        """Take the write, the lookups in committed rows, and how many rows an answer may hold."""
        self._deltas, self._ops, self._limit = deltas, ops, limit
        self._missing_ids: dict[tuple[str, str], Column] = {}

    def duplicates(self, table_key: str, columns: Sequence[str], shown: Sequence[str] = ()) -> FoundRows:
        """Return the rows whose tuple appears in an earlier row."""
        rows = self._deltas[table_key].rows
        return self._found(rows, self._repeated(rows, columns), [*columns, *shown])

    def existing(self, table_key: str, columns: Sequence[str]) -> FoundRows:
        """Return the rows whose tuple is held by a committed row that the write leaves alone."""
        delta = self._deltas[table_key]
        by_id = list(columns) == [ID]
        asked = delta.rows if by_id else delta.folded
        keys = asked.table.select(list(columns))
        outside = NO_IDS if by_id else delta.touched_ids
        found = self._ops.existing(table_key, keys, columns, outside_ids=outside)
        if found.num_rows == 0:
            return NOTHING
        held: Mask = holds_one_of(keys, found)
        repeated = self._repeated(delta.rows, columns)
        if len(repeated):  # one violation per row and constraint
            held &= ~holds_one_of(_places(asked), _places(delta.rows.take(repeated)))
        if not held.any():
            return NOTHING
        answer = self._found(asked, np.flatnonzero(held), columns)
        holders = [_holder(found, columns, answer.rows, row) for row in range(answer.rows.num_rows)]
        return FoundRows(answer.rows.append_column(HOLDER, pa.array(holders, pa.utf8())), answer.total)

    def missing(self, edge: EdgeType, refused: Refused = NONE_REFUSED) -> tuple[FoundRows, FoundRows]:
        """Return the edges with an end that is neither written nor committed and kept, nor refused."""
        return self._without_ends(edge, is_not_among, refused)

    def following(self, edge: EdgeType, refused: Refused) -> tuple[FoundRows, FoundRows]:
        """Return the edges with an end that is missing because the node was refused."""
        return self._without_ends(edge, is_among, refused)

    def retained(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:
        """Return committed edges outside the write with an end that it removes."""
        return self._retained(edge, "src", edge.source), self._retained(edge, "dst", edge.target)

    def counts(self, edge: EdgeType) -> tuple[FoundRows, FoundRows]:
        """Return the rows beyond the maximum, and the sources below the minimum."""
        delta = self._deltas[edge.table_key]
        rows = delta.folded
        touched: Column = pc.unique(rows.table.column("src"))
        if edge.low > 0:
            touched = pc.unique(concat_ids(touched, self._ops.sources(edge.table_key, delta.touched_ids)))
        removed = self._removed(edge.source)
        if len(removed):
            touched = touched.filter(is_not_among(touched, removed))
        if len(touched) == 0:
            return NOTHING, NOTHING
        counted = self._ops.counts(edge.table_key, touched, without_edge_ids=delta.touched_ids)
        committed = np.zeros(len(touched), dtype=np.int64)
        committed[_positions_in(counted["src"], touched)] = np.asarray(counted["n"])
        owners = _positions_in(rows.table.column("src"), touched)
        added = np.bincount(owners[owners >= 0], minlength=len(touched))
        totals = committed + added
        few = np.flatnonzero(totals < edge.low)
        below = FoundRows(self._sources(touched.take(few), totals[few]), len(few))
        if edge.high is None:
            return NOTHING, below
        beyond = _first_beyond(edge.high, owners=owners, committed=committed, totals=totals)
        if len(beyond) == 0:
            return NOTHING, below
        answer = self._found(rows, beyond, ["src"])
        found_totals = totals[_positions_in(answer.rows["src"], touched)]
        return FoundRows(answer.rows.append_column(COUNT, pa.array(found_totals)), answer.total), below

    def folded_count(self, table_key: str) -> int:
        """Return how many ids the rows of a table have."""
        return self._deltas[table_key].folded.count

    def cleared(self, table_key: str, names: Sequence[str]) -> dict[str, int]:
        """Return for each of these properties in how many committed rows its value becomes null."""
        return cleared_rows(self._deltas[table_key].folded, names, self._ops)

    def replaced(self, table_key: str, names: Sequence[str]) -> dict[str, int]:
        """Return for each of these properties how many committed rows with a value are written anew."""
        return replaced_rows(self._deltas[table_key].folded, names, self._ops)

    def _repeated(self, rows: TypedRows, columns: Sequence[str]) -> Positions:
        if rows.count < 2 or (rows.has_fresh_ids and list(columns) == [ID]):
            return np.empty(0, dtype=np.int64)
        return self._ops.duplicates(rows.table.select(list(columns)))

    def _missing(self, edge: EdgeType, column: str, node: str) -> Column:
        """Return the ids at one end of edges that no node has; they are looked up once."""
        known = self._missing_ids.get((edge.table_key, column))
        if known is None:
            table_key = f"node:{node}"
            known = pc.unique(self._deltas[edge.table_key].folded.table.column(column))
            written = self._deltas.get(table_key)
            if written is not None and written.folded.count:
                known = known.filter(is_not_among(known, written.folded.ids))
            known = self._ops.missing(table_key, known) if len(known) else known
            self._missing_ids[edge.table_key, column] = known
        return known

    def _without_ends(
        self, edge: EdgeType, chosen: Callable[[Column, Column], Column], refused: Refused
    ) -> tuple[FoundRows, FoundRows]:
        """Return the edges that end at missing nodes, either those that were refused or the others."""

        def ending(column: str, node: str) -> FoundRows:
            missing = self._missing(edge, column, node)
            if len(missing):
                missing = missing.filter(
                    chosen(missing, pa.array(refused.get(f"node:{node}", ()), pa.utf8()))
                )
            if len(missing) == 0:
                return NOTHING
            rows = self._deltas[edge.table_key].folded
            return self._found(rows, true_positions(is_among(rows.table.column(column), missing)), [column])

        return ending("src", edge.source), ending("dst", edge.target)

    def _retained(self, edge: EdgeType, column: str, node: str) -> FoundRows:
        gone = self._removed(node)
        if len(gone) == 0:
            return NOTHING
        own = self._deltas.get(edge.table_key)
        touched = NO_IDS if own is None else own.touched_ids
        keys: pa.Table = pa.table({column: gone})
        found = self._ops.existing(edge.table_key, keys, [column], outside_ids=touched)
        return FoundRows(self._first_by_id(found), found.num_rows)

    def _removed(self, node: str) -> Column:
        delta = self._deltas.get(f"node:{node}")
        return NO_IDS if delta is None else delta.removed_ids

    def _sources(self, ids: Column, totals: Positions) -> pa.Table:
        return self._first_by_id(pa.table({ID: ids, COUNT: pa.array(totals)}))

    def _first_by_id(self, found: pa.Table) -> pa.Table:
        if found.num_rows <= self._limit:
            return found
        return found.take(pc.sort_indices(found[ID])[: self._limit])

    def _found(self, rows: TypedRows, positions: Positions, columns: Sequence[str]) -> FoundRows:
        if len(positions) == 0:
            return NOTHING
        first = first_positions(rows, positions, self._limit)
        names = [name for name in dict.fromkeys(columns) if name != ID]
        chosen = rows.table.select([ID, *names]).take(first)
        arrays: list[Column] = [pa.array(rows.files[first]), pa.array(rows.lines[first]), *chosen.columns]
        return FoundRows(pa.Table.from_arrays(arrays, names=[FILE, LINE, ID, *names]), len(positions))


def cleared_rows(rows: TypedRows, names: Sequence[str], ops: KeyOps) -> dict[str, int]:
    """Return in how many committed rows an upsert of these rows, each id once, clears each property."""
    if rows.has_fresh_ids or not names:
        return {}
    table_key, empty = rows.type.table_key, {name: _is_null(rows.table, name) for name in names}
    known = ops.present(table_key, rows.ids.filter(functools.reduce(pc.or_, empty.values())))
    counts: dict[str, int] = {}
    for name, is_empty in empty.items() if len(known) else ():
        ids = rows.ids.filter(is_empty)
        count = len(ops.holders(table_key, ids.filter(is_among(ids, known)), name))
        if count:
            counts[name] = count
    return counts


def replaced_rows(rows: TypedRows, names: Sequence[str], ops: KeyOps) -> dict[str, int]:
    """Return how many committed rows have a value of each property and are replaced by one of these."""
    if rows.has_fresh_ids or not names:
        return {}
    table_key = rows.type.table_key
    known = ops.present(table_key, rows.ids)
    counts = {name: len(ops.holders(table_key, known, name)) for name in names if len(known)}
    return {name: count for name, count in counts.items() if count}


def _is_null(table: pa.Table, name: str) -> Column:
    flag = null_of(name)
    return table.column(flag) if flag in table.column_names else table.column(name).is_null()


def concat_ids(left: Column, right: Column) -> Column:
    """Return two columns of ids as one."""
    if len(left) == 0 or len(right) == 0:
        return left if len(right) == 0 else right
    pieces = [piece for ids in (left, right) for piece in getattr(ids, "chunks", [ids])]
    return pa.chunked_array(pieces, pa.utf8())


def _first_beyond(high: int, *, owners: Positions, committed: Positions, totals: Positions) -> Positions:
    """Return the position of the first row beyond the maximum of each source that has too many edges."""
    order = np.argsort(owners, kind="stable")
    over = np.intersect1d(np.flatnonzero(totals > high), owners)
    starts = np.searchsorted(owners[order], over)
    return order[starts + np.maximum(high - committed[over], 0)].astype(np.int64)


def _holder(found: pa.Table, columns: Sequence[str], asked: pa.Table, row: int) -> str:
    """Return the least id among the holders of a tuple."""
    for name in columns:
        found = found.filter(pc.equal(found.column(name), asked.column(name)[row]))
    return min(map(str, found[ID].to_pylist()))


def _places(rows: TypedRows) -> pa.Table:
    columns: list[Column] = [pa.array(rows.files), pa.array(rows.lines), rows.ids]
    return pa.Table.from_arrays(columns, names=[FILE, LINE, ID])


def _positions_in(values: Column, among: Column) -> Positions:
    """Return the position of each value among distinct others; -1 where it is missing."""
    whole = among.combine_chunks() if isinstance(among, pa.ChunkedArray) else among
    found: Column = pc.index_in(values, value_set=whole)
    return np.asarray(pc.fill_null(found, -1), dtype=np.int64)
