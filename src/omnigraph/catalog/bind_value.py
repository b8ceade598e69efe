"""Literals, parameters and `now()`: their types, and whether they fit a property."""

from omnigraph.catalog.bound import NOW_PARAMETER, LiteralValue, ParameterValue
from omnigraph.catalog.model import Property
from omnigraph.catalog.scope import Scope, nearest_name
from omnigraph.core.errors import ExecutionError
from omnigraph.core.temporal import parse_date, parse_datetime
from omnigraph.core.values import NUMBERS, Scalar, ValueType
from omnigraph.language.query_ast import ListLiteral, Literal, Now, Value, Variable

BoundValue = LiteralValue | ParameterValue
NOW = ParameterValue(NOW_PARAMETER, ValueType(Scalar.DATETIME))


def bind_literal(literal: Literal | ListLiteral, scope: Scope) -> LiteralValue:
    """Return a literal with its type: integers are I64, decimals F64, `[]` is a list of String.

    Raises:
        TypeCheckError: a list is nested or mixes types.
        ExecutionError: a date does not exist.
    """
    if isinstance(literal, Literal):
        return LiteralValue(_scalar_value(literal, scope), ValueType(literal.scalar))
    items: list[Literal] = []
    for item in literal.items:
        if isinstance(item, ListLiteral):
            scope.fail(None, "lists cannot be nested", item.span)
        items.append(item)
        if not ValueType(items[0].scalar).accepts(ValueType(item.scalar)):
            message = f"a list holds one type, not both {items[0].scalar} and {item.scalar}"
            scope.fail(None, message, item.span)
    scalar = items[0].scalar if items else Scalar.STRING
    return LiteralValue(tuple(_scalar_value(item, scope) for item in items), ValueType(scalar, is_list=True))


def bind_vector(literal: ListLiteral, scope: Scope, dimension: int, code: str) -> LiteralValue:
    """Return a list literal as a vector, or fail with the given code."""
    bound = bind_literal(literal, scope)
    assert isinstance(bound.value, tuple)
    if bound.type.scalar not in NUMBERS or len(bound.value) != dimension:
        noun = "number" if dimension == 1 else "numbers"
        found = f"{len(bound.value)} of {bound.type}"
        message = f"expected {dimension} {noun} for Vector({dimension}), found {found}"
        scope.fail(code, message, literal.span)
    vector = tuple(float(number) for number in bound.value)
    return LiteralValue(vector, ValueType(Scalar.VECTOR, dimension=dimension))


def bind_parameter(variable: Variable, scope: Scope) -> ParameterValue:
    """Return a declared parameter, or fail with T14."""
    type_ = scope.parameters.get(variable.name)
    if type_ is None:
        help = nearest_name(variable.name, scope.parameters, "$")
        scope.fail("T14", f"'${variable.name}' is not a declared parameter", variable.span, help)
    return ParameterValue(variable.name, type_)


def bind_match(value: Value, item: Property, where: str, scope: Scope) -> BoundValue:
    """Return the value of an inline match, which is equality, or membership of one item in a list."""
    wanted = item.type
    if wanted.is_list and isinstance(value, ListLiteral):
        scope.fail("T3", f"'{where}' is a list: match one of its items, not a list", value.span)
    if item.is_blob:
        scope.fail("T3", f"'{where}' is a Blob and cannot be matched", value.span)
    bound = _bind(value, wanted.item if wanted.is_list else wanted, where, scope)
    if wanted.is_vector:
        scope.fail("T7", f"'{where}' is {wanted} and cannot be compared", value.span)
    return bound


def bind_assigned(value: Value, item: Property, where: str, scope: Scope) -> BoundValue:
    """Return a value that is assigned to a property."""
    if item.is_blob and isinstance(value, Literal) and value.scalar is Scalar.STRING:
        return bind_literal(value, scope)
    if item.is_blob and isinstance(value, Variable):
        bound = bind_parameter(value, scope)
        if bound.type.is_plain_string:
            return bound
    return _bind(value, item.type, where, scope)


def bind_text(value: Value, where: str, scope: Scope) -> BoundValue:
    """Return a text: the id of an endpoint."""
    return _bind(value, ValueType(Scalar.STRING), where, scope)


def _bind(value: Value, wanted: ValueType, where: str, scope: Scope) -> BoundValue:
    match value:
        case Variable():
            bound = bind_parameter(value, scope)
            if not wanted.accepts(bound.type):
                message = f"'{where}' is {wanted}, but parameter '${bound.name}' is {bound.type}"
                scope.fail("T7", message, value.span)
            return bound
        case Now():
            if wanted.is_list or wanted.scalar is not Scalar.DATETIME:
                scope.fail("T7", f"'{where}' is {wanted}, but now() is a DateTime", value.span)
            return NOW
        case ListLiteral() if wanted.dimension is not None:
            return bind_vector(value, scope, wanted.dimension, "T3")
        case Literal() | ListLiteral():
            return _fitting_literal(value, wanted, where, scope)


def _fitting_literal(
    literal: Literal | ListLiteral, wanted: ValueType, where: str, scope: Scope
) -> LiteralValue:
    bound = bind_literal(literal, scope)
    is_empty_list = wanted.is_list and bound.value == ()
    if not wanted.accepts(bound.type) and not is_empty_list:
        help = _literal_help(wanted, bound)
        scope.fail("T3", f"'{where}' is {wanted}, but the literal is {bound.type}", literal.span, help)
    if wanted.enum_values is not None and bound.value not in wanted.enum_values:
        message = f"'{bound.value}' is not a value of '{where}', which is {wanted}"
        scope.fail("T3", message, literal.span, nearest_name(str(bound.value), wanted.enum_values))
    return bound


def _literal_help(wanted: ValueType, found: LiteralValue) -> str | None:
    if wanted.scalar in {Scalar.DATE, Scalar.DATETIME} and isinstance(found.value, str):
        return f'write {str(wanted.scalar).lower()}("...")'
    return None


def _scalar_value(literal: Literal, scope: Scope) -> str | int | float | bool:
    if literal.scalar not in {Scalar.DATE, Scalar.DATETIME}:
        return literal.value
    parse = parse_date if literal.scalar is Scalar.DATE else parse_datetime
    try:
        return parse(str(literal.value))
    except ExecutionError as error:
        line, column = scope.source.position(literal.span.start)
        raise ExecutionError(f"{error.message} at {line}:{column}") from None
