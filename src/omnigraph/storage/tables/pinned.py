"""One table at the version that a snapshot pins: where that is, how it is opened, and its rows in pieces.

P1  Every reader of a pinned table reads the version that was chosen once, whatever is committed since.
    So a fragment's number and a filter mean the same rows everywhere and at any time: a task can be told
    about rows without being sent any.
P2  There is one way to open it, and a version that no longer exists is reported as cleaned up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from lance import LanceFragment

from omnigraph.core.arrays import RowIds
from omnigraph.core.errors import HistoricalVersionReclaimed, StorageError
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.filter import RowFilter, to_lance
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.reading import reading
from omnigraph.storage.tables.rows import ROW_ADDRESS, row_ids_of
from omnigraph.storage.tables.table import TableStore

BATCH_ROWS = 8_192  # what is held as columns at a time; a vector makes a row several kilobytes


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A place, with nothing held open: it can be compared, sent to another process, and opened there.

    Two are equal if they are one version at one place: the name is that of the snapshot, for messages.
    """

    address: TableAddress
    version: int
    table_key: str = field(compare=False)

    def open(self, store: TableStore | None = None) -> SnapshotHandle:
        """Open the version; without a store, as a task does, with one of its own.

        Raises:
            HistoricalVersionReclaimed: the version was cleaned up (P2).
            StorageError: it cannot be read.
        """
        try:
            return (store or own_store(self.address)).open_at(self.address, self.version)
        except StorageError as error:
            if error.kind != "not_found":
                raise
            raise HistoricalVersionReclaimed(table_key=self.table_key, version=self.version) from error


def own_store(address: TableAddress) -> TableStore:
    """Return a store for this process alone; secrets come from its own environment."""
    return TableStore(GraphRoot.parse(address.uri).storage_options)


@dataclass(frozen=True, slots=True)
class Piece:
    """One fragment of a version, and how many rows of it are meant."""

    number: int
    rows: int


def pieces(handle: SnapshotHandle, filter: RowFilter | None = None) -> tuple[Piece, ...]:
    """Return the fragments of a version that have rows, or rows that a filter selects.

    Raises:
        StorageError: the store failed.
    """
    text = None if filter is None else to_lance(filter, handle.schema)
    what = "fragments" if filter is None else "count"
    with reading(handle, what):
        found = [Piece(item.fragment_id, item.count_rows(text)) for item in handle._dataset.get_fragments()]
    return tuple(piece for piece in found if piece.rows)


def read_pieces(
    handle: SnapshotHandle,
    numbers: Sequence[int],
    *,
    columns: Sequence[str] | None = None,
    with_rows: bool = False,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some fragments, one after the other, in the order they are stored.

    `with_rows` adds their row ids and addresses.

    Raises:
        StorageError: the store failed.
    """
    with reading(handle, "scan"):
        for number in numbers:
            yield from (
                _fragment(handle, number)
                .scanner(
                    columns=None if columns is None else list(columns),
                    with_row_id=with_rows,
                    with_row_address=with_rows,
                    batch_size=batch_rows,
                )
                .to_batches()
            )


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Rows of one fragment: their row ids and addresses."""

    row_ids: RowIds
    addresses: RowIds


def selected_rows(handle: SnapshotHandle, number: int, filter: RowFilter) -> SelectedRows:
    """Return the rows that a filter selects in one fragment, by address (P1).

    Raises:
        StorageError: the store failed.
    """
    text = to_lance(filter, handle.schema)
    with reading(handle, "scan"):
        scanner = _fragment(handle, number).scanner(
            columns=[], filter=text, with_row_id=True, with_row_address=True
        )
        found = scanner.to_table()
    addresses = row_ids_of(found, ROW_ADDRESS)
    order = np.argsort(addresses)
    return SelectedRows(row_ids_of(found)[order], addresses[order])


def _fragment(handle: SnapshotHandle, number: int) -> LanceFragment:
    fragment = handle._dataset.get_fragment(number)
    assert fragment is not None, "the number is one of this version"
    return fragment
