"""Rows by their stable row ids.

R1  A row id names one row of a lineage for good: updates and compaction keep it, inserts get greater ones.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.arrays import RowIds
from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.table import translated

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
CREATED_AT = "_row_created_at_version"
UPDATED_AT = "_row_last_updated_at_version"


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
    chosen = None
    if fragments is not None:
        wanted = set(fragments)
        chosen = [part for part in handle._dataset.get_fragments() if part.fragment_id in wanted]
    limit = 0 if chosen == [] else None  # to the library, an empty list means all fragments
    with translated(f"scan of {handle.address.open_uri}"):
        return handle._dataset.scanner(
            columns=[*columns, ROW_ID], fragments=chosen or None, limit=limit
        ).to_table()


def row_ids_of(rows: pa.Table, column: str = ROW_ID) -> RowIds:
    """Return the row ids of rows, or another of their numbers, as an array."""
    numbers: RowIds = rows[column].to_numpy().astype(np.int64)
    return numbers


def take_rows(handle: SnapshotHandle, row_ids: RowIds, columns: Sequence[str]) -> pa.Table:
    """Return columns of rows by row id, in the order asked for; an id may repeat.

    Raises:
        InvariantViolation: the version has no row of some id.
    """
    with translated(f"fetch of rows of {handle.address.open_uri}"):
        taken = handle._dataset._take_rows(row_ids.tolist(), columns=list(columns))
    if taken.num_rows != len(row_ids):  # the library leaves out what it does not find
        raise InvariantViolation(
            f"{handle.address.open_uri} at {handle.version} has {taken.num_rows} of {len(row_ids)} rows"
        )
    return taken


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
