"""Which nodes are adjacent: one edge table in one direction, as compressed sparse rows and later changes.

A1  A view is immutable: base arrays, positions of the base that no longer count, and added edges.
A2  Rows of the base are ordered by neighbour, then edge: parallel edges are side by side.
A3  An edge whose end has no row is in no view; how many there are is known (`dangling`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omnigraph.core.arrays import Mask, Positions, SlotArray
from omnigraph.exec.dense.slots import Slots, TablePin, check_slots, linked

_MASK_FROM = 4_096  # from this many positions, a flag for each position of the base beats a search
_EDGES_BY_PASS_MAX = 8  # up to this many edges are found by a pass over all of them


@dataclass(frozen=True, eq=False)
class Csr:
    """Base arrays: for node `i` the edges at positions `indptr[i]` to `indptr[i + 1]`."""

    indptr: Positions
    neighbours: SlotArray
    edges: SlotArray
    edge_size: int  # slots of the edge table when this was made: later edges are not here
    dangling: int

    def __post_init__(self) -> None:
        """Check that positions fit the arrays made from them."""
        check_slots(len(self.edges))

    @property
    def node_count(self) -> int:
        """How many nodes have a row here; later ones have none."""
        return len(self.indptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of memory, including what has been derived so far."""
        own = self.indptr.nbytes + self.neighbours.nbytes + self.edges.nbytes
        return own + sum(array.nbytes for array in self.__dict__.values() if isinstance(array, np.ndarray))

    @cached_property
    def has_parallel(self) -> bool:
        """Whether two edges share both ends."""
        same = self.neighbours[1:] == self.neighbours[:-1]
        starts = self.indptr[1:-1]
        inner = starts[(starts > 0) & (starts < len(self.neighbours))]
        same[inner - 1] = False  # the last of one node and the first of the next
        return bool(same.any())

    @cached_property
    def _by_edge(self) -> SlotArray:
        """The position of each edge slot; -1 for edges that are not here."""
        positions = np.full(self.edge_size, -1, np.int32)
        positions[self.edges] = np.arange(len(self.edges), dtype=np.int32)
        return positions

    def positions_of(self, edges: SlotArray) -> Positions:
        """Return the positions of those edge slots that are here, in no promised order."""
        if len(edges) <= _EDGES_BY_PASS_MAX and "_by_edge" not in self.__dict__:
            # A few commits that remove an edge are not worth a table as large as the edges.
            found = [np.flatnonzero(self.edges == edge) for edge in edges]
            return np.concatenate(found) if found else np.empty(0, np.int64)
        positions = self._by_edge[edges].astype(np.int64)
        return positions[positions >= 0]

    def has_pairs(self, left: SlotArray, right: SlotArray) -> Mask:
        """Return, for each pair, whether an edge leads from left to right: a search in each row (A2)."""
        low, count = self.ranges(left)
        end = low + count
        found = np.zeros(len(left), np.bool_)
        open_ = np.flatnonzero(count)
        low, high, wanted = low[open_], end[open_], right[open_]
        while len(open_):
            middle = (low + high) >> 1
            value = self.neighbours[middle]
            found[open_[value == wanted]] = True
            is_less = value < wanted
            low, high = np.where(is_less, middle + 1, low), np.where(is_less, high, middle)
            goes_on = (low < high) & (value != wanted)
            open_, low, high, wanted = open_[goes_on], low[goes_on], high[goes_on], wanted[goes_on]
        return found

    def positions(self, frontier: SlotArray) -> tuple[Positions, Positions]:
        """Return, for each edge of the frontier, the index into the frontier and the position here."""
        start, count = self.ranges(frontier)
        total = int(count.sum())
        index = np.repeat(np.arange(len(frontier)), count)
        return index, np.arange(total) + np.repeat(start - (np.cumsum(count) - count), count)

    def ranges(self, frontier: SlotArray) -> tuple[Positions, Positions]:
        """Return the first position and the number of edges of each node."""
        if len(frontier) and int(frontier.max()) >= self.node_count:
            is_known = frontier < self.node_count
            known = np.where(is_known, frontier, 0)
            if self.node_count == 0:
                nothing = np.zeros(len(frontier), np.int64)
                return nothing, nothing
            start = self.indptr[known]
            return start, np.where(is_known, self.indptr[known + 1] - start, 0)
        start = self.indptr[frontier]
        return start, self.indptr[frontier + 1] - start


@dataclass(frozen=True, eq=False)
class Overlay:
    """What later commits changed: base positions removed, and edges added, by node and edge."""

    gone: Positions  # ascending
    gone_nodes: SlotArray  # the node of each, ascending with them
    keys: Positions  # node << 32 | edge slot, ascending
    neighbours: SlotArray
    has_parallel: bool = False

    @property
    def size(self) -> int:
        """How many changes there are."""
        return len(self.gone) + len(self.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.gone.nbytes + self.gone_nodes.nbytes + self.keys.nbytes + self.neighbours.nbytes

    @property
    def edges(self) -> SlotArray:
        """The slots of the added edges."""
        return (self.keys & 0xFFFFFFFF).astype(np.int32)

    def added(self, frontier: SlotArray) -> tuple[Positions, Positions]:
        """Return the range of added edges of each node of the frontier."""
        wide = frontier.astype(np.int64) << 32
        return np.searchsorted(self.keys, wide), np.searchsorted(self.keys, wide + (1 << 32))

    def lost(self, frontier: SlotArray) -> Positions:
        """Return how many base edges each node of the frontier has lost."""
        left = np.searchsorted(self.gone_nodes, frontier, side="left")
        return np.searchsorted(self.gone_nodes, frontier, side="right") - left


NO_OVERLAY = Overlay(
    np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32)
)


