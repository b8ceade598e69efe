"""From rows to the columns of the result: rank, group, order, cut, project.

L1  The order is total: after the keys of the query come the ids of all bound variables in the order of their
    names, and for groups the grouping keys in the order of the columns.
L2  Without `order` rows come by the ids of the variables that the result shows; from `BY_ID_BELOW` rows on by
    their stable row ids. Both are functions of the snapshot.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.catalog.bound import (
    AggregateValue,
    Bm25Value,
    BoundExpression,
    BoundOrdering,
    EntityValue,
    NearestValue,
    PropertyValue,
    RankValue,
    RrfValue,
    behind_alias,
)
from omnigraph.core.arrays import Ints, Values
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.aggregate import aggregate
from omnigraph.exec.operators.grouping import GroupKey, Groups, group
from omnigraph.exec.operators.order import OrderCodes, SortKey, sorted_positions
from omnigraph.exec.operators.project import project
from omnigraph.exec.rows import BindingTable
from omnigraph.plan.physical import PhysicalPlan

if TYPE_CHECKING:
    from omnigraph.exec.operators.rank import Ranking

BY_ID_BELOW = 100_000
RANKS = (NearestValue, Bm25Value, RrfValue)


def finish(context: QueryContext, plan: PhysicalPlan, rows: BindingTable) -> pa.Table:
    """Return the result of a read from the rows of its match."""
    if any(isinstance(projection.expression, AggregateValue) for projection in plan.projections):
        columns = _grouped(context, plan, rows)
    else:
        columns = _plain(context, plan, rows)
    # Columns of another type are cast to that of the schema.
    return pa.Table.from_arrays(columns, schema=context.view.schema_of(plan.projections))


# Without aggregates


def _plain(context: QueryContext, plan: PhysicalPlan, rows: BindingTable) -> list[Values]:
    assert rows.weight is None, "rows are counted in aggregate queries only"
    rankings: dict[RankValue, Ranking] = {}
    ranked = behind_alias(plan.orderings[0].expression) if plan.orderings else None
    keys: list[SortKey] = []
    if isinstance(ranked, RANKS):
        ranking = rankings[ranked] = _rank(context, ranked, rows, plan.limit)
        place = ranking.place[rows.slots[ranking.variable]]
        rows, place = rows.where(place >= 0), place[place >= 0]
        keys.append(SortKey(lambda positions: place[positions]))
    for projection in plan.projections:
        value = projection.expression
        if isinstance(value, RANKS) and value not in rankings:
            rankings[value] = _rank(context, value, rows, None)
    if rows.size > 1 or plan.limit == 0:
        keys += [_row_key(context, ordering, rows) for ordering in plan.orderings[len(keys) :]]
        keys += _ties(context, plan, rows)
        rows = rows.take(sorted_positions(rows.size, keys, plan.limit))
    context.budget.check()
    return [project(context, projection.expression, rows, rankings) for projection in plan.projections]


def _rank(context: QueryContext, value: RankValue, rows: BindingTable, limit: int | None) -> "Ranking":
    from omnigraph.exec.operators.rank import rank  # late: most queries rank nothing

    return rank(context, value, rows, limit)


def _row_key(context: QueryContext, ordering: BoundOrdering, rows: BindingTable) -> SortKey:
    value = behind_alias(ordering.expression)
    if isinstance(value, EntityValue):
        return SortKey(_ids(context, rows, value.variable), ordering.descending)
    return SortKey(lambda positions: project(context, value, rows.some(positions), {}), ordering.descending)


def _ties(context: QueryContext, plan: PhysicalPlan, rows: BindingTable) -> list[SortKey]:
    """Return the keys that make the order total (L1, L2)."""
    if plan.orderings:
        names = [name for name in rows.slots if not name.startswith("__")]
    else:
        names = sorted(
            {name for projection in plan.projections for name in _variables(projection.expression)}
        )
        if rows.size >= BY_ID_BELOW:
            return [SortKey(_row_ids(context, rows, name)) for name in names]
    return [SortKey(_ids(context, rows, name)) for name in sorted(names)]


def _ids(context: QueryContext, rows: BindingTable, name: str) -> Callable[[Ints], Values]:
    return lambda positions: context.view.column(rows.tables[name], "id", rows.slots[name][positions])


def _row_ids(context: QueryContext, rows: BindingTable, name: str) -> Callable[[Ints], OrderCodes]:
    return lambda positions: context.view.row_ids(rows.tables[name], rows.slots[name][positions])


def _variables(expression: BoundExpression) -> tuple[str, ...]:
    match expression:
        case PropertyValue(variable) | EntityValue(variable):
            return (variable,)
        case NearestValue(field) | Bm25Value(field):
            return (field.variable,)
        case RrfValue(first):
            return (first.field.variable,)
        case _:
            return ()


# With aggregates


def _grouped(context: QueryContext, plan: PhysicalPlan, rows: BindingTable) -> list[Values]:
    expressions = [projection.expression for projection in plan.projections]
    keys: list[GroupKey] = [e for e in expressions if isinstance(e, PropertyValue | EntityValue)]
    groups = group(context, keys, rows) if keys else Groups(1, None, np.zeros(1, np.int64))
    context.budget.check()
    aggregated = {
        e: aggregate(context, e, rows, groups) for e in expressions if isinstance(e, AggregateValue)
    }
    if not keys:
        count = 1 if plan.limit is None else min(plan.limit, 1)
        return [aggregated[e].slice(0, count) for e in expressions if isinstance(e, AggregateValue)]
    of_groups = rows if groups.is_each_row else rows.take(groups.first)

    def values(expression: BoundExpression, positions: Ints) -> Values:
        if isinstance(expression, AggregateValue):
            found = aggregated[expression]
            return found if len(positions) == groups.count else found.take(positions)
        if isinstance(expression, EntityValue):
            name = expression.variable
            return context.view.column(of_groups.tables[name], "id", of_groups.slots[name][positions])
        return project(context, expression, of_groups.some(positions), {})

    def key(expression: BoundExpression, descending: bool) -> SortKey:
        return SortKey(lambda positions: values(expression, positions), descending)

    order = [key(behind_alias(o.expression), o.descending) for o in plan.orderings]
    ties = [key(expression, False) for expression in keys]
    positions = sorted_positions(groups.count, [*order, *ties], plan.limit)
    chosen = of_groups.take(positions)
    return [
        aggregated[e].take(positions) if isinstance(e, AggregateValue) else project(context, e, chosen, {})
        for e in expressions
    ]
