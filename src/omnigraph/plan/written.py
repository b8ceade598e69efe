"""Conditions and expressions of a plan as the query language writes them, with names for parameters."""

from omnigraph.catalog.bound import (
    NOW_PARAMETER,
    AggregateValue,
    AliasValue,
    Bm25Value,
    BoundExpression,
    BoundOrdering,
    BoundProjection,
    Comparison,
    Condition,
    EntityValue,
    LiteralValue,
    NearestValue,
    Operator,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
)
from omnigraph.core.temporal import format_date, format_datetime
from omnigraph.core.values import Scalar

WRITTEN_TEXT_MAX = 120  # characters of a text literal that a plan shows; people read it
WRITTEN_ITEMS_MAX = 8  # items of a list literal that a plan shows: a vector has hundreds

_MARKS = {
    Operator.EQ: "=",
    Operator.NE: "!=",
    Operator.GT: ">",
    Operator.LT: "<",
    Operator.GE: ">=",
    Operator.LE: "<=",
    Operator.CONTAINS: "contains",
    Operator.STRING_CONTAINS: "contains",
    Operator.STARTS_WITH: "starts_with",
}
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def written(value: BoundExpression | Condition) -> str:
    """Return an expression or a condition as a query would write it."""
    match value:
        case Comparison(left, operator, right):
            return f"{written(left)} {_MARKS[operator]} {written(right)}"
        case PropertyValue(variable, name):
            return f"${variable}.{name}"
        case EntityValue(variable):
            return f"${variable}"
        case ParameterValue(name):
            return "now()" if name == NOW_PARAMETER else f"${name}"
        case LiteralValue():
            return _literal(value)
        case AggregateValue(function, argument):
            return f"{function}({written(argument)})"
        case AliasValue(name):
            return name
        case TextMatchValue(function, field, query, edits):
            return _call(function, field, query, edits)
        case NearestValue(field, query):
            return _call("nearest", field, query)
        case Bm25Value(field, query):
            return _call("bm25", field, query)
        case RrfValue(first, second, k):
            return _call("rrf", first, second, k)


def written_projection(projection: BoundProjection) -> str:
    """Return a projection with its alias."""
    alias = "" if projection.alias is None else f" as {projection.alias}"
    return f"{written(projection.expression)}{alias}"


def written_ordering(ordering: BoundOrdering) -> str:
    """Return a key of the order; ascending is the default."""
    return f"{written(ordering.expression)}{' desc' if ordering.descending else ''}"


def _call(function: str, *arguments: BoundExpression | None) -> str:
    return f"{function}({', '.join(written(argument) for argument in arguments if argument is not None)})"


def _literal(literal: LiteralValue) -> str:
    if isinstance(literal.value, tuple):
        items = [_scalar(item, literal.type.scalar) for item in literal.value[:WRITTEN_ITEMS_MAX]]
        return f"[{', '.join(items + ['…'] * (len(literal.value) > WRITTEN_ITEMS_MAX))}]"
    return _scalar(literal.value, literal.type.scalar)


def _scalar(value: str | float | bool, scalar: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = value if len(value) <= WRITTEN_TEXT_MAX else value[:WRITTEN_TEXT_MAX] + "…"
        return f'"{shown.translate(_ESCAPES)}"'
    if scalar is Scalar.DATE:
        return f'date("{format_date(int(value))}")'
    if scalar is Scalar.DATETIME:
        return f'datetime("{format_datetime(int(value))}")'
    return repr(value) if isinstance(value, int) else _decimal(value)


def _decimal(value: float) -> str:
    """Return a float without an exponent, which the language does not have."""
    text = repr(value)
    if "e" not in text:
        return text
    text = f"{value:.400f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text
