"""Each destination once: hops without the repeats that parallel edges make."""

import weakref

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import Ints, SlotArray
from omnigraph.exec.dense import Adjacency
from omnigraph.exec.dense.adjacency import Csr

# How many different neighbours each node of a base has: a function of the base, and gone with it.
_known: "weakref.WeakKeyDictionary[Csr, npt.NDArray[np.int64]]" = weakref.WeakKeyDictionary()


def once_each(place: Ints, nodes: SlotArray) -> tuple[Ints, SlotArray]:
    """Return hops without repeated destinations of one place; they come grouped by place.

    Adjacency gives the nodes of a place in order, except for the few places that changed since it was built:
    only those are sorted.
    """
    if len(place) < 2:
        return place, nodes
    is_same_place = place[1:] == place[:-1]
    falls = is_same_place & (nodes[1:] < nodes[:-1])
    if falls.any():
        nodes = _sorted_within(place, nodes, np.unique(place[1:][falls]))
    is_first = np.empty(len(place), np.bool_)
    is_first[0] = True
    np.logical_not(is_same_place & (nodes[1:] == nodes[:-1]), out=is_first[1:])
    return (place, nodes) if is_first.all() else (place[is_first], nodes[is_first])


def _sorted_within(place: Ints, nodes: SlotArray, places: Ints) -> SlotArray:
    """Return the nodes, in order within each of some places."""
    is_most = len(places) * 4 > len(place)
    at = np.arange(len(place)) if is_most else np.flatnonzero(np.isin(place, places))
    pairs = (place[at].astype(np.int64) << 32) | nodes[at]
    pairs.sort()
    ordered = nodes.copy()
    ordered[at] = pairs & 0xFFFFFFFF
    return ordered


def distinct_degrees(hop: Adjacency, frontier: SlotArray) -> npt.NDArray[np.int64]:
    """Return how many different nodes hops lead to from each node of a frontier."""
    if not hop.has_parallel:
        return hop.degrees(frontier)
    base, overlay = hop.base, hop.overlay
    known = _known.get(base)
    if known is None:
        known = _known[base] = _of_base(base)
    inside = frontier < base.node_count
    degrees = known[np.where(inside, frontier, 0)] if base.node_count else np.zeros(len(frontier), np.int64)
    degrees = np.where(inside, degrees, 0)
    if overlay.size:
        begin, end = overlay.added(frontier)
        changed = np.flatnonzero((end > begin) | (overlay.lost(frontier) > 0))
        place, nodes, _ = hop.expand(frontier[changed])
        degrees[changed] = np.bincount(once_each(place, nodes)[0], minlength=len(changed))
    return degrees


def _of_base(base: Csr) -> npt.NDArray[np.int64]:
    """Count the different neighbours of each node; equal ones are side by side."""
    count = len(base.neighbours)
    starts = np.zeros(count + 1, np.bool_)
    starts[base.indptr] = True
    is_first = starts[:count]
    is_first[1:] |= base.neighbours[1:] != base.neighbours[:-1]
    total = np.concatenate(([0], np.cumsum(is_first)))
    return np.diff(total[base.indptr]).astype(np.int64)
