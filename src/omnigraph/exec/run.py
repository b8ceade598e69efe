"""Running a physical plan: one operator after the other over the binding table; and traversals.

X1  A query sees one snapshot, writes nothing and ends within its budget or with a typed error.
X2  Its result is a function of the snapshot, the query, its parameters and its time; never of caches.

E1  Set semantics: a destination appears once per row, however many edges lead to it, unless the edge is
    bound; then there is one row per stored edge.
E2  Where nothing later looks at the destination, rows are counted or kept instead of repeated.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.bound import Direction
from omnigraph.core.arrays import Ints, SlotArray
from omnigraph.exec.context import QueryContext
from omnigraph.exec.dense import Adjacency
from omnigraph.exec.operators.anti_join import anti_join
from omnigraph.exec.operators.close import close
from omnigraph.exec.operators.condition import holds, holds_for_rows, never_true
from omnigraph.exec.operators.hop import Hop, distinct_degrees, hop_along, hops_ahead, once_each
from omnigraph.exec.operators.reach import reach
from omnigraph.exec.operators.scan import join, passing, scan
from omnigraph.exec.operators.tail import finish
from omnigraph.exec.rows import NO_SLOTS, SLOT_BYTES, UNIT, BindingTable, distinct
from omnigraph.plan.physical import (
    AntiJoin,
    Close,
    Expand,
    FilterRows,
    Join,
    Keep,
    PhysicalPlan,
    PlanOperator,
    Scan,
)

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


def execute(plan: PhysicalPlan, context: QueryContext) -> pa.Table:
    """Return the result of a plan on the snapshot of the context.

    Raises:
        QueryTimeout, QueryMemoryExceeded, CartesianProductRefused: the query needs more than it may.
        ExecutionError: a value cannot be evaluated.
    """
    return finish(context, plan, run_pipeline(context, plan.pipeline, UNIT))


def run_pipeline(
    context: QueryContext, operators: tuple[PlanOperator, ...], rows: BindingTable
) -> BindingTable:
    """Return the rows that operators make from others."""
    for operator in operators:
        match operator:
            case Scan():
                rows = scan(context, operator, rows)
            case Expand():
                rows = expand(context, operator, rows)
            case FilterRows():
                rows = rows.where(holds_for_rows(context, operator.conditions, rows))
            case Close():
                rows = close(context, operator, rows)
            case Join():
                rows = join(context, operator, rows)
            case AntiJoin():
                rows = anti_join(context, operator, rows, run_pipeline)
        context.budget.hold(rows.nbytes)
    return rows
