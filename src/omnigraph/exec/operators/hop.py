"""One hop along an edge type: through arrays in memory, or through the indexes of the edge table.

H1  Both ways give the same hops; which one is taken is a matter of cost (`HopCosts`).
H2  Hops are grouped by place in the frontier, ascending. An edge that lacks one of its nodes gives no hop.
"""

import time
import weakref
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.bound import Direction
from omnigraph.catalog.model import EdgeType
from omnigraph.core.arrays import Ints, Mask, SlotArray, Values
from omnigraph.exec.context import QueryContext
from omnigraph.exec.dense import Adjacency
from omnigraph.exec.dense.adjacency import Csr
from omnigraph.exec.dense.slots import linked
from omnigraph.exec.rows import distinct
from omnigraph.exec.settings import TraversalMode
from omnigraph.exec.view import build_ms, predicted_ms
from omnigraph.storage.tables.table import TableStore

HopsTaken = tuple[Ints, SlotArray, SlotArray]  # place in the frontier, node reached, edge taken


# How many different neighbours each node of a base has: a function of the base, and gone with it.
_known: "weakref.WeakKeyDictionary[Csr, npt.NDArray[np.int64]]" = weakref.WeakKeyDictionary()


class Hop(Protocol):
    """What a traversal asks of an edge type in a direction; adjacency arrays answer it too."""

    def expand(self, frontier: SlotArray) -> HopsTaken:
        """Return the hops from each node of a frontier (H2)."""

    def neighbours(self, frontier: SlotArray) -> SlotArray:
        """Return the nodes that hops lead to, in any order, with repeats."""

    def degrees(self, frontier: SlotArray) -> npt.NDArray[np.int64]:
        """Return how many hops there are from each node."""

    def contains(self, left: SlotArray, right: SlotArray) -> Mask:
        """Return for each pair whether a hop leads from the left node to the right one."""

    @property
    def has_parallel(self) -> bool:
        """Whether two hops may lead from one node to the same other node."""


def hop_along(context: QueryContext, edge_type: str, direction: Direction, frontier: int, hops: int) -> Hop:
    """Return the way to follow an edge type from about `frontier` nodes, for at most `hops` hops."""
    edge = context.view.edge_type(edge_type)
    if direction is not Direction.BOTH:
        return _directed(context, edge, direction, frontier, hops)
    forth = _directed(context, edge, Direction.OUT, frontier, hops)
    return EitherWay(forth, _directed(context, edge, Direction.IN, frontier, hops))


def _directed(context: QueryContext, edge: EdgeType, direction: Direction, frontier: int, hops: int) -> Hop:
    view, settings = context.view, context.view.settings
    mode = settings.traversal_mode
    if mode is TraversalMode.INDEXED:
        return IndexedHop(context, edge, direction)
    known = view.known_adjacency(edge, direction)
    if known is not None:
        return known
    if mode is TraversalMode.CSR or frontier > settings.indexed_frontier_max:
        return view.adjacency(edge, direction)
    edges, source, target = view.ends(edge)
    price = build_ms(edges.entry.row_count, max(source.entry.row_count, target.entry.row_count))
    expected = predicted_ms(frontier) * hops
    if (
        hops > settings.indexed_hops_max
        or expected > price
        or view.derived.adjacency_is_cheap(edges, source, target, direction)
    ):
        return view.adjacency(edge, direction)
    indexed = IndexedHop(context, edge, direction)
    if view.costs.is_worth_building(indexed.lineage, expected, price):
        return view.adjacency(edge, direction)
    return indexed


class EitherWay:
    """Hops forth and back; a loop at a node is one hop."""

    def __init__(self, forth: Hop, back: Hop) -> None:
        """Take the hops in both directions."""
        self._forth, self._back = forth, back
        self.is_indexed = isinstance(forth, IndexedHop) or isinstance(back, IndexedHop)

    @property
    def has_parallel(self) -> bool:
        """Two nodes may be linked both ways."""
        return True

    def expand(self, frontier: SlotArray) -> HopsTaken:
        """Return the hops in both directions, grouped by place."""
        place, node, edge = self._forth.expand(frontier)
        place_back, node_back, edge_back = self._back.expand(frontier)
        others = node_back != frontier[place_back]
        places = np.concatenate((place, place_back[others]))
        order = np.argsort(places, kind="stable")
        nodes = np.concatenate((node, node_back[others]))
        edges = np.concatenate((edge, edge_back[others]))
        return places[order], nodes[order], edges[order]

    def neighbours(self, frontier: SlotArray) -> SlotArray:
        """Return the nodes in both directions."""
        return np.concatenate((self._forth.neighbours(frontier), self._back.neighbours(frontier)))

    def degrees(self, frontier: SlotArray) -> npt.NDArray[np.int64]:
        """Return how many hops there are at most: loops count twice."""
        return self._forth.degrees(frontier) + self._back.degrees(frontier)

    def contains(self, left: SlotArray, right: SlotArray) -> Mask:
        """Return for each pair whether it is linked, one way or the other."""
        return self._forth.contains(left, right) | self._back.contains(left, right)