class Adjacency:
    """One edge table in one direction as of one pin of it and of both node tables."""

    def __init__(
        self, base: Csr, overlay: Overlay, *, edges: Slots, sources: Slots, targets: Slots, dangling: int
    ) -> None:
        """Take the arrays, and the dictionaries of edges and nodes; sources are where `expand` starts."""
        self.base, self.overlay = base, overlay
        self.edges, self.sources, self.targets = edges, sources, targets
        self.dangling = dangling
        self.edge_count = len(base.edges) - len(overlay.gone) + len(overlay.keys)

    @property
    def pins(self) -> tuple[TablePin, ...]:
        """The versions that it is a function of: of the edges, the sources and the targets."""
        return (self.edges.pin, self.sources.pin, self.targets.pin)

    def parts(self) -> dict[int, int]:
        """Return the bytes of the pieces of memory it uses, by their identity."""
        own = self.overlay.nbytes + (self._is_gone.nbytes if "_is_gone" in self.__dict__ else 0)
        return {id(self.base): self.base.nbytes, id(self.overlay): own}

    @property
    def has_parallel(self) -> bool:
        """False only if no two edges share both ends."""
        return self.overlay.has_parallel or self.base.has_parallel

    @cached_property
    def _is_gone(self) -> Mask:
        is_gone = np.zeros(len(self.base.edges), np.bool_)
        is_gone[self.overlay.gone] = True
        return is_gone

    def expand(self, frontier: SlotArray) -> tuple[Positions, SlotArray, SlotArray]:
        """Return, per edge: the index into the frontier (ascending), the neighbour, and the edge."""
        if len(frontier) == 1 and not self.overlay.size:
            return self._expand_one(int(frontier[0]))
        index, positions = self.base.positions(frontier)
        if not self.overlay.size:
            return index, self.base.neighbours[positions], self.base.edges[positions]
        index, positions = self._counting(frontier, index, positions)
        neighbours, edges = self.base.neighbours[positions], self.base.edges[positions]
        begin, end = self.overlay.added(frontier)
        counts = end - begin
        if not counts.any():
            return index, neighbours, edges
        extra = np.repeat(np.arange(len(frontier)), counts)
        places = np.arange(len(extra)) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
        index = np.concatenate([index, extra])
        order = np.argsort(index, kind="stable")
        neighbours = np.concatenate([neighbours, self.overlay.neighbours[places]])
        added = (self.overlay.keys[places] & 0xFFFFFFFF).astype(np.int32)
        return index[order], neighbours[order], np.concatenate([edges, added])[order]

    def neighbours(self, frontier: SlotArray) -> SlotArray:
        """Return the neighbours of a frontier, one for each edge, grouped in no promised order."""
        if len(frontier) == 1 and not self.overlay.size:
            return self._expand_one(int(frontier[0]))[1]
        index, positions = self.base.positions(frontier)
        if not self.overlay.size:
            return self.base.neighbours[positions]
        _, positions = self._counting(frontier, index, positions)
        begin, end = self.overlay.added(frontier)
        found = self.base.neighbours[positions]
        if not (end > begin).any():
            return found
        added = [
            self.overlay.neighbours[low:high] for low, high in zip(begin, end, strict=True) if high > low
        ]
        return np.concatenate([found, *added])

    def degrees(self, frontier: SlotArray) -> Positions:
        """Return how many edges each node of a frontier has, parallel ones included."""
        _, counts = self.base.ranges(frontier)
        if not self.overlay.size:
            return counts
        begin, end = self.overlay.added(frontier)
        return counts - self.overlay.lost(frontier) + (end - begin)

    def contains(self, left: SlotArray, right: SlotArray) -> Mask:
        """Return, for each pair, whether an edge leads from the left node to the right one."""
        found = self.base.has_pairs(left, right)
        if not self.overlay.size:
            return found
        # Where a node lost or gained edges, its own edges are looked through.
        begin, end = self.overlay.added(left)
        is_touched = (end > begin) | (found & (self.overlay.lost(left) > 0))
        if is_touched.any():
            index, neighbours, _ = self.expand(left[is_touched])
            found[is_touched] = linked(index, neighbours, right[is_touched])
        return found

    def _expand_one(self, node: int) -> tuple[Positions, SlotArray, SlotArray]:
        base = self.base
        start, end = (0, 0) if node >= base.node_count else base.indptr[node : node + 2].tolist()
        return np.zeros(end - start, np.int64), base.neighbours[start:end], base.edges[start:end]

    def _counting(
        self, frontier: SlotArray, index: Positions, positions: Positions
    ) -> tuple[Positions, Positions]:
        """Leave out base positions that no longer count."""
        gone = self.overlay.gone
        if not len(gone) or not self.overlay.lost(frontier).any():
            return index, positions
        if len(positions) < _MASK_FROM:
            places = np.searchsorted(gone, positions)
            places[places == len(gone)] = 0
            counts = gone[places] != positions
        else:
            counts = ~self._is_gone[positions]
        return index[counts], positions[counts]
