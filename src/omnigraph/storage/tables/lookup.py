"""Rows by the values of a column: a few by index, many by one pass over the column."""

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.storage.tables import filter_leaf as leaf
from omnigraph.storage.tables.filter import And, FilterValue, IsIn, to_arrow_mask, to_lance
from omnigraph.storage.tables.handle import SnapshotHandle

LIST_VALUES_MAX = 16_000  # values of one IN list; a longer one is no faster for each value
# Measured from 100k to 1M rows: a value costs 8 µs through a B-tree, a row 0.08 µs in a pass over the column,
# which costs some milliseconds before it starts.
FEW_VALUES = 1_000
ROWS_PER_VALUE = 100


def find_rows(
    handle: SnapshotHandle,
    keys: tuple[str, ...],
    values: Sequence[tuple[FilterValue, ...]],
    columns: Sequence[str] | None,
    *,
    with_row_id: bool,
    with_row_address: bool,
) -> pa.Table:
    """Return the rows whose keys equal one of the tuples, in no promised order; null equals nothing."""
    wanted = list(columns) if columns is not None else handle.schema.names
    read = list(dict.fromkeys((*wanted, *keys)))
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= max(FEW_VALUES, handle.row_count // ROWS_PER_VALUE):
        found = _by_list(handle, keys, distinct, read)
    else:
        found = _by_pass(handle, keys, distinct, read)
    special = [*(["_rowid"] if with_row_id else []), *(["_rowaddr"] if with_row_address else [])]
    return found.select([*wanted, *special])


def _by_list(
    handle: SnapshotHandle, keys: tuple[str, ...], values: list[tuple[FilterValue, ...]], read: list[str]
) -> pa.Table:
    parts = []
    for start in range(0, max(len(values), 1), LIST_VALUES_MAX):
        chunk = values[start : start + LIST_VALUES_MAX]
        text = to_lance(_some_of_each(keys, chunk), handle.schema)
        scanner = handle._dataset.scanner(columns=read, filter=text, with_row_id=True, with_row_address=True)
        parts.append(_exactly(keys, chunk, scanner.to_table()))
    return pa.concat_tables(parts)


def _by_pass(
    handle: SnapshotHandle, keys: tuple[str, ...], values: list[tuple[FilterValue, ...]], read: list[str]
) -> pa.Table:
    scanner = handle._dataset.scanner(columns=list(keys), with_row_id=True, with_row_address=True)
    scanned = scanner.to_table()
    found = _exactly(keys, values, scanned.filter(to_arrow_mask(_some_of_each(keys, values), scanned)))
    others = [column for column in read if column not in keys]
    if not others:
        return found
    taken = handle._dataset._take_rows(found["_rowid"].combine_chunks(), columns=others)
    for column in others:
        found = found.append_column(handle.schema.field(column), taken[column])
    return found


def _some_of_each(keys: tuple[str, ...], values: list[tuple[FilterValue, ...]]) -> IsIn | And:
    """Return a filter that lets every wanted row through; with one key, nothing else."""
    parts = tuple(IsIn(key, tuple({row[place]: None for row in values})) for place, key in enumerate(keys))
    return parts[0] if len(parts) == 1 else And(parts)


def _exactly(keys: tuple[str, ...], values: list[tuple[FilterValue, ...]], rows: pa.Table) -> pa.Table:
    """Return the rows whose keys are one of the tuples and not a mixture of several."""
    if len(keys) == 1 or rows.num_rows == 0:
        return rows
    fields = [rows.schema.field(key) for key in keys]
    wanted = {_typed_row(fields, row) for row in values if None not in row}
    found = zip(*(leaf.comparable(rows, key).to_pylist() for key in keys), strict=True)
    return rows.filter(pa.array([None not in row and row in wanted for row in found], pa.bool_()))


def _typed_row(
    fields: "list[pa.Field[pa.DataType]]", row: tuple[FilterValue, ...]
) -> tuple[FilterValue, ...]:
    return tuple(
        None if value is None else leaf.typed(field, value) for field, value in zip(fields, row, strict=True)
    )
