"""What of a row the result needs, and what it is enough to count."""

from collections.abc import Iterable

from omnigraph.catalog.bound import AggregateValue, BoundRead, EntityValue, Expression, behind_alias
from omnigraph.plan.mentions import variables_of
from omnigraph.plan.physical import Keep

_BLIND_TO_REPEATS = frozenset({"min", "max"})


def keep_of_leaves(read: BoundRead) -> Keep:
    """Return what to keep of destinations that nothing after their traversal looks at.

    Without aggregates every destination is a row of the result. With them it adds to the weight of its row;
    where no aggregate sees weights it is enough that there is one.
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


def _read_by(expressions: Iterable[Expression]) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for expression in expressions:
        match expression:
            case AggregateValue(function="count", argument=EntityValue()):
                pass
            case _:
                names |= variables_of(expression)
    return names
