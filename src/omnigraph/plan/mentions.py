"""Which variables an expression or a condition mentions, and which tables a read uses."""

from omnigraph.catalog.bound import (
    AggregateValue,
    AliasValue,
    Bm25Value,
    BoundExpression,
    BoundRead,
    Comparison,
    Condition,
    EntityValue,
    LiteralValue,
    NearestValue,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
)
from omnigraph.catalog.describe import describe
from omnigraph.catalog.model import Catalog


def variables_of(value: BoundExpression | Condition) -> frozenset[str]:
    """Return the variables of nodes and edges that a value is made from, without parameters."""
    match value:
        case PropertyValue(variable=name) | EntityValue(variable=name):
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


def tables_of(read: BoundRead, catalog: Catalog) -> tuple[str, ...]:
    """Return the keys of the tables that a read uses, sorted.

    Only the pins of these decide what a physical plan looks like.
    """
    return tuple(sorted(f"{fact.kind}:{fact.type_name}" for fact in describe(read, catalog).reads))
