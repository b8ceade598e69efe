"""A ranking: rows from the best down, ties settled by the ids of the nodes.

K1  Two rankings of one set of rows are equal whatever order and precision their scores came in.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import Floats, RowIds
from omnigraph.storage.search.search import id_order
from omnigraph.storage.tables.handle import SnapshotHandle

NO_ROWS: RowIds = np.empty(0, np.int64)
NO_SCORES: Floats = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Rows by rank, best first, with the score or distance that ranks them."""

    row_ids: RowIds
    scores: Floats

    def first(self, count: int) -> "Ranked":
        """Return the best `count`."""
        return Ranked(self.row_ids[:count], self.scores[:count])


NOTHING = Ranked(NO_ROWS, NO_SCORES)


def settle(handle: SnapshotHandle, ranked: Ranked, limit: int | None, *, tolerance: float = 0.0) -> Ranked:
    """Return the best rows, those of one score by node id (K1).

    Takes rows best first. Scores that differ by no more than the tolerance, relative to the greater one, are
    equal: single precision does not tell them apart.
    """
    count = len(ranked.row_ids) if limit is None else min(limit, len(ranked.row_ids))
    if count == 0:
        return NOTHING
    groups = _groups(ranked.scores, tolerance)
    # All rows of a group that the limit cuts through take part in the choice.
    end = int(np.searchsorted(groups, groups[count - 1], side="right"))
    row_ids, scores, groups = ranked.row_ids[:end], ranked.scores[:end], groups[:end]
    sizes = np.bincount(groups)
    is_tied = sizes[groups] > 1
    if is_tied.any():
        order = np.arange(end)
        tied = np.flatnonzero(is_tied)
        order[tied] = tied[np.lexsort((id_order(handle, row_ids[tied]), groups[tied]))]
        row_ids, scores = row_ids[order], scores[order]
    return Ranked(row_ids[:count], scores[:count])


def cuts_a_group(scores: Floats, limit: int, tolerance: float) -> bool:
    """Say whether rows beyond those listed could tie with the last one within the limit."""
    groups = _groups(scores, tolerance)
    return bool(groups[min(limit, len(groups)) - 1] == groups[-1])


def _groups(scores: Floats, tolerance: float) -> npt.NDArray[np.int64]:
    """Return the number of the tie that each score belongs to, starting from zero."""
    gaps = np.abs(np.diff(scores))
    greater = np.maximum(np.abs(scores[1:]), np.abs(scores[:-1]))
    return np.concatenate([[0], np.cumsum(gaps > tolerance * greater)])
