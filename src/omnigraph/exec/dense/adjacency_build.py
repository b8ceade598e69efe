"""Building and advancing adjacency: read once, turned round for the other direction, patched by changes."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from omnigraph.catalog.bound import Direction
from omnigraph.core.arrays import Positions, SlotArray, Values
from omnigraph.exec.dense.adjacency import NO_OVERLAY, Adjacency, Csr, Overlay
from omnigraph.exec.dense.slots import OpenTable, Slots, plain
from omnigraph.storage.tables.rows import read_rows, row_ids_of
from omnigraph.storage.versions.difference import VersionDelta

OVERLAY_MAX_SHARE = 0.05  # of the base edges: above this, expanding costs more than a new base saves
OVERLAY_FREE = 256  # changes of a small table that are cheaper to keep than to fold

# Ids of one end to the slots of its table; -1 where there is no row.
Resolve: TypeAlias = Callable[[Values], SlotArray]


def build_adjacency(
    table: OpenTable,
    *,
    edges: Slots,
    sources: Slots,
    targets: Slots,
    direction: Direction,
    resolve_source: Resolve,
    resolve_target: Resolve,
) -> Adjacency:
    """Read the ends of all edges; sources are the nodes that `expand` starts from in this direction."""
    near, far = ends_of(direction)
    rows = read_rows(table.handle, [near, far])
    edge_slots = edges.of_row_ids(row_ids_of(rows))
    nodes, neighbours = resolve_source(plain(rows[near])), resolve_target(plain(rows[far]))
    has_ends = (nodes >= 0) & (neighbours >= 0)
    dangling = int(len(has_ends) - has_ends.sum())
    if dangling:
        nodes, neighbours, edge_slots = nodes[has_ends], neighbours[has_ends], edge_slots[has_ends]
    # By neighbour first, then stably by node: the rows of a node come out ordered by neighbour.
    by_neighbour = _order(neighbours)
    nodes, neighbours, edge_slots = nodes[by_neighbour], neighbours[by_neighbour], edge_slots[by_neighbour]
    order = _order(nodes)
    indptr = _indptr(nodes, sources.size)
    base = Csr(indptr, neighbours[order], edge_slots[order], edges.size, dangling)
    return Adjacency(base, NO_OVERLAY, edges=edges, sources=sources, targets=targets, dangling=dangling)


def turned_round(other: Adjacency) -> Adjacency:
    """Return the other direction of an adjacency that has no overlay."""
    assert not other.overlay.size, "only a base is turned round"
    base = other.base
    nodes = np.repeat(np.arange(base.node_count, dtype=np.int32), np.diff(base.indptr))
    order = _order(base.neighbours)  # stable: rows come out ordered by their new neighbour
    indptr = _indptr(base.neighbours, other.targets.size)
    turned = Csr(indptr, nodes[order], base.edges[order], base.edge_size, base.dangling)
    return Adjacency(
        turned,
        NO_OVERLAY,
        edges=other.edges,
        sources=other.targets,
        targets=other.sources,
        dangling=other.dangling,
    )


def advance_adjacency(
    adjacency: Adjacency,
    *,
    edges: Slots,
    sources: Slots,
    targets: Slots,
    delta: VersionDelta,
    direction: Direction,
    resolve_source: Resolve,
    resolve_target: Resolve,
) -> Adjacency | None:
    """Return the adjacency as of later pins, or `None` where a new base is due."""
    grown = sources.size > adjacency.sources.size or targets.size > adjacency.targets.size
    if grown and adjacency.dangling:
        return None  # a new node may be the missing end of an edge
    if not _fits(adjacency, adjacency.overlay.size + delta.count_changed()):
        return None
    near, far = ends_of(direction)
    row_ids, rows = delta.changed([near, far])
    dead = _newly_dead(adjacency.edges, edges)
    lost = _left_dangling(adjacency, sources, targets)
    overlay, dangling = adjacency.overlay, adjacency.dangling
    if len(row_ids) or len(dead) or len(lost):
        changed = edges.of_row_ids(row_ids)
        nodes, neighbours = resolve_source(plain(rows[near])), resolve_target(plain(rows[far]))
        has_ends = (nodes >= 0) & (neighbours >= 0)
        lost = lost[~(edges.is_dead(lost) | np.isin(lost, changed))]
        overlay = _without(adjacency, np.unique(np.concatenate([changed, dead, lost])))
        overlay = _with(adjacency, overlay, nodes[has_ends], neighbours[has_ends], changed[has_ends])
        # An upper bound: an edge that lost an end and then its row stays counted.
        dangling += int(len(has_ends) - has_ends.sum()) + len(lost)
    if not _fits(adjacency, overlay.size):
        return None
    return Adjacency(
        adjacency.base, overlay, edges=edges, sources=sources, targets=targets, dangling=dangling
    )


def _fits(adjacency: Adjacency, changes: int) -> bool:
    return changes <= OVERLAY_FREE + OVERLAY_MAX_SHARE * len(adjacency.base.edges)


def ends_of(direction: Direction) -> tuple[str, str]:
    """Return the columns of the near and the far end."""
    assert direction is not Direction.BOTH, "one direction at a time"
    return ("src", "dst") if direction is Direction.OUT else ("dst", "src")


def _order(nodes: SlotArray) -> Positions:
    """Return the stable order of nodes; a packed in-place sort is the quickest way."""
    keys = (nodes.astype(np.int64) << 32) | np.arange(len(nodes))
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys


def _indptr(nodes: SlotArray, size: int) -> Positions:
    indptr = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(nodes, minlength=size), out=indptr[1:])
    return indptr


def _newly_dead(before: Slots, after: Slots) -> SlotArray:
    if before.dead is after.dead:
        return after.dead[:0]
    return np.setdiff1d(after.dead, before.dead, assume_unique=True)


def _left_dangling(adjacency: Adjacency, sources: Slots, targets: Slots) -> SlotArray:
    """Return the edges that a deleted node leaves without an end; none where deletes cascade."""
    dead_sources = _newly_dead(adjacency.sources, sources)
    dead_targets = _newly_dead(adjacency.targets, targets)
    found = adjacency.expand(dead_sources)[2] if len(dead_sources) else dead_sources
    if not len(dead_targets):
        return found
    is_dead = np.zeros(max(targets.size, 1), np.bool_)
    is_dead[dead_targets] = True
    positions = np.flatnonzero(is_dead[adjacency.base.neighbours])
    in_base = adjacency.base.edges[np.setdiff1d(positions, adjacency.overlay.gone, assume_unique=True)]
    added = adjacency.overlay.edges[is_dead[adjacency.overlay.neighbours]]
    return np.concatenate([found, in_base, added])


def _without(adjacency: Adjacency, removed: SlotArray) -> Overlay:
    """Return the overlay in which some edge slots no longer count, in the base or as added ones."""
    overlay, base = adjacency.overlay, adjacency.base
    if not len(removed):
        return overlay
    gone, gone_nodes = overlay.gone, overlay.gone_nodes
    # Edges that came after the base are not looked for in it.
    old = removed[removed < base.edge_size]
    if len(old):
        gone = np.union1d(gone, base.positions_of(old))
        gone_nodes = (np.searchsorted(base.indptr, gone, side="right") - 1).astype(np.int32)
    keys, neighbours = overlay.keys, overlay.neighbours
    if len(keys):
        kept = ~np.isin(overlay.edges, removed)
        if not kept.all():
            keys, neighbours = keys[kept], neighbours[kept]
    return Overlay(gone, gone_nodes, keys, neighbours, overlay.has_parallel)


def _with(
    adjacency: Adjacency, overlay: Overlay, nodes: SlotArray, neighbours: SlotArray, edges: SlotArray
) -> Overlay:
    """Return the overlay with more edges."""
    if not len(edges):
        return overlay
    keys = (nodes.astype(np.int64) << 32) | edges
    order = np.argsort(keys)
    keys, neighbours = keys[order], neighbours[order]
    places = np.searchsorted(overlay.keys, keys)
    has_parallel = overlay.has_parallel or _makes_parallel(adjacency, overlay, nodes[order], neighbours)
    return Overlay(
        overlay.gone,
        overlay.gone_nodes,
        np.insert(overlay.keys, places, keys),
        np.insert(overlay.neighbours, places, neighbours),
        has_parallel,
    )


def _makes_parallel(adjacency: Adjacency, overlay: Overlay, nodes: SlotArray, neighbours: SlotArray) -> bool:
    """Say whether an added edge has the ends of another one, added or in the base."""
    pairs = np.sort((nodes.astype(np.int64) << 32) | neighbours)
    if bool((pairs[1:] == pairs[:-1]).any()):
        return True
    before = Adjacency(
        adjacency.base,
        overlay,
        edges=adjacency.edges,
        sources=adjacency.sources,
        targets=adjacency.targets,
        dangling=0,
    )
    return bool(before.contains(nodes, neighbours).any())
