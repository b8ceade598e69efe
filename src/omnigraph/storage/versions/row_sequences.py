"""The row ids of places in fragments, remembered where a single number gives them all.

Q1  The rows of a fragment are named when it is committed, and keep their names: under one data file there is
    one sequence of row ids for good.
Q2  Rows that were loaded together have row ids that follow each other, so the first one gives all. Only such
    sequences are kept: writing one out costs most of a millisecond, and comparing two versions of a large
    table asks for one in every fragment.
"""

from typing import final

import numpy as np
from lance.fragment import FragmentMetadata, RowIdSequence

from omnigraph.core.arrays import RowIds
from omnigraph.core.recent import Recent

KNOWN_MAX = 65_536  # fragments; a few million rows take about 30


@final
class RowSequences:
    """Remembers first row ids by data file; safe to share between threads."""

    def __init__(self) -> None:
        """Know none."""
        self._first: Recent[str, int] = Recent(KNOWN_MAX)

    def row_ids_at(self, fragment: FragmentMetadata, places: RowIds) -> RowIds | None:
        """Return the row ids of places of a fragment, or `None` if the version does not say them."""
        path = fragment.files[0].path
        first = self._first.get(path)
        if first is not None:
            return first + places
        if fragment.row_id_meta is None:
            return None
        try:
            sequence = RowIdSequence.from_inline_metadata(fragment.row_id_meta)
        except (ValueError, OSError, NotImplementedError):  # kept in its own file
            return None
        row_ids: RowIds = sequence.to_pyarrow().to_numpy().astype(np.int64)
        if len(row_ids) and (np.diff(row_ids) == 1).all():
            self._first.put(path, int(row_ids[0]))
        return row_ids[places]
