"""Which indexes an operator can look something up in.

U1  Only declared indexes are named. Whether one is used is decided when the query runs (P2 of `physical.py`):
    small tables, columns and adjacencies in memory are read without one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.catalog.bound import (
    Bm25Value,
    BoundExpression,
    BoundOrdering,
    Comparison,
    Condition,
    Direction,
    NearestValue,
    Operator,
    PropertyValue,
    RrfValue,
    TextMatchValue,
)
from omnigraph.catalog.index_kind import IndexKind, IndexSpec, index_specs
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, lookup_column
from omnigraph.plan.pattern import variables_of
from omnigraph.plan.physical import (
    AntiJoin,
    Close,
    Expand,
    FilterRows,
    Join,
    PhysicalPlan,
    PlanOperator,
    Scan,
)

_ORDERED = {Operator.EQ, Operator.GT, Operator.LT, Operator.GE, Operator.LE}
_ENDS = {Direction.OUT: ("src",), Direction.IN: ("dst",), Direction.BOTH: ("src", "dst")}


@dataclass(frozen=True, slots=True)
class IndexUse:
    """An index of a table that can serve an operator."""

    table_key: str
    column: str
    kind: IndexKind


def indexes_of(operator: PlanOperator, catalog: Catalog) -> tuple[IndexUse, ...]:
    """Return the declared indexes that an operator can use, without those of the inside of an anti-join."""
    match operator:
        case Scan(type_name=type_name, conditions=conditions):
            found = _for_conditions(f"node:{type_name}", conditions, catalog)
        case Join(scan):
            found = _for_conditions(f"node:{scan.type_name}", scan.conditions, catalog)
        case Expand():
            ends = _for_ends(operator, catalog)
            texts = (found for found in operator.dst_conditions if isinstance(found, TextMatchValue))
            found = [*ends, *_for_conditions(f"node:{operator.dst_type}", texts, catalog)]
        case Close():
            found = _for_ends(operator, catalog)
        case FilterRows() | AntiJoin():
            found = []
    return tuple(dict.fromkeys(found))


def ranking_indexes(plan: PhysicalPlan, catalog: Catalog) -> tuple[IndexUse, ...]:
    """Return the declared indexes that can serve the order of a read."""
    uses: list[IndexUse] = []
    for field, kind in (found for ordering in plan.orderings for found in _ranked(ordering)):
        variable = plan.variables[field.variable]
        table_key = f"{'edge' if variable.is_edge else 'node'}:{variable.type_name}"
        uses += _declared(table_key, IndexSpec(field.property, kind), catalog)
    return tuple(dict.fromkeys(uses))


def all_indexes(plan: PhysicalPlan, catalog: Catalog) -> tuple[IndexUse, ...]:
    """Return what any operator of a plan can use, the inside of anti-joins included."""
    found = [*ranking_indexes(plan, catalog)]
    waiting = [*plan.pipeline]
    while waiting:
        operator = waiting.pop()
        found += indexes_of(operator, catalog)
        if isinstance(operator, AntiJoin):
            waiting += operator.inner
    return tuple(dict.fromkeys(found))


def _for_ends(operator: Expand | Close, catalog: Catalog) -> list[IndexUse]:
    table_key = f"edge:{operator.edge_type}"
    return [
        use
        for column in _ENDS[operator.direction]
        for use in _declared(table_key, IndexSpec(column, IndexKind.BTREE), catalog)
    ]


def _for_conditions(table_key: str, conditions: Iterable[Condition], catalog: Catalog) -> list[IndexUse]:
    type_, given = catalog.type_of(table_key), list(conditions)
    specs = [spec for condition in given for spec in _looked_up(type_, condition)]
    equal = {
        name for condition in given for name, operator in _compared(condition) if operator is Operator.EQ
    }
    if isinstance(type_, NodeType) and type_.key is not None and equal.issuperset(type_.key):
        specs.append(IndexSpec("id", IndexKind.BTREE))
    return [use for spec in specs for use in _declared(table_key, spec, catalog)]


def _looked_up(type_: NodeType | EdgeType, condition: Condition) -> Iterator[IndexSpec]:
    if isinstance(condition, TextMatchValue):
        yield IndexSpec(condition.field.property, IndexKind.FULLTEXT)
    for name, operator in _compared(condition):
        if operator is Operator.CONTAINS:
            yield IndexSpec(lookup_column(type_, name), IndexKind.BTREE)
        elif operator in _ORDERED:
            yield IndexSpec(name, IndexKind.BTREE)


def _compared(condition: Condition) -> Iterator[tuple[str, Operator]]:
    """Yield the property that a condition compares with something that is given."""
    if isinstance(condition, Comparison):
        for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(side, PropertyValue) and not variables_of(other):
                yield side.property, condition.operator


def _ranked(ordering: BoundOrdering) -> Iterator[tuple[PropertyValue, IndexKind]]:
    waiting: list[BoundExpression | RrfValue] = [ordering.expression]
    while waiting:
        match waiting.pop():
            case NearestValue(field):
                yield field, IndexKind.VECTOR
            case Bm25Value(field):
                yield field, IndexKind.FULLTEXT
            case RrfValue(first, second):
                waiting += [second, first]
            case _:
                pass


def _declared(table_key: str, spec: IndexSpec, catalog: Catalog) -> list[IndexUse]:
    is_declared = spec in index_specs(catalog.type_of(table_key))
    return [IndexUse(table_key, spec.column, spec.kind)] if is_declared else []
