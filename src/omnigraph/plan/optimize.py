"""A checked read to its physical plan.

The steps are separate functions: the clauses become a pattern (`pattern`), conditions move to what introduces
their variable (`place`), the result says what it needs of a row (`needed`), and the cheapest order of
operators is chosen (`choose`) by estimated rows (`estimate`).
"""

from collections.abc import Iterable, Iterator

from omnigraph.catalog.bound import (
    AggregateValue,
    BoundExpression,
    BoundRead,
    EntityValue,
    PropertyValue,
    behind_alias,
)
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.plan.choose import pipeline_of
from omnigraph.plan.estimate import Estimator
from omnigraph.plan.pattern import Pattern, pattern_of, variables_of
from omnigraph.plan.physical import Close, Expand, Join, Keep, PhysicalPlan, PlanOperator, PlanVariable, Scan
from omnigraph.plan.statistics import Statistics

_BLIND_TO_REPEATS = frozenset({"min", "max"})


def plan_read(
    read: BoundRead, catalog: Catalog, statistics: Statistics, pattern: Pattern | None = None
) -> PhysicalPlan:
    """Return the plan that gives the rows of a read with the least estimated work.

    A caller that plans a read repeatedly passes its pattern, which depends only on the text.
    """
    estimator = Estimator(catalog, statistics)
    operators = pipeline_of(
        pattern or pattern_of(read), estimator, needed=needed_by_result(read), keep=keep_of_leaves(read)
    )
    variables = {variable.name: variable for variable in _introduced(operators)}
    estimate = _result_rows(read, operators, variables, estimator)
    return PhysicalPlan(
        read.name,
        read.parameters,
        variables,
        operators,
        read.projections,
        read.orderings,
        read.limit,
        estimate,
    )


def _introduced(operators: Iterable[PlanOperator]) -> Iterator[PlanVariable]:
    for operator in operators:
        match operator:
            case Scan():
                yield PlanVariable(operator.variable, operator.type_name, is_edge=False)
            case Join(scan=scan):
                yield PlanVariable(scan.variable, scan.type_name, is_edge=False)
            case Expand():
                yield PlanVariable(operator.dst_var, operator.dst_type, is_edge=False)
            case _:
                pass
        match operator:
            case Expand(edge_binding=str() as name) | Close(edge_binding=str() as name):
                yield PlanVariable(name, operator.edge_type, is_edge=True)
            case _:
                pass


def _result_rows(
    read: BoundRead,
    operators: tuple[PlanOperator, ...],
    variables: dict[str, PlanVariable],
    estimator: Estimator,
) -> float:
    rows = operators[-1].estimate if operators else 1.0
    if read.is_aggregate:
        groups = estimator.groups(_group_keys(read, variables, estimator.catalog))
        rows = rows if groups is None else min(rows, groups)
        if all(isinstance(projection.expression, AggregateValue) for projection in read.projections):
            rows = 1.0
    return rows if read.limit is None else min(rows, float(read.limit))


def _group_keys(
    read: BoundRead, variables: dict[str, PlanVariable], catalog: Catalog
) -> Iterator[tuple[NodeType | EdgeType, PropertyValue | None]]:
    for projection in read.projections:
        match projection.expression:
            case (PropertyValue(variable=name) | EntityValue(variable=name)) as key:
                variable = variables[name]
                types = catalog.edges if variable.is_edge else catalog.nodes
                yield types[variable.type_name], key if isinstance(key, PropertyValue) else None
            case _:
                pass


def keep_of_leaves(read: BoundRead) -> Keep:
    """Return what to keep of destinations that nothing after their traversal uses.

    Without aggregates every destination is a row of the result. With them it adds to the weight of its row;
    if no aggregate uses weights, it is enough that one exists.
    """
    functions = {p.expression.function for p in read.projections if isinstance(p.expression, AggregateValue)}
    if not functions:
        return Keep.ROWS
    return Keep.EXISTS if functions <= _BLIND_TO_REPEATS else Keep.COUNT


def needed_by_result(read: BoundRead) -> frozenset[str]:
    """Return the variables that projections and order read.

    `count($x)` reads the weight of a row, not `$x`.
    """
    return _read_by(
        [projection.expression for projection in read.projections]
        + [behind_alias(ordering.expression) for ordering in read.orderings]
    )


def _read_by(expressions: Iterable[BoundExpression]) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for expression in expressions:
        match expression:
            case AggregateValue(function="count", argument=EntityValue()):
                pass
            case _:
                names |= variables_of(expression)
    return names
