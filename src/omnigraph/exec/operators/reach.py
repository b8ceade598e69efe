"""Traversals of several hops: breadth-first search with set semantics.

Q1  A node is reached at the smallest number of hops that leads to it, the start at zero. The nodes
    reported are those other than the start whose number is within the bounds, and every node with a loop
    whose number plus one is: a loop is one more hop that ends where it began.
Q2  Nodes of one start are reported once each; a bound far beyond the graph costs nothing.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import Ints, SlotArray
from omnigraph.exec.operators.hop import Hop, repeated
from omnigraph.exec.rows import SLOT_BYTES, Budget

PAIRS_REACH_MAX = 64.0  # up to this many nodes per start, all starts advance together
PAIRS_STARTS_MIN = 16
Number = TypeVar("Number", np.int32, np.int64)
STARTS_PER_ROUND = 65_536


@dataclass(frozen=True, slots=True)
class Reached:
    """The nodes reached from each start: `nodes[first[i] : first[i] + count[i]]`."""

    first: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    nodes: SlotArray

    def spread(self, which: Ints) -> tuple[Ints, SlotArray]:
        """Return pairs of row and node, for rows that each begin at one of the starts."""
        place, within = repeated(self.first[which], self.count[which])
        return place, self.nodes[within]


def reach(hop: Hop, starts: SlotArray, bounds: tuple[int, int], *, size: int, budget: Budget) -> Reached:
    """Return what is reached from distinct starts within bounds (Q1); `size` is that of the node table."""
    low, high = bounds
    if len(starts) >= PAIRS_STARTS_MIN and _expected(hop, starts, high) <= PAIRS_REACH_MAX:
        rounds = range(0, len(starts), STARTS_PER_ROUND)
        parts = [_together(hop, starts[at : at + STARTS_PER_ROUND], low, high, budget) for at in rounds]
        count = np.concatenate([part[0] for part in parts])
        nodes = np.concatenate([part[1] for part in parts])
    else:
        search = _BreadthFirst(hop, size, budget)
        found = [search.run(int(start), low, high) for start in starts]
        count = np.array([len(part) for part in found], np.int64)
        nodes = np.concatenate(found) if found else np.empty(0, np.int32)
    return Reached(np.cumsum(count) - count, count, nodes)


def _expected(hop: Hop, starts: SlotArray, high: int) -> float:
    """Return about how many nodes one start reaches."""
    sample = starts[:: max(1, len(starts) // 256)]
    degree = float(hop.degrees(sample).mean())
    return sum(degree**hops for hops in range(1, min(high, 6) + 1))


class _BreadthFirst:
    """One start at a time, with one array of seen nodes for all."""

    def __init__(self, hop: Hop, size: int, budget: Budget) -> None:
        budget.allow(size)
        self.hop, self.budget = hop, budget
        self.size = size
        self.seen = np.zeros(size, np.bool_)
        self.taken = 0

    def run(self, start: int, low: int, high: int) -> SlotArray:
        frontier = np.array([start], np.int32)
        levels = [frontier]
        found: list[SlotArray] = []
        self.seen[start] = True
        for hops in range(1, high + 1):
            if hops == low:  # a node with a loop that was reached one hop too early for the bounds
                place, reached, _ = self.hop.expand(frontier)
                found.append(_unique(frontier[place[reached == frontier[place]]], self.size))
            else:
                reached = self.hop.neighbours(frontier)
            frontier = _unique(reached[~self.seen[reached]], self.size)
            if not len(frontier):
                break
            self.seen[frontier] = True
            levels.append(frontier)
            if hops >= low:
                found.append(frontier)
            self.budget.check()
        for level in levels:
            self.seen[level] = False
        nodes = np.concatenate(found) if found else np.empty(0, np.int32)
        self.taken += len(nodes) * SLOT_BYTES
        self.budget.allow(self.taken)
        self.budget.check()
        return nodes


def _unique(slots: SlotArray, size: int) -> SlotArray:
    if len(slots) * 16 <= size:
        return _sorted_unique(slots)
    return np.flatnonzero(np.bincount(slots, minlength=size)).astype(np.int32)


def _sorted_unique(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    if len(values) < 2:
        return values
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]


def _together(
    hop: Hop, starts: SlotArray, low: int, high: int, budget: Budget
) -> tuple[npt.NDArray[np.int64], SlotArray]:
    """Advance all starts at once: a frontier of pairs of start and node, as one number each."""
    frontier = (np.arange(len(starts), dtype=np.int64) << 32) | starts
    seen = frontier
    found: list[npt.NDArray[np.int64]] = []
    for hops in range(1, high + 1):
        nodes = (frontier & 0xFFFFFFFF).astype(np.int32)
        budget.allow(int(hop.degrees(nodes).sum()) * 5 * 8 + seen.nbytes * 2)
        place, reached, _ = hop.expand(nodes)
        if hops == low:
            found.append(_sorted_unique(frontier[place[reached == nodes[place]]]))
        pairs = _sorted_unique((frontier[place] & ~np.int64(0xFFFFFFFF)) | reached)
        at = np.minimum(np.searchsorted(seen, pairs), len(seen) - 1)
        frontier = pairs[seen[at] != pairs]
        if not len(frontier):
            break
        seen = np.sort(np.concatenate((seen, frontier)))
        if hops >= low:
            found.append(frontier)
        budget.check()
    pairs = np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)
    count = np.bincount(pairs >> 32, minlength=len(starts)).astype(np.int64)
    return count, (pairs & 0xFFFFFFFF).astype(np.int32)