class IndexedHop:
    """Hops looked up in the index on one end of the edge table; no array is built."""

    def __init__(self, context: QueryContext, edge: EdgeType, direction: Direction) -> None:
        """Take the edge type and which of its ends the frontier is at."""
        view = context.view
        self._view = view
        self._store: TableStore = view.store
        self._near, self._far = ("src", "dst") if direction is Direction.OUT else ("dst", "src")
        edges, source, target = view.ends(edge)
        near, far = (source, target) if direction is Direction.OUT else (target, source)
        self._edges, self._near_key, self._far_key = edges, near.entry.table_key, far.entry.table_key
        self._far_handle = far.handle
        self.lineage = (edges.lineage, self._near)

    @property
    def has_parallel(self) -> bool:
        """Not known, so assumed."""
        return True

    def expand(self, frontier: SlotArray) -> HopsTaken:
        """Look the frontier up in the edge table, and the ends of what is found in the node table."""
        started = time.perf_counter()
        nodes = distinct(frontier, self._view.slots(self._near_key).size)
        ids = self._view.column(self._near_key, "id", nodes)
        found = self._store.values_in(
            self._edges.handle, self._near, ids.to_pylist(), ["src", "dst"], with_row_id=True
        )
        edge = self._view.slots(self._edges.entry.table_key).of_row_ids(_numbers(found["_rowid"]))
        near = pc.index_in(found[self._near].combine_chunks(), value_set=ids)
        far = self._far_slots(found[self._far].combine_chunks())
        known = (far >= 0) & (edge >= 0)
        hops = self._spread(frontier, nodes, _numbers(near)[known], far[known], edge[known])
        self._view.costs.spend(self.lineage, (time.perf_counter() - started) * 1_000)
        return hops

    def neighbours(self, frontier: SlotArray) -> SlotArray:
        """Return the nodes that the edges lead to."""
        return self.expand(frontier)[1]

    def degrees(self, frontier: SlotArray) -> npt.NDArray[np.int64]:
        """Return how many edges there are, by looking them up."""
        return np.bincount(self.expand(frontier)[0], minlength=len(frontier)).astype(np.int64)

    def contains(self, left: SlotArray, right: SlotArray) -> Mask:
        """Return for each pair whether an edge links it."""
        place, nodes, _ = self.expand(left)
        return linked(place, nodes, right)

    def _far_slots(self, ids: Values) -> SlotArray:
        """Return the slots of nodes by id, -1 for a missing one."""
        wanted = cast("list[str]", ids.unique().to_pylist())
        rows = self._store.rows_by_id(self._far_handle, wanted, ["id"], with_row_id=True)
        slots = self._view.slots(self._far_key).of_row_ids(_numbers(rows["_rowid"]))
        place = pc.index_in(ids, value_set=rows["id"].combine_chunks()).fill_null(-1)
        return np.append(slots, np.int32(-1)).astype(np.int32)[_numbers(place)]

    @staticmethod
    def _spread(
        frontier: SlotArray, nodes: SlotArray, near: Ints, far: SlotArray, edge: SlotArray
    ) -> HopsTaken:
        """Give every place of the frontier the edges of its node."""
        order = np.argsort(near, kind="stable")
        near, far, edge = near[order], far[order], edge[order]
        which = np.searchsorted(nodes, frontier)
        first = np.searchsorted(near, which, side="left")
        count = np.searchsorted(near, which, side="right") - first
        place, within = repeated(first, count)
        return place, far[within], edge[within]


def hops_ahead(hop: Hop, frontier: SlotArray) -> int:
    """Return how many hops there will be, or zero where that is known only by taking them."""
    if isinstance(hop, IndexedHop) or (isinstance(hop, EitherWay) and hop.is_indexed):
        return 0
    return int(hop.degrees(frontier).sum())


def repeated(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return, for ranges given by start and length, the number of the range and each place in it."""
    place = np.repeat(np.arange(len(count)), count)
    offset = np.cumsum(count) - count
    return place, np.arange(len(place)) - offset[place] + first[place]


def _numbers(column: "pa.ChunkedArray[Any] | pa.Array[Any]") -> npt.NDArray[np.int64]:
    if isinstance(column, pa.ChunkedArray):
        return column.to_numpy().astype(np.int64)
    return column.to_numpy(zero_copy_only=False).astype(np.int64)


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
