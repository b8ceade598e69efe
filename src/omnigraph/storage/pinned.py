"""A version of a table that other processes read in pieces: a description to send, and the reading of it.

Everybody who reads a pinned table reads the version that was chosen once, whatever is committed meanwhile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.storage.filter import Filter, to_lance
from omnigraph.storage.handle import SnapshotHandle, TableAddress
from omnigraph.storage.table import TableStore, translated
from omnigraph.storage.uri import GraphRoot

BATCH_ROWS = 8_192  # what is held as columns at a time; a vector makes a row several kilobytes


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table of a graph at one version; secrets come from the environment of whoever opens it."""

    root: str
    address: TableAddress
    version: int

    def open(self) -> SnapshotHandle:
        """Open the version in this process.

        Raises:
            StorageError: it is not there, or cannot be read.
        """
        store = TableStore(GraphRoot.parse(self.root).storage_options)
        return store.open_at(self.address, self.version)


@dataclass(frozen=True, slots=True)
class Piece:
    """One fragment of a version, and how many rows it has."""

    number: int
    rows: int


def pieces(handle: SnapshotHandle) -> tuple[Piece, ...]:
    """Return the fragments of a version that have rows.

    Raises:
        StorageError: the store failed.
    """
    with translated(f"fragments of {handle.address.open_uri}"):
        found = [Piece(item.fragment_id, item.count_rows()) for item in handle._dataset.get_fragments()]
    return tuple(piece for piece in found if piece.rows)


def read_pieces(
    handle: SnapshotHandle,
    numbers: Sequence[int],
    *,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some fragments, one after the other, in the order they lie in.

    Raises:
        StorageError: the store failed.
    """
    text = None if filter is None else to_lance(filter, handle.schema)
    with translated(f"scan of {handle.address.open_uri}"):
        for number in numbers:
            fragment = handle._dataset.get_fragment(number)
            assert fragment is not None, "the numbers are those of this version"
            yield from fragment.scanner(
                columns=None if columns is None else list(columns), filter=text, batch_size=batch_rows
            ).to_batches()
