"""Rows of a version by description: those that a filter selects in one fragment, in the order they lie in.

C1  A version never changes, so a fragment's number and a filter mean the same rows to everybody who looks,
    whenever and wherever: a task can be told of rows without being sent any.
"""

from dataclasses import dataclass

import numpy as np

from omnigraph.storage.filter import Filter, to_lance
from omnigraph.storage.handle import SnapshotHandle
from omnigraph.storage.pinned import Piece
from omnigraph.storage.rows import RowIds
from omnigraph.storage.table import translated


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Rows of one fragment: their row ids, and where they lie."""

    row_ids: RowIds
    addresses: RowIds


def selected_pieces(handle: SnapshotHandle, filter: Filter) -> tuple[Piece, ...]:
    """Return the fragments in which a filter selects rows, each with how many.

    Raises:
        StorageError: the store failed.
    """
    text = to_lance(filter, handle.schema)
    with translated(f"count of {handle.address.open_uri}"):
        found = [Piece(item.fragment_id, item.count_rows(text)) for item in handle._dataset.get_fragments()]
    return tuple(piece for piece in found if piece.rows)


def selected_rows(handle: SnapshotHandle, number: int, filter: Filter) -> SelectedRows:
    """Return the rows that a filter selects in one fragment, by address (C1).

    Raises:
        StorageError: the store failed.
    """
    text = to_lance(filter, handle.schema)
    with translated(f"scan of {handle.address.open_uri}"):
        fragment = handle._dataset.get_fragment(number)
        assert fragment is not None, "the number is one of this version"
        found = fragment.scanner(columns=[], filter=text, with_row_id=True, with_row_address=True).to_table()
    addresses = found["_rowaddr"].to_numpy().astype(np.int64)
    order = np.argsort(addresses)
    return SelectedRows(found["_rowid"].to_numpy().astype(np.int64)[order], addresses[order])
