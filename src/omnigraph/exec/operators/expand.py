"""Traversal from a bound variable: the rows that its destinations make.

E1  Set semantics: a destination appears once per row, however many edges lead to it, unless the edge is
    bound; then there is one row per stored edge.
E2  Where nothing later looks at the destination, rows are counted or kept instead of repeated.
"""

import numpy as np
import numpy.typing as npt

from omnigraph.catalog.bound import Direction
from omnigraph.core.arrays import Ints, SlotArray
from omnigraph.exec.budget import SLOT_BYTES
from omnigraph.exec.context import QueryContext
from omnigraph.exec.dense import Adjacency
from omnigraph.exec.operators.condition import holds, never_true
from omnigraph.exec.operators.hop import Hop, distinct_degrees, hop_along, hops_ahead, once_each
from omnigraph.exec.operators.reach import reach
from omnigraph.exec.operators.scan import passing
from omnigraph.exec.rows import NO_SLOTS, BindingTable, distinct
from omnigraph.plan.physical import Expand, Keep

DEDUPLICATE_AT_ONCE = 65_536  # up to this many hops, sorting is cheaper than asking about the whole table
WORK_BYTES = 24  # memory of one hop while it is made: places, nodes and edges, before and after conditions


def expand(context: QueryContext, operator: Expand, rows: BindingTable) -> BindingTable:
    """Return the rows of a traversal."""
    if not rows.size or operator.max_hops < operator.min_hops or _is_never_true(context, operator):
        return _nothing(operator, rows)
    starts = rows.slots[operator.src_var]
    if operator.max_hops > 1:
        return _several_hops(context, operator, rows, starts)
    hop = hop_along(context, operator.edge_type, operator.direction, len(starts), 1)
    if operator.keep is not Keep.ROWS:
        degrees = _degrees(operator, hop, starts)
        if degrees is not None:
            return rows.times(degrees) if operator.keep is Keep.COUNT else rows.where(degrees > 0)
    width = len(rows.slots) + 2
    context.budget.allow(hops_ahead(hop, starts) * (WORK_BYTES + width * SLOT_BYTES))
    place, nodes, edges = hop.expand(starts)
    if operator.edge_conditions:
        kept = holds(context, f"edge:{operator.edge_type}", operator.edge_conditions, edges)
        place, nodes, edges = place[kept], nodes[kept], edges[kept]
    if operator.dst_conditions:
        kept = passing(context, f"node:{operator.dst_type}", operator.dst_conditions, nodes)
        place, nodes, edges = place[kept], nodes[kept], edges[kept]
    if operator.edge_binding is None:
        if len(place) <= DEDUPLICATE_AT_ONCE or hop.has_parallel:
            place, nodes = once_each(place, nodes)
        edges = NO_SLOTS
    return _made(operator, rows, place, nodes, edges)


def _several_hops(
    context: QueryContext, operator: Expand, rows: BindingTable, starts: SlotArray
) -> BindingTable:
    table_key = f"node:{operator.dst_type}"
    size = context.view.slots(table_key).size
    once = distinct(starts, size)
    hop = hop_along(context, operator.edge_type, operator.direction, len(once), operator.max_hops)
    reached = reach(hop, once, (operator.min_hops, operator.max_hops), size=size, budget=context.budget)
    which = np.searchsorted(once, starts)
    if operator.keep is not Keep.ROWS and not operator.dst_conditions:
        count = reached.count[which]
        return rows.times(count) if operator.keep is Keep.COUNT else rows.where(count > 0)
    total = int(reached.count[which].sum())
    context.budget.allow(total * (WORK_BYTES + (len(rows.slots) + 1) * SLOT_BYTES))
    place, nodes = reached.spread(which)
    if operator.dst_conditions:
        kept = passing(context, table_key, operator.dst_conditions, nodes)
        place, nodes = place[kept], nodes[kept]
    return _made(operator, rows, place, nodes, NO_SLOTS)


def _degrees(operator: Expand, hop: Hop, starts: SlotArray) -> npt.NDArray[np.int64] | None:
    """Return how many rows each start gives, where that is known without making them."""
    if operator.dst_conditions or operator.edge_conditions:
        return None
    if operator.keep is Keep.EXISTS:
        return hop.degrees(starts)
    if operator.edge_binding is not None:  # a loop has two ends at its node and is one row
        return None if operator.direction is Direction.BOTH else hop.degrees(starts)
    return distinct_degrees(hop, starts) if isinstance(hop, Adjacency) else None


def _made(
    operator: Expand, rows: BindingTable, place: Ints, nodes: SlotArray, edges: SlotArray
) -> BindingTable:
    if operator.keep is not Keep.ROWS:
        counts: npt.NDArray[np.int64] = np.bincount(place, minlength=rows.size).astype(np.int64)
        return rows.times(counts) if operator.keep is Keep.COUNT else rows.where(counts > 0)
    made = rows.take(place).with_variable(operator.dst_var, f"node:{operator.dst_type}", nodes)
    if operator.edge_binding is None:
        return made
    return made.with_variable(operator.edge_binding, f"edge:{operator.edge_type}", edges)


def _nothing(operator: Expand, rows: BindingTable) -> BindingTable:
    return _made(operator, rows, np.empty(0, np.int64), NO_SLOTS, NO_SLOTS)


def _is_never_true(context: QueryContext, operator: Expand) -> bool:
    conditions = (*operator.dst_conditions, *operator.edge_conditions)
    return bool(conditions) and never_true(conditions, context)
