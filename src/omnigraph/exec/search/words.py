"""Where the words of a column are looked up: in its index, or in an analysis of our own.

C1  The choice changes no set of rows. It changes scores only where rows were deleted, replaced or added since
    a large table's index was last merged. Rows that it covers are scored by the words that it counted then,
    others by those and the words of all rows that it does not cover.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import RowIds
from omnigraph.storage.search.analysis import analysed, column_bytes
from omnigraph.storage.search.search import IndexCover, text_cover
from omnigraph.storage.search.words import AnalysedRows
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.row_set import allowed_rows
from omnigraph.storage.tables.table import TableStore

SMALL_BYTES = 512 * 1024  # of texts on disk, besides the rows that the store's analyses call small


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A text property of one version of a table."""

    store: TableStore
    handle: SnapshotHandle
    field: str

    def index(self) -> IndexCover | None:
        """Return what the column's index covers, or `None` where our own analysis is better or needed."""
        cover = text_cover(self.handle, self.field)
        return None if cover is None or self._is_small() else cover

    def parts(self, fragments: tuple[int, ...] | None = None) -> Iterator[AnalysedRows]:
        """Yield the words of the column by our own analysis, of all fragments or of some."""
        return analysed(self.store.analyses, self.handle, self.field, fragments)

    def allowed(self, within: RowIds | None) -> bytes:
        """Return the restriction of a search to some rows, or to all there are."""
        return allowed_rows(self.store.analyses, self.handle, within)

    def _is_small(self) -> bool:
        few = self.handle.row_count <= self.store.analyses.small_rows
        return few and column_bytes(self.handle, self.field) <= SMALL_BYTES


def is_within(row_ids: RowIds, within: RowIds | None) -> npt.NDArray[np.bool_]:
    """Say for each row whether a restriction allows it."""
    return np.ones(len(row_ids), np.bool_) if within is None else np.isin(row_ids, within)
