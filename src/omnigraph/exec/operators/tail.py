"""From rows to the columns of the result: rank, group, aggregate, order, cut, project.

L1  The order is total: after the keys of the query come the ids of all bound variables in the order of their
    names, and for groups the grouping keys in the order of the columns.
L2  Without `order` rows come by the ids of the variables that the result shows; from `BY_ID_BELOW` rows on by
    their stable row ids. Both are functions of the snapshot.

A1  A row counts as often as its weight says.
A2  A sum of floats does not depend on the order of the rows, which no query promises: values are cut into
    parts of fixed magnitude whose sums are exact, and the parts are added in a fixed order.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.catalog.bound import (
    AggregateValue,
    Bm25Value,
    BoundExpression,
    BoundOrdering,
    EntityValue,
    LiteralValue,
    NearestValue,
    ParameterValue,
    PropertyValue,
    RankValue,
    RrfValue,
    behind_alias,
)
from omnigraph.core.arrays import Counts, Floats, Ints, Mask, SlotArray, Values
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.comparison import one_zero, plain
from omnigraph.exec.operators.grouping import GroupKey, Groups, group
from omnigraph.exec.operators.operand import column_type, constant_column, entity_type
from omnigraph.exec.operators.order import OrderCodes, SortKey, sort_codes, sorted_positions
from omnigraph.exec.rows import BindingTable
from omnigraph.plan.physical import PhysicalPlan

if TYPE_CHECKING:
    from omnigraph.exec.operators.rank import Ranking

_EXACT_BELOW = 2.0**52  # whole floats are added exactly, and faster than integers
NO_PLACE: Values = pa.array([None], pa.int64())  # taking it from a column gives null
BY_ID_BELOW = 100_000
RANKS = (NearestValue, Bm25Value, RrfValue)


def project(
    context: QueryContext,
    expression: BoundExpression,
    rows: BindingTable,
    rankings: "Mapping[RankValue, Ranking]",
) -> Values:
    """Return the column of a projection, one value per row."""
    match expression:
        case PropertyValue(variable, name):
            return context.view.column(rows.tables[variable], name, rows.slots[variable])
        case EntityValue(variable):
            return entities(context, rows.tables[variable], rows.slots[variable])
        case LiteralValue() | ParameterValue():
            return constant_column(expression, context.parameters, rows.size)
        case _:
            return rankings[expression].scores(rows)  # type: ignore[index]


def entities(context: QueryContext, table_key: str, slots: SlotArray) -> Values:
    """Return whole entities: id, for edges both ends, and all properties except blobs by name."""
    fields = list(entity_type(context.view.catalog, table_key))
    columns = context.view.columns(table_key, [field.name for field in fields], slots)
    return pa.StructArray.from_arrays(columns, fields=fields)


def aggregate(context: QueryContext, value: AggregateValue, rows: BindingTable, groups: Groups) -> Values:
    """Return one value per group."""
    if value.function == "count" and isinstance(value.argument, EntityValue):
        return pa.array(_weights(rows, groups, None))
    column = plain(project(context, value.argument, rows, {}))
    known = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if value.function == "count":
        return pa.array(_weights(rows, groups, known))
    if value.function in {"min", "max"}:
        return _extreme(column, known, groups, is_least=value.function == "min").cast(column_type(value.type))
    counts = _weights(rows, groups, known)
    sums = _sums(column, known, rows, groups)
    if value.function == "avg":
        sums = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return pa.array(sums, pa.float64(), mask=counts == 0)


def _weights(rows: BindingTable, groups: Groups, known: Mask | None) -> Counts:
    """Return how many rows each group has, of those with a value."""
    weight = rows.weight
    if groups.of_row is None:
        if weight is None:
            return np.array([rows.size if known is None else int(known.sum())], np.int64)
        return np.array([int((weight if known is None else weight[known]).sum())], np.int64)
    if groups.is_each_row and known is None:
        return np.ones(rows.size, np.int64) if weight is None else weight
    of_row = groups.of_row if known is None else groups.of_row[known]
    if weight is None:
        return np.bincount(of_row, minlength=groups.count).astype(np.int64)
    weight = weight if known is None else weight[known]
    if float(weight.sum(dtype=np.float64)) < _EXACT_BELOW:
        return np.bincount(of_row, weight, groups.count).astype(np.int64)
    counted = np.zeros(groups.count, np.int64)
    np.add.at(counted, of_row, weight)
    return counted


# Sums


def _sums(column: Values, known: Mask | None, rows: BindingTable, groups: Groups) -> Floats:
    of_row = np.zeros(rows.size, np.int64) if groups.of_row is None else groups.of_row
    weight = rows.weight
    if known is not None:
        column = column.filter(pa.array(known))
        of_row = of_row[known]
        weight = None if weight is None else weight[known]
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    if not np.isfinite(values).all():
        factors = values if weight is None else values * weight
        return np.bincount(of_row, factors, groups.count).astype(np.float64)
    return _exact_sums(values, weight, of_row, groups.count)


def _exact_sums(values: Floats, weight: Counts | None, of_row: Counts, count: int) -> Floats:
    """Return sums that are the same for every order of the values (A2)."""
    total = np.zeros(count, np.float64)
    occurrences = len(values) if weight is None else int(weight.sum())
    rest = values
    # As many parts as the values span magnitudes, usually two or three: a group of small values counts
    # beside one of large values.
    while (greatest := float(np.abs(rest).max(initial=0.0))) > 0.0:
        exponent = int(np.frexp(greatest)[1]) + max(occurrences, 1).bit_length() + 1
        if exponent > 1_000:  # near the end of the range the cut itself would overflow
            with np.errstate(over="ignore"):  # a sum beyond the range is infinite, as it says
                return total + np.bincount(of_row, rest if weight is None else rest * weight, count)
        unit = 2.0**exponent
        part = (unit + rest) - unit
        rest = rest - part
        total = total + np.bincount(of_row, part if weight is None else part * weight, count)
    return total


# Least and greatest


def _extreme(column: Values, known: Mask | None, groups: Groups, *, is_least: bool) -> Values:
    """Return the least or greatest value of each group, null where there is none."""
    of_row = np.zeros(len(column), np.int64) if groups.of_row is None else groups.of_row
    if pa.types.is_floating(column.type):
        column = one_zero(column)  # else the order of rows would decide which of the two zeros comes out
    codes = sort_codes(column)
    if len(codes) == 1 and known is None and groups.count == 1:
        if not len(column):
            return column.take(NO_PLACE)
        place = int(codes[0].argmin() if is_least else codes[0].argmax())
        return column.slice(place, 1)
    order = np.lexsort((*codes[::-1], of_row))
    if known is not None:
        order = order[known[order]]
    chosen = np.full(groups.count, -1, np.int64)
    if is_least:
        order = order[::-1]
    chosen[of_row[order]] = order
    places: Values = pa.array(chosen, mask=chosen < 0)
    return column.take(places)


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
    columns = []
    for projection in plan.projections:
        context.budget.check()
        columns.append(project(context, projection.expression, rows, rankings))
    return columns


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
