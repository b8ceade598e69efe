"""Reciprocal rank fusion of two rankings."""

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import Floats, RowIds
from omnigraph.exec.search.ranked import Ranked


def fuse(first: Ranked, second: Ranked, k: int, limit: int) -> Ranked:
    """Return the best rows of two rankings by the sum of `1 / (k + rank + 1)`, with ranks starting from zero.

    Ties go to the better rank in the first ranking, then in the second.
    """
    row_ids = np.union1d(first.row_ids, second.row_ids)
    first_rank, second_rank = _ranks(row_ids, first), _ranks(row_ids, second)
    scores = _share(first_rank, k) + _share(second_rank, k)
    order = np.lexsort((second_rank, first_rank, -scores))[:limit]
    return Ranked(row_ids[order], scores[order])


def _ranks(row_ids: RowIds, ranked: Ranked) -> Floats:
    """Return the rank of each row, infinite where a ranking does not have it."""
    ranks = np.full(len(row_ids), np.inf)
    ranks[np.searchsorted(row_ids, ranked.row_ids)] = np.arange(len(ranked.row_ids))
    return ranks


def _share(ranks: Floats, k: int) -> npt.NDArray[np.float64]:
    return 1.0 / (k + ranks + 1.0)
