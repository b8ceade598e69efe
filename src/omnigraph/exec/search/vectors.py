"""Rows by the Euclidean distance of their vectors from another.

V1  Distances are computed here, in double precision, from the stored vectors: whatever found the candidates,
    equal vectors tie and the reported distance is the same.
V2  A row without a vector is in no ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.arrays import Floats, RowIds, SlotArray
from omnigraph.core.errors import ExecutionError
from omnigraph.exec.dense.vectors import VectorBlock
from omnigraph.exec.search.ranked import NOTHING, Ranked, cuts_a_group, settle
from omnigraph.storage.search.search import NearRows, partitions, search_vector, vector_cover, vectors_of
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.row_set import allowed_rows
from omnigraph.storage.tables.table import TableStore

FEW_ROWS = 128  # reading this many vectors costs less than a search
EXACT_ROWS = (
    2_048  # up to here all partitions of an index are searched: the restriction leaves little in each
)
# Vectors without any clusters give a recall of 0.95 only when most partitions are searched, which is cheap in
# a small index. In a large one more are searched, four times as many each time, until the answer is stable.
FIXED_PARTITIONS, FIXED_SHARE = 400, 0.75
FIRST_PROBES, PROBES_GROWTH = 16, 4
MARGIN = 6  # candidates beyond the limit: single precision may have swapped near ones
GROWTH = 8  # of the number asked for where a tie runs past the end
TIE_TOLERANCE = 1e-6  # between single-precision distances


def nearest(  # noqa: PLR0917 - called like every search of a column
    store: TableStore,
    handle: SnapshotHandle,
    field: str,
    vector: Sequence[float],
    within: RowIds | None = None,
    limit: int | None = None,
    exact: bool = False,
) -> Ranked:
    """Return rows by the distance of their vectors, closest first: all of them, or the closest.

    With an index the closest are found approximately, unless `exact`. `within` lists the rows to choose from;
    `None` stands for all.

    Raises:
        ExecutionError: the vector's length differs from the stored ones', or a component is not finite.
    """
    query = _checked(handle, field, vector)
    choice = handle.row_count if within is None else len(within)
    if choice == 0 or limit == 0:
        return NOTHING
    if limit is None or limit >= choice or choice <= FEW_ROWS:
        return settle(handle, _compared(handle, field, query, within), limit)
    cover = None if exact else vector_cover(handle, field)
    allowed = allowed_rows(store.analyses, handle, within)
    search = _VectorSearch(handle, field, query, allowed, limit)
    if cover is None:
        return search.closest(None)
    probes = partitions(cover)
    if within is not None and len(within) <= EXACT_ROWS:
        return search.closest(probes)
    if probes <= FIXED_PARTITIONS:
        return search.closest(max(1, int(FIXED_SHARE * probes)))
    return search.until_settled(probes)


def nearest_in_memory(  # noqa: PLR0917 - called like every search of a column
    handle: SnapshotHandle,
    field: str,
    block: VectorBlock,
    vector: Sequence[float],
    slots: SlotArray,
    limit: int | None = None,
) -> Ranked:
    """Return rows by the distance of their vectors as `nearest` does, exactly, from vectors in memory.

    Raises:
        ExecutionError: as `nearest` does.
    """
    query = _checked(handle, field, vector)
    if limit == 0:
        return NOTHING
    found = block.candidates(slots, query, limit)
    return settle(handle, _by_distance(block.slots.row_ids(found), block.take(found), query), limit)


def _checked(handle: SnapshotHandle, field: str, vector: Sequence[float]) -> Floats:
    query = np.asarray(vector, np.float64)
    column_type = cast("pa.FixedSizeListType[Any]", handle.schema.field(field).type)
    if query.shape != (column_type.list_size,):
        raise ExecutionError(
            f"nearest on {field} takes a vector of {column_type.list_size} numbers, not {query.size}"
        )
    if not (np.abs(query) <= np.finfo(np.float32).max).all():
        raise ExecutionError(
            f"the vector given to nearest on {field} has a component that is not finite in single precision"
        )
    return query


@dataclass(frozen=True, slots=True, eq=False)
class _VectorSearch:
    """A search for the closest rows of a column."""

    handle: SnapshotHandle
    field: str
    query: Floats
    allowed: bytes
    limit: int

    def closest(self, probes: int | None) -> Ranked:
        """Return the closest rows of this many partitions; without a number, those of the table."""
        return self._ranked(self._candidates(probes))

    def until_settled(self, partition_count: int) -> Ranked:
        """Return the closest rows, searching more partitions until that changes nothing."""
        probes = FIRST_PROBES
        candidates = self._candidates(probes)
        while probes < partition_count:
            before, probes = candidates.row_ids, PROBES_GROWTH * probes
            candidates = self._candidates(min(probes, partition_count))
            if np.array_equal(before, candidates.row_ids):
                break
        return self._ranked(candidates)

    def _candidates(self, probes: int | None) -> NearRows:
        """Return at least as many rows as are wanted, including all that tie with the last one."""
        asked = self.limit + MARGIN
        while True:
            found = search_vector(
                self.handle,
                self.field,
                self.query.astype(np.float32),
                allowed=self.allowed,
                limit=asked,
                probes=probes,
            )
            is_all = len(found.row_ids) < asked
            if is_all or not cuts_a_group(found.distances, self.limit, TIE_TOLERANCE):
                return found
            asked *= GROWTH

    def _ranked(self, candidates: NearRows) -> Ranked:
        compared = _by_distance(candidates.row_ids, candidates.vectors, self.query)
        return settle(self.handle, compared, self.limit)


def _compared(handle: SnapshotHandle, field: str, query: Floats, row_ids: RowIds | None) -> Ranked:
    """Return rows, those given or all, by their distances in double precision (V1, V2)."""
    return _by_distance(*vectors_of(handle, field, row_ids), query)


def _by_distance(row_ids: RowIds, vectors: npt.NDArray[np.float32], query: Floats) -> Ranked:
    distances = _distances(vectors, query)
    order = np.argsort(distances, kind="stable")
    return Ranked(row_ids[order], distances[order])


def _distances(vectors: npt.NDArray[np.float32], query: Floats) -> Floats:
    difference = vectors.astype(np.float64) - query
    return cast("Floats", np.sqrt(np.square(difference).sum(axis=1)))
