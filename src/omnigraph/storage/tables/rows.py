"""Rows by their stable row ids, or by the values of a column: a few by index, many by one pass over it.

R1  A row id names one row of a lineage for good: updates and compaction keep it, inserts get greater ones.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset

from omnigraph.core.arrays import RowIds
from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables import filter_leaf as leaf
from omnigraph.storage.tables.filter import And, FilterValue, IsIn, RowFilter, to_arrow_mask, to_lance
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.reading import reading
from omnigraph.storage.tables.recent_rows import in_order

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
CREATED_AT = "_row_created_at_version"
UPDATED_AT = "_row_last_updated_at_version"


LIST_VALUES_MAX = 16_000  # values of one IN list; a longer one is no faster for each value
# Measured from 100k to 1M rows: a value costs 8 µs through a B-tree, a row 0.08 µs in a pass over the column,
# which costs some milliseconds before it starts.
FEW_VALUES = 1_000
ROWS_PER_VALUE = 100


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """Rows of a version that are replaced: their row ids, and their addresses if known."""

    row_ids: RowIds
    addresses: RowIds | None = None

    def __getitem__(self, part: slice) -> "ReplacedRows":
        """Return some of them."""
        return ReplacedRows(self.row_ids[part], None if self.addresses is None else self.addresses[part])

    @staticmethod
    def concat(pieces: Sequence["ReplacedRows"]) -> "ReplacedRows":
        """Return pieces that follow each other as one."""
        known = [piece.addresses for piece in pieces if piece.addresses is not None]
        return ReplacedRows(
            np.concatenate([piece.row_ids for piece in pieces]),
            np.concatenate(known) if len(known) == len(pieces) else None,
        )


def read_rows(
    handle: SnapshotHandle,
    columns: Sequence[str],
    *,
    fragments: Collection[int] | None = None,
) -> pa.Table:
    """Return columns of all rows, or of those in some fragments, with their row ids; in no promised order."""
    with reading(handle, "scan"):
        return _scanned(handle, [*columns, ROW_ID], fragments=fragments)


def _scanned(
    handle: SnapshotHandle,
    columns: Sequence[str],
    filter: RowFilter | None = None,
    *,
    fragments: Collection[int] | None = None,
) -> pa.Table:
    """Return columns of the rows that pass a filter, virtual ones last; rows in memory are not asked for."""
    dataset, text = handle._dataset, None if filter is None else to_lance(filter, handle.schema)
    recent = {
        number: rows
        for number, rows in handle.recent.items()
        if (fragments is None or number in fragments) and set(columns) <= set(rows.column_names)
    }
    chosen = None
    if fragments is not None or recent:
        parts = dataset.get_fragments()
        wanted = {part.fragment_id for part in parts} if fragments is None else set(fragments)
        chosen = [part for part in parts if part.fragment_id in wanted and part.fragment_id not in recent]
    kept = pa.concat_tables(list(recent.values())) if recent else None
    if kept is not None and filter is not None:
        kept = kept.filter(to_arrow_mask(filter, kept))
    if kept is not None and not chosen:
        return kept.select(list(columns))
    limit = 0 if chosen == [] else None  # to the library, an empty list means all fragments
    asked = list(columns) if kept is None else list(dict.fromkeys((*columns, ROW_ADDRESS)))
    scanned = dataset.scanner(columns=asked, filter=text, fragments=chosen or None, limit=limit).to_table()
    if kept is None:
        return scanned
    together = pa.concat_tables([scanned, kept.select(scanned.column_names).cast(scanned.schema)])
    return together.take(_as_scanned(dataset, together)).select(list(columns))


def _as_scanned(dataset: LanceDataset, rows: pa.Table) -> "npt.NDArray[np.int64]":
    """Return the order in which a scan of all fragments gives the rows: callers compare two scans."""
    addresses = row_ids_of(rows, ROW_ADDRESS).astype(np.uint64)
    numbers = np.array([part.fragment_id for part in dataset.get_fragments()], np.uint64)
    order = np.argsort(numbers)
    holders = order[np.searchsorted(numbers, addresses >> np.uint64(32), sorter=order)]
    return np.lexsort((addresses & np.uint64(0xFFFFFFFF), holders))


def row_ids_of(rows: pa.Table, column: str = ROW_ID) -> RowIds:
    """Return the row ids of rows, or another of their numbers, as an array."""
    numbers: RowIds = rows[column].to_numpy().astype(np.int64)
    return numbers


def take_rows(handle: SnapshotHandle, row_ids: RowIds, columns: Sequence[str]) -> pa.Table:
    """Return columns of rows by row id, in the order asked for; an id may repeat.

    Raises:
        InvariantViolation: the version has no row of some id.
    """
    with reading(handle, "fetch of rows"):
        taken = _taken(handle, row_ids, columns)
    if taken.num_rows != len(row_ids):  # the library leaves out what it does not find
        raise InvariantViolation(
            f"{handle.address.open_uri} at {handle.version} has {taken.num_rows} of {len(row_ids)} rows"
        )
    return taken


def _taken(handle: SnapshotHandle, row_ids: RowIds, columns: Sequence[str]) -> pa.Table:
    """Fetch rows by row id, those in memory from there; what is not found is left out."""
    recent = [rows for rows in handle.recent.values() if set(columns) <= set(rows.column_names)]
    inside = np.isin(row_ids, np.concatenate([row_ids_of(rows) for rows in recent])) if recent else None
    if inside is None or not inside.any():
        return handle._dataset._take_rows(row_ids.tolist(), columns=list(columns))
    outside = np.unique(row_ids[~inside])
    if not len(outside):
        return in_order(recent, row_ids.tolist(), columns)
    fetched = handle._dataset._take_rows(outside.tolist(), columns=[*columns, ROW_ID])
    kept = [rows.select(fetched.column_names).cast(fetched.schema) for rows in recent]
    there = set(fetched[ROW_ID].to_pylist())
    present = [
        row_id for row_id, is_in in zip(row_ids.tolist(), inside, strict=True) if is_in or row_id in there
    ]
    return in_order([fetched, *kept], present, columns)


def row_addresses(handle: SnapshotHandle, row_ids: RowIds) -> "npt.NDArray[np.uint64]":
    """Return the addresses of rows in this version, by row id, in the order asked for.

    Raises:
        InvariantViolation: the version has no row of some id.
    """
    addresses: npt.NDArray[np.uint64] = take_rows(handle, row_ids, [ROW_ADDRESS])[ROW_ADDRESS].to_numpy()
    return addresses


def field_id(handle: SnapshotHandle, column: str) -> int:
    """Return the number that a column keeps when it is renamed, and never shares with another."""
    field = handle._dataset.lance_schema.field(column)
    assert field is not None, f"{handle.address.open_uri} has no column {column}"
    return int(field.id())


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
        found = _scanned(handle, [*read, ROW_ID, ROW_ADDRESS], _some_of_each(keys, chunk))
        parts.append(_exactly(keys, chunk, found))
    return pa.concat_tables(parts)


def _by_pass(
    handle: SnapshotHandle, keys: tuple[str, ...], values: list[tuple[FilterValue, ...]], read: list[str]
) -> pa.Table:
    scanned = _scanned(handle, [*keys, ROW_ID, ROW_ADDRESS])
    found = _exactly(keys, values, scanned.filter(to_arrow_mask(_some_of_each(keys, values), scanned)))
    others = [column for column in read if column not in keys]
    if not others:
        return found
    taken = _taken(handle, row_ids_of(found), others)
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
