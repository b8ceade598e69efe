"""The type of every expression, and what a query can name at one place.

One function per family: what it may contain, which code it fails with. Checks on where an expression appears
(a rank function inside `match`, a text predicate in `return`) are plan rules, not types.

Names are parameters, and the variables bound so far.
"""

from collections.abc import Iterable
from typing import NoReturn

from omnigraph.catalog.bound import (
    NOW_PARAMETER,
    AggregateValue,
    Bm25Value,
    BoundExpression,
    EntityValue,
    LiteralValue,
    NearestValue,
    ParameterValue,
    PropertyValue,
    RrfValue,
    TextMatchValue,
    type_of,
)
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.core.diagnostics import Diagnostic
from omnigraph.core.errors import ExecutionError
from omnigraph.core.limits import VECTOR_DIMENSION_STORED_MAX
from omnigraph.core.nearest import nearest_name
from omnigraph.core.source_errors import TypeCheckError
from omnigraph.core.span import Source, Span
from omnigraph.core.temporal import parse_date, parse_datetime
from omnigraph.core.values import INTEGERS, NUMBERS, Scalar, ValueType
from omnigraph.language import query_ast as ast
from omnigraph.language.query_ast import (
    ANONYMOUS,
    ListLiteral,
    Literal,
    Now,
    Parameter,
    PropertyAccess,
    Value,
    Variable,
)

_COUNT = ValueType(Scalar.I64, nullable=True)
_SUM = ValueType(Scalar.F64, nullable=True)
NOW = ParameterValue(NOW_PARAMETER, ValueType(Scalar.DATETIME))


class Scope:
    """Names and their types; nodes and edges share one table of variables."""

    def __init__(self, catalog: Catalog, parameters: Iterable[Parameter], source: Source) -> None:
        """Start with the parameters and no variables.

        Raises:
            TypeCheckError: a parameter's type does not exist.
        """
        self.catalog = catalog
        self.source = source
        self.parameters: dict[str, ValueType] = {}
        self.variables: dict[str, NodeType | EdgeType] = {}
        for parameter in parameters:
            dimension = parameter.type.dimension
            if dimension is not None and not 1 <= dimension <= VECTOR_DIMENSION_STORED_MAX:
                message = (
                    f"the dimension of '${parameter.name}' is not between 1 and {VECTOR_DIMENSION_STORED_MAX}"
                )
                self.fail(None, message, parameter.span)
            self.parameters[parameter.name] = parameter.type

    def fail(self, code: str | None, message: str, span: Span | None, help: str | None = None) -> NoReturn:
        """Stop with a type error.

        Raises:
            TypeCheckError: always.
        """
        raise TypeCheckError([Diagnostic(message, span, help, code)], self.source)

    def property_of(self, access: PropertyAccess, code: str = "T6") -> tuple[NodeType | EdgeType, Property]:
        """Return what `$variable.property` names, or fail with the given code."""
        owner = None if access.variable == ANONYMOUS else self.variables.get(access.variable)
        if owner is None:
            help = nearest_name(access.variable, self.variables, "$")
            self.fail(code, f"variable '${access.variable}' is not bound here", access.span, help)
        item = owner.properties.get(access.property)
        if item is None:
            help = property_help(access.property, owner)
            self.fail(code, f"'{owner.name}' has no property '{access.property}'", access.span, help)
        return owner, item


def property_help(name: str, owner: NodeType | EdgeType) -> str | None:
    """Return a help line about a name that is no property: of the id, which results show, what to ask for."""
    if name != "id":
        return nearest_name(name, owner.properties)
    if isinstance(owner, EdgeType):
        return "'id' is not a property: match the nodes that the edge connects"
    if owner.written_key is None:
        return (
            f"'id' is not a property, and {owner.name} has no @key: match its properties, "
            "or read one node by its id with Graph.entity_at"
        )
    key = " and ".join(f"'{part}'" for part in owner.written_key)
    return f"'id' is not a property: a node of {owner.name} is known by its key, {key}"


BoundValue = LiteralValue | ParameterValue


def bind_expression(expression: ast.Expression, scope: Scope) -> BoundExpression:
    """Return an expression with its names resolved.

    Raises:
        TypeCheckError: a name or a type does not fit.
        ExecutionError: a date literal does not exist.
    """
    match expression:
        case ast.PropertyAccess():
            return bind_property(expression, scope)
        case ast.Variable():
            return _variable(expression, scope)
        case ast.Literal() | ast.ListLiteral():
            return bind_literal(expression, scope)
        case ast.Now():
            return NOW
        case ast.Aggregate():
            return _aggregate(expression, scope)
        case ast.TextMatch():
            return _text_match(expression, scope)
        case ast.Nearest():
            return _nearest(expression, scope)
        case ast.Bm25():
            return _bm25(expression, scope)
        case ast.Rrf():
            return _rrf(expression, scope)
        case ast.AliasReference():
            help = (
                "there is no null literal: pass it as a parameter"
                if expression.name == "null"
                else "an alias can only be an order key; a property is written '$variable.property'"
            )
            return scope.fail(None, f"'{expression.name}' is not a value", expression.span, help)


def bind_property(access: ast.PropertyAccess, scope: Scope) -> PropertyValue:
    """Return a property of a bound variable; T6 when there is no such property, T24 when it is a Blob."""
    _, item = scope.property_of(access)
    if item.is_blob:
        message = f"'${access.variable}.{access.property}' is a Blob and cannot be read in a query"
        scope.fail("T24", message, access.span)
    return PropertyValue(access.variable, access.property, item.type)


