"""Questions about sets of keys, and their answers in Arrow.

K1  A tuple with a null part equals no tuple, not even itself.
K2  Both zeros of a float are one key.
K3  One call to a committed view per question, never one per row.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import Mask, Positions
from omnigraph.validate.columns import Column, TableChange, to_mask

NO_IDS: Column = pa.array([], pa.utf8())


class CommittedView(Protocol):
    """Committed rows, as storage finds them at the pins of one snapshot."""

    def rows_by_values(self, table_key: str, column: str, values: Column, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the rows whose `column` is one of the distinct values."""
        ...

    def ids_present(self, table_key: str, ids: Column) -> Column:
        """Return those of the ids that a row has."""
        ...

    def edges_by_endpoint(self, table_key: str, column: str, ids: Column) -> pa.Table:
        """Return `id`, `src` and `dst` of the edges whose `column`, `src` or `dst`, is one of the ids."""
        ...

    def ids_with_value(self, table_key: str, ids: Column, column: str) -> Column:
        """Return those of the ids whose row has a value in a column, without its values."""
        ...


class KeyOps:
    """Answers from a committed view, minus what this write removes or overwrites."""

    def __init__(self, view: CommittedView, delta: Mapping[str, TableChange]) -> None:
        """Take the view and the whole write."""
        self._view, self._delta = view, delta

    def duplicates(self, keys: pa.Table) -> Positions:
        """Return the positions of rows whose tuple appears in an earlier row (K1, K2)."""
        return later_positions(tuple_codes(keys))

    def existing(
        self, table_key: str, keys: pa.Table, columns: Sequence[str], *, outside_ids: Column
    ) -> pa.Table:
        """Return tuple and `id` of each committed row outside that holds one of the tuples (K1, K2, K3)."""
        names = list(dict.fromkeys([*columns, "id"]))
        keys = _without_nulls(keys.select(list(columns)))
        if self._is_overwritten(table_key) or keys.num_rows == 0:
            nothing: dict[str, Column] = {name: keys.column(name)[:0] for name in columns}
            return pa.table({"id": NO_IDS, **nothing}).select(names)
        pivot = columns[0] if len(columns) == 1 else max(columns, key=lambda name: _variety(keys, name))
        found = self._rows_by(table_key, pivot, _distinct(keys.column(pivot)), names)
        if len(columns) > 1:
            found = found.filter(pa.array(holds_one_of(found.select(list(columns)), keys)))
        return found if len(outside_ids) == 0 else found.filter(is_not_among(found["id"], outside_ids))

    def missing(self, table_key: str, ids: Column) -> Column:
        """Return which of these distinct ids belong to no committed row that this write leaves in place."""
        if self._is_overwritten(table_key) or len(ids) == 0:
            return ids
        present = self._view.ids_present(table_key, ids)
        absent = is_not_among(ids, present)
        change = self._delta.get(table_key)
        if change is not None and len(change.removed_ids):
            absent = pc.or_(absent, is_among(ids, change.removed_ids))
        return ids.filter(absent)

    def counts(self, table_key: str, sources: Column, *, without_edge_ids: Column) -> pa.Table:
        """Return `src` and `n`, the number of committed edges of these sources without the given ones."""
        if self._is_overwritten(table_key) or len(sources) == 0:
            return pa.table({"src": NO_IDS, "n": pa.array([], pa.int64())})
        edges = self._view.edges_by_endpoint(table_key, "src", sources)
        if len(without_edge_ids):
            edges = edges.filter(is_not_among(edges["id"], without_edge_ids))
        counted: Column = pc.value_counts(edges["src"])
        return pa.table({"src": counted.field("values"), "n": counted.field("counts")})

    def sources(self, table_key: str, edge_ids: Column) -> Column:
        """Return the distinct `src` of the committed edges with these ids."""
        if len(edge_ids) == 0:
            return NO_IDS
        return pc.unique(self._view.rows_by_values(table_key, "id", edge_ids, ["id", "src"])["src"])

    def present(self, table_key: str, ids: Column) -> Column:
        """Return those of the ids that a committed row has."""
        return NO_IDS if len(ids) == 0 else self._view.ids_present(table_key, ids)

    def holders(self, table_key: str, ids: Column, name: str) -> Column:
        """Return those of the ids whose committed row has a value of this property."""
        return NO_IDS if len(ids) == 0 else self._view.ids_with_value(table_key, ids, name)

    def _rows_by(self, table_key: str, column: str, values: Column, names: Sequence[str]) -> pa.Table:
        if table_key.startswith("edge:") and column in {"src", "dst"} and set(names) <= {"id", "src", "dst"}:
            return self._view.edges_by_endpoint(table_key, column, values).select(list(names))
        return self._view.rows_by_values(table_key, column, values, names)

    def _is_overwritten(self, table_key: str) -> bool:
        change = self._delta.get(table_key)
        return change is not None and change.mode == "overwrite"


