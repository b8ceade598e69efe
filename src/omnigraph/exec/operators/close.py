"""A traversal between two bound variables: a condition on rows, or the edges between their nodes."""

import numpy as np

from omnigraph.core.arrays import Mask, SlotArray
from omnigraph.exec.context import QueryContext
from omnigraph.exec.dense.slots import linked
from omnigraph.exec.operators.condition import holds
from omnigraph.exec.operators.hop import Hop, hop_along, hops_ahead
from omnigraph.exec.operators.reach import reach
from omnigraph.exec.rows import NO_SLOTS, SLOT_BYTES, BindingTable, distinct
from omnigraph.plan.physical import Close

EXPAND_UP_TO = 65_536  # up to this many hops, following them is cheaper than ordering all edges once


def close(context: QueryContext, operator: Close, rows: BindingTable) -> BindingTable:
    """Return the rows whose right node is among the destinations of the left one."""
    left, right = rows.slots[operator.left_var], rows.slots[operator.right_var]
    if not rows.size or operator.max_hops < operator.min_hops:
        return _with_edges(operator, rows.none(), NO_SLOTS)
    if operator.max_hops > 1:
        return rows.where(_several_hops(context, operator, left, right))
    hop = hop_along(context, operator.edge_type, operator.direction, len(left), 1)
    if operator.edge_binding is None:
        return rows.where(_is_linked(hop, left, right))
    context.budget.allow(hops_ahead(hop, left) * 6 * SLOT_BYTES)
    place, nodes, edges = hop.expand(left)
    meets = nodes == right[place]
    place, edges = place[meets], edges[meets]
    if operator.edge_conditions:
        kept = holds(context, f"edge:{operator.edge_type}", operator.edge_conditions, edges)
        place, edges = place[kept], edges[kept]
    return _with_edges(operator, rows.take(place), edges)


def _with_edges(operator: Close, rows: BindingTable, edges: SlotArray) -> BindingTable:
    if operator.edge_binding is None:
        return rows
    return rows.with_variable(operator.edge_binding, f"edge:{operator.edge_type}", edges)


def _is_linked(hop: Hop, left: SlotArray, right: SlotArray) -> Mask:
    if len(left) > EXPAND_UP_TO or hops_ahead(hop, left) > EXPAND_UP_TO:
        return hop.contains(left, right)
    place, nodes, _ = hop.expand(left)
    return linked(place, nodes, right)


def _several_hops(context: QueryContext, operator: Close, left: SlotArray, right: SlotArray) -> Mask:
    size = context.view.slots(f"node:{operator.right_type}").size
    starts = distinct(left, size)
    hop = hop_along(context, operator.edge_type, operator.direction, len(starts), operator.max_hops)
    reached = reach(hop, starts, (operator.min_hops, operator.max_hops), size=size, budget=context.budget)
    start = np.repeat(np.arange(len(starts), dtype=np.int64), reached.count)
    pairs = (start << 32) | reached.nodes
    pairs.sort()
    wanted = (np.searchsorted(starts, left).astype(np.int64) << 32) | right
    if not len(pairs):
        return np.zeros(len(left), np.bool_)
    at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    found: Mask = pairs[at] == wanted
    return found