def _variable(variable: ast.Variable, scope: Scope) -> ParameterValue | EntityValue:
    parameter = scope.parameters.get(variable.name)
    if parameter is not None:
        return ParameterValue(variable.name, parameter)
    if variable.name == ast.ANONYMOUS:
        scope.fail("T6", "the anonymous '$_' binds nothing and has no value", variable.span)
    owner = scope.variables.get(variable.name)
    if owner is None:
        help = nearest_name(variable.name, [*scope.parameters, *scope.variables], "$")
        scope.fail(
            None, f"'${variable.name}' is neither a parameter nor a bound variable", variable.span, help
        )
    return EntityValue(variable.name, owner.name, isinstance(owner, EdgeType))


def _aggregate(aggregate: ast.Aggregate, scope: Scope) -> AggregateValue:
    argument = bind_expression(aggregate.argument, scope)
    type_ = type_of(argument)
    function = aggregate.function
    if type_ is not None and type_.scalar is Scalar.BLOB:
        scope.fail("T24", f"{function}: a Blob cannot be aggregated", aggregate.argument.span)
    if function == "count":
        return AggregateValue(function, argument, _COUNT)
    is_number = type_ is not None and type_.is_number
    if function in {"sum", "avg"}:
        if not is_number:
            scope.fail("T8", f"{function} needs a number, not {_shown(argument)}", aggregate.span)
        return AggregateValue(function, argument, _SUM)
    if type_ is None or not (is_number or type_.is_plain_string):
        scope.fail("T8", f"{function} needs a number or a String, not {_shown(argument)}", aggregate.span)
    result = ValueType(type_.scalar, nullable=True, enum_values=type_.enum_values)
    return AggregateValue(function, argument, result)


# Search and ranking


def _text_match(match: ast.TextMatch, scope: Scope) -> TextMatchValue:
    code = "T20" if match.function == "match_text" else "T19"
    field = _text_field(match.function, match.field, scope, code)
    query = _text_query(match.function, match.query, scope, code)
    edits = None
    if match.edits is not None:
        edits = bind_expression(match.edits, scope)
        if not _is_integer(edits):
            scope.fail(code, f"the edits of fuzzy must be an integer, not {_shown(edits)}", match.edits.span)
    return TextMatchValue(match.function, field, query, edits)


def _bm25(rank: ast.Bm25, scope: Scope) -> Bm25Value:
    return Bm25Value(
        _text_field("bm25", rank.field, scope, "T20"), _text_query("bm25", rank.query, scope, "T20")
    )


def _text_field(function: str, field: ast.Expression, scope: Scope, code: str) -> PropertyValue:
    if not isinstance(field, ast.PropertyAccess):
        scope.fail(code, f"the field of {function} must be a String property of a node", field.span)
    _refuse_edge(function, field, scope)
    bound = bind_property(field, scope)
    if not bound.type.is_plain_string:
        message = f"{function} needs a String field, but '{bound.property}' is {bound.type}"
        scope.fail(code, message, field.span)
    return bound


def _text_query(function: str, query: ast.Expression, scope: Scope, code: str) -> BoundExpression:
    bound = bind_expression(query, scope)
    type_ = type_of(bound)
    if type_ is None or not type_.is_plain_string:
        scope.fail(code, f"the query of {function} must be a String, not {_shown(bound)}", query.span)
    return bound


def _nearest(rank: ast.Nearest, scope: Scope) -> NearestValue:
    _refuse_edge("nearest", rank.field, scope)
    _, item = scope.property_of(rank.field, "T15")
    dimension = item.type.dimension
    if item.is_blob:
        scope.fail("T24", f"'{item.name}' is a Blob and cannot be read in a query", rank.field.span)
    if dimension is None:
        message = f"nearest needs a Vector property, but '{item.name}' is {item.type}"
        scope.fail("T15", message, rank.field.span)
    field = PropertyValue(rank.field.variable, item.name, item.type)
    model = item.embed.model if item.embed else None
    if isinstance(rank.query, ast.ListLiteral):
        return NearestValue(field, bind_vector(rank.query, scope, dimension, "T15"), model)
    query = bind_expression(rank.query, scope)
    type_ = type_of(query)
    is_vector = type_ is not None and type_.dimension == dimension
    if type_ is None or not (is_vector or type_.is_plain_string):
        message = f"'{item.name}': nearest needs a Vector({dimension}) or a String, not {_shown(query)}"
        scope.fail("T15", message, rank.query.span)
    return NearestValue(field, query, model)


def _rrf(rank: ast.Rrf, scope: Scope) -> RrfValue:
    first, second = _arm(rank.first, scope), _arm(rank.second, scope)
    k = None
    if rank.k is not None:
        k = bind_expression(rank.k, scope)
        is_zero = isinstance(rank.k, ast.Literal) and rank.k.value == 0  # there are no negative literals
        if not _is_integer(k) or is_zero:
            scope.fail("T21", f"the k of rrf must be a positive integer, not {_shown(k)}", rank.k.span)
    return RrfValue(first, second, k)


def _arm(arm: ast.Nearest | ast.Bm25, scope: Scope) -> NearestValue | Bm25Value:
    return _nearest(arm, scope) if isinstance(arm, ast.Nearest) else _bm25(arm, scope)


def _refuse_edge(function: str, field: ast.PropertyAccess, scope: Scope) -> None:
    if isinstance(scope.variables.get(field.variable), EdgeType):
        message = f"{function} works on nodes, and '${field.variable}' is an edge"
        scope.fail("T23", message, field.span)


def _is_integer(expression: BoundExpression) -> bool:
    type_ = type_of(expression)
    return type_ is not None and not type_.is_list and type_.scalar in INTEGERS


def _shown(expression: BoundExpression) -> str:
    type_ = type_of(expression)
    return "a whole entity" if type_ is None else str(type_)


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