def is_among(values: Column, others: Column) -> Column:
    """Return whether each value is one of the others."""
    whole = others.combine_chunks() if isinstance(others, pa.ChunkedArray) else others
    return pc.is_in(values, value_set=whole)


def is_not_among(values: Column, others: Column) -> Column:
    """Return whether each value is not among the others."""
    return pc.invert(is_among(values, others))


def holds_one_of(keys: pa.Table, others: pa.Table) -> Mask:
    """Return whether the tuple of each row is one of the others (K1, K2)."""
    if keys.num_rows == 0 or others.num_rows == 0:
        return np.zeros(keys.num_rows, dtype=np.bool_)
    codes = tuple_codes(pa.concat_tables([keys, others.select(keys.column_names).cast(keys.schema)]))
    mine, theirs = codes[: keys.num_rows], codes[keys.num_rows :]
    return np.isin(mine, theirs) & (mine >= 0)


def tuple_codes(keys: pa.Table) -> Positions:
    """Return a number for each row, equal for equal tuples and -1 where a part is null (K1, K2)."""
    codes, size = _column_codes(keys.column(0))
    for column in keys.columns[1:]:
        right, width = _column_codes(column)
        absent = (codes < 0) | (right < 0)
        if size * max(width, 1) > np.iinfo(np.int64).max:
            codes, size = _column_codes(pa.chunked_array([pa.array(codes)]))
        codes = np.where(absent, -1, codes * width + right)
        size *= max(width, 1)
    return codes


def later_positions(codes: Positions) -> Positions:
    """Return the positions of numbers that appeared earlier; negative ones are ignored."""
    return _repeated(codes, np.arange(len(codes))[::-1])


def earlier_positions(codes: Positions) -> Positions:
    """Return the positions of numbers that appear again later; negative ones are ignored."""
    return _repeated(codes, np.arange(len(codes)))


def _repeated(codes: Positions, order: Positions) -> Positions:
    """Return the positions of all numbers except one of each: the one that is last in the order."""
    order = order[codes[order] >= 0]
    if len(order) == 0:
        return order
    if codes.max() > 4 * len(codes):  # sparse: renumber them, so that a slot for each is affordable
        codes = np.unique(codes, return_inverse=True)[1]
    kept = np.empty(int(codes.max()) + 1, dtype=np.int64)
    kept[codes[order]] = order
    return np.sort(order[kept[codes[order]] != order])


def _column_codes(column: Column) -> tuple[Positions, int]:
    """Return a number for each value, and how many there may be."""
    values = pc.add(column, pa.scalar(0, column.type)) if pa.types.is_floating(column.type) else column
    encoded = values.dictionary_encode()
    chunks = [chunk for chunk in encoded.chunks if len(chunk)]
    if not chunks:
        return np.empty(0, dtype=np.int64), 0
    codes = np.concatenate([np.asarray(chunk.indices.fill_null(-1)) for chunk in chunks]).astype(np.int64)
    return codes, len(chunks[-1].dictionary)


def _variety(keys: pa.Table, name: str) -> int:
    return len(pc.unique(keys.column(name)))


def _distinct(column: Column) -> Column:
    """Return the distinct values to look for; a zero is looked up with both signs (K2)."""
    values = pc.unique(column)
    if not pa.types.is_floating(values.type):
        return values
    zeros = pa.array([0.0, -0.0], values.type)
    others = values.filter(pc.not_equal(values, zeros[0]))
    return values if len(others) == len(values) else pa.concat_arrays([others, zeros])


def _without_nulls(keys: pa.Table) -> pa.Table:
    absent = np.zeros(keys.num_rows, dtype=np.bool_)
    for column in keys.columns:
        if column.null_count:
            absent |= to_mask(column.is_null())
    return keys.filter(pa.array(~absent)) if absent.any() else keys
