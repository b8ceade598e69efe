"""Which variables an expression or a condition speaks of, and which tables a plan reads."""

from collections.abc import Iterable, Iterator

from omnigraph.catalog.bound import (
    AggregateValue,
    AliasValue,
    Bm25Value,
    Comparison,
    EntityValue,
    Expression,
    IdValue,
    LiteralValue,
    NearestValue,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
)
from omnigraph.plan.logical import AntiJoin, Condition, Expand, Filter, NodeScan, Operation, ReadPlan


def variables_of(value: Expression | Condition) -> frozenset[str]:
    """Return the variables of nodes and edges that a value is made from; parameters are none."""
    match value:
        case PropertyValue(variable=name) | IdValue(variable=name) | EntityValue(variable=name):
            return frozenset((name,))
        case LiteralValue() | ParameterValue():
            return frozenset()
        case Comparison(left=left, right=right) | RrfValue(first=left, second=right):
            return variables_of(left) | variables_of(right)
        case AggregateValue(argument=argument):
            return variables_of(argument)
        case AliasValue(projection=projection):
            return frozenset() if projection is None else variables_of(projection)
        case TextMatchValue() | NearestValue() | Bm25Value():
            return variables_of(value.field) | variables_of(value.query)


def tables_of(read: ReadPlan) -> tuple[str, ...]:
    """Return the keys of the tables that a plan reads, sorted.

    The pins of these, and of no others, decide what a physical plan looks like.
    """
    return tuple(sorted(set(_tables(read.pipeline))))


def _tables(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        match operation:
            case NodeScan(type_name=type_name):
                yield f"node:{type_name}"
            case Expand(edge_type=edge_type, dst_type=dst_type):
                yield f"edge:{edge_type}"
                yield f"node:{dst_type}"
            case AntiJoin(inner=inner):
                yield from _tables(inner)
            case Filter():
                pass
