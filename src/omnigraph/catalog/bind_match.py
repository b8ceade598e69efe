"""The clauses of a match block, checked in source order."""

from collections.abc import Iterator
from typing import NoReturn

from omnigraph.catalog.bind_expression import Scope, bind_expression, bind_match, property_help
from omnigraph.catalog.bound import (
    AggregateValue,
    BoundBinding,
    BoundClause,
    BoundExpression,
    BoundFilter,
    BoundNegation,
    BoundTraversal,
    Comparison,
    Direction,
    EntityValue,
    Operator,
    PropertyValue,
    TextMatchValue,
    type_of,
)
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.clock import look_at_deadline
from omnigraph.core.nearest import nearest_name
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language import query_ast as ast

COMPARISONS = {
    "=": Operator.EQ,
    "!=": Operator.NE,
    ">": Operator.GT,
    "<": Operator.LT,
    ">=": Operator.GE,
    "<=": Operator.LE,
}


def bind_clauses(clauses: tuple[ast.Clause, ...], scope: Scope) -> tuple[BoundClause, ...]:
    """Return the clauses of a block, adding their variables to the scope.

    Raises:
        TypeCheckError: the first error in source order.
    """
    return tuple(_clause(clause, scope) for clause in clauses)


def _clause(clause: ast.Clause, scope: Scope) -> BoundClause:
    look_at_deadline()
    match clause:
        case ast.Binding():
            return _binding(clause, scope)
        case ast.Traversal():
            return _traversal(clause, scope)
        case ast.Filter():
            return _filter(clause, scope)
        case ast.TextPredicate():
            predicate = bind_expression(clause.expression, scope)
            assert isinstance(predicate, TextMatchValue)
            return BoundFilter(predicate)
        case ast.Negation():
            return _negation(clause, scope)


def _binding(clause: ast.Binding, scope: Scope) -> BoundBinding:
    name = clause.variable.name
    if name == ast.ANONYMOUS:
        scope.fail("T6", "the anonymous '$_' cannot be bound to a type", clause.variable.span)
    node = scope.catalog.nodes.get(clause.type_name.text)
    if node is None:
        _fail_unknown_node(clause, scope)
    bound = scope.variables.get(name)
    if isinstance(bound, EdgeType):
        scope.fail("T23", f"'${name}' is bound to an edge and cannot be a node", clause.variable.span)
    if bound is not None and bound.name != node.name:
        message = f"'${name}' is already {bound.name} and cannot be {node.name}"
        scope.fail(None, message, clause.variable.span)
    matches = []
    for match in clause.matches:
        item = node.properties.get(match.name.text)
        if item is None:
            help = property_help(match.name.text, node)
            scope.fail("T2", f"'{node.name}' has no property '{match.name.text}'", match.name.span, help)
        value = bind_match(match.value, item, f"{node.name}.{item.name}", scope)
        operator = Operator.CONTAINS if item.type.is_list else Operator.EQ
        matches.append(Comparison(PropertyValue(name, item.name, item.type), operator, value))
    scope.variables[name] = node
    return BoundBinding(name, node.name, tuple(matches))


def _fail_unknown_node(clause: ast.Binding, scope: Scope) -> NoReturn:
    name = clause.type_name.text
    if name in scope.catalog.interfaces:
        scope.fail("T1", f"'{name}' is an interface, which has no nodes of its own", clause.type_name.span)
    if name in scope.catalog.edges:
        help = "an edge is followed with a lower-case first letter: '$a wrote $b'"
        scope.fail("T1", f"'{name}' is an edge type, not a node type", clause.type_name.span, help)
    help_nearest = nearest_name(name, scope.catalog.nodes)
    scope.fail("T1", f"unknown node type '{name}'", clause.type_name.span, help_nearest)


# Traversals


def _traversal(clause: ast.Traversal, scope: Scope) -> BoundTraversal:
    edge = scope.catalog.edge(clause.edge.text)
    if edge is None:
        words = [name[0].lower() + name[1:] for name in scope.catalog.edges]
        scope.fail(
            "T4",
            f"unknown edge '{clause.edge.text}'",
            clause.edge.span,
            nearest_name(clause.edge.text, words),
        )
    if clause.undirected and edge.source != edge.target:
        message = f"'{edge.name}' leads from {edge.source} to {edge.target} and cannot be followed both ways"
        scope.fail("T22", message, clause.edge.span)
    low, high = _hops(clause, scope)
    _check_edge_variable(clause, scope)
    for end in (clause.left, clause.right):
        if isinstance(scope.variables.get(end.name), EdgeType):
            scope.fail("T23", f"'${end.name}' is bound to an edge and cannot be an end of one", end.span)
    direction = _orientation(clause, edge, scope)
    ends = (edge.source, edge.target) if direction is Direction.OUT else (edge.target, edge.source)
    for end, type_name in zip((clause.left, clause.right), ends, strict=True):
        _introduce(end, type_name, edge, scope)
    edge_variable = _named(clause.edge_variable)
    if edge_variable is not None:
        scope.variables[edge_variable] = edge
    return BoundTraversal(
        left=_named(clause.left),
        right=_named(clause.right),
        left_type=ends[0],
        right_type=ends[1],
        edge_type=edge.name,
        direction=Direction.BOTH if clause.undirected else direction,
        hops_min=low,
        hops_max=high,
        edge_variable=edge_variable,
    )


def _named(variable: ast.Variable | None) -> str | None:
    return None if variable is None or variable.name == ast.ANONYMOUS else variable.name


def _hops(clause: ast.Traversal, scope: Scope) -> tuple[int, int]:
    hops = clause.hops
    if hops is None:
        return 1, 1
    if hops.high is None:
        scope.fail("T15", "hop bounds need a maximum", hops.span, "write '{low,high}'")
    if hops.low < 1 or hops.high < hops.low:
        message = (
            f"hop bounds {{{hops.low},{hops.high}}}: the minimum must be at least 1 and at most the maximum"
        )
        scope.fail("T15", message, hops.span)
    return hops.low, hops.high


def _check_edge_variable(clause: ast.Traversal, scope: Scope) -> None:
    variable = clause.edge_variable
    if variable is None:
        return
    if clause.hops is not None:
        scope.fail("T23", "a named edge cannot have hop bounds", clause.hops.span)
    if variable.name == ast.ANONYMOUS:
        return
    if variable.name in {clause.left.name, clause.right.name}:
        scope.fail("T23", f"'${variable.name}' names the edge and one of its ends", variable.span)
    if variable.name in scope.variables:
        scope.fail("T23", f"'${variable.name}' is already bound and cannot name an edge", variable.span)


def _orientation(clause: ast.Traversal, edge: EdgeType, scope: Scope) -> Direction:
    """Return whether the left end is the edge's source, by the types known so far."""
    left, right = scope.variables.get(clause.left.name), scope.variables.get(clause.right.name)
    if left is not None:
        if left.name == edge.source:
            return Direction.OUT
        if left.name == edge.target:
            return Direction.IN
        _fail_end(clause.left, left, edge, scope)
    if right is not None:
        if right.name == edge.target:
            return Direction.OUT
        if right.name == edge.source:
            return Direction.IN
        _fail_end(clause.right, right, edge, scope)
    return Direction.OUT


def _introduce(end: ast.Variable, type_name: str, edge: EdgeType, scope: Scope) -> None:
    if end.name == ast.ANONYMOUS:
        return
    bound = scope.variables.get(end.name)
    if bound is None:
        scope.variables[end.name] = scope.catalog.nodes[type_name]
    elif bound.name != type_name:
        _fail_end(end, bound, edge, scope)


def _fail_end(end: ast.Variable, bound: NodeType | EdgeType, edge: EdgeType, scope: Scope) -> NoReturn:
    message = f"'${end.name}' is {bound.name}, but '{edge.name}' leads from {edge.source} to {edge.target}"
    scope.fail("T5", message, end.span)


# Filters


def _filter(clause: ast.Filter, scope: Scope) -> BoundFilter:
    left, right = _operand(clause.left, scope), _operand(clause.right, scope)
    left_type, right_type = type_of(left), type_of(right)
    assert left_type is not None
    assert right_type is not None
    if clause.operator == "contains":
        operator = _contains(left_type, right_type, clause, scope)
    elif clause.operator == "starts_with":
        if not (left_type.is_plain_string and right_type.is_plain_string):
            scope.fail("T7", f"starts_with needs two Strings, not {left_type} and {right_type}", clause.span)
        operator = Operator.STARTS_WITH
    else:
        check_comparable(left_type, right_type, clause, scope)
        operator = COMPARISONS[clause.operator]
    return BoundFilter(Comparison(left, operator, right))


def _operand(expression: ast.Expression, scope: Scope) -> BoundExpression:
    if isinstance(expression, ast.AliasReference):
        help = (
            "there is no null literal: pass it as a parameter; nothing compares equal to null"
            if expression.name == "null"
            else None
        )
        scope.fail("T7", f"'{expression.name}' is not a value to compare with", expression.span, help)
    operand = bind_expression(expression, scope)
    if isinstance(operand, EntityValue | AggregateValue):
        what = "a whole entity" if isinstance(operand, EntityValue) else "an aggregate"
        scope.fail("T7", f"{what} cannot be compared", expression.span)
    return operand


def check_comparable(
    left: ValueType, right: ValueType, clause: ast.Filter | ast.Predicate, scope: Scope
) -> None:
    """Fail with T7 unless the two are scalars of one type, or numbers."""
    for type_ in (left, right):
        if type_.is_list or type_.scalar in {Scalar.VECTOR, Scalar.BLOB}:
            scope.fail("T7", f"{type_} cannot be compared", clause.span)
    if not left.accepts(right):
        scope.fail("T7", f"{left} and {right} cannot be compared", clause.span)


def _contains(left: ValueType, right: ValueType, clause: ast.Filter, scope: Scope) -> Operator:
    if left.is_list:
        if right.is_list or right.is_vector or not left.item.accepts(right):
            scope.fail("T7", f"{left} cannot contain {right}", clause.span)
        return Operator.CONTAINS
    if not (left.is_plain_string and right.is_plain_string):
        scope.fail("T7", f"contains needs a list or two Strings, not {left} and {right}", clause.span)
    return Operator.STRING_CONTAINS


# Negation


def _negation(clause: ast.Negation, scope: Scope) -> BoundNegation:
    outside = len(scope.variables)
    clauses = bind_clauses(clause.clauses, scope)
    while len(scope.variables) > outside:  # what the block binds stays inside
        scope.variables.popitem()
    mentioned = (name for inner in clause.clauses for name in _mentions(inner))
    if not any(name in scope.variables for name in mentioned):
        help = "without one the block would be true or false for all rows alike"
        scope.fail("T9", "a not block must mention a variable from outside", clause.span, help)
    visible = (name for inner in clause.clauses for name in _mentions_within(inner))
    return BoundNegation(clauses, frozenset(name for name in visible if name in scope.variables))


def _mentions_within(clause: ast.Clause) -> Iterator[str]:
    """Yield the variables that a clause names, with those of nested blocks."""
    if isinstance(clause, ast.Negation):
        for inner in clause.clauses:
            yield from _mentions_within(inner)
    else:
        yield from _mentions(clause)


def _mentions(clause: ast.Clause) -> Iterator[str]:
    """Yield the variables that a clause itself names, without those of nested blocks."""
    match clause:
        case ast.Binding():
            yield clause.variable.name
        case ast.Traversal():
            yield clause.left.name
            yield clause.right.name
        case ast.Filter():
            yield from _variables(clause.left)
            yield from _variables(clause.right)
        case ast.TextPredicate():
            yield from _variables(clause.expression)
        case ast.Negation():
            return


def _variables(expression: ast.Expression) -> Iterator[str]:
    match expression:
        case ast.PropertyAccess():
            yield expression.variable
        case ast.TextMatch() | ast.Nearest() | ast.Bm25():
            yield from _variables(expression.field)
            yield from _variables(expression.query)
        case ast.Rrf():
            yield from _variables(expression.first)
            yield from _variables(expression.second)
        case _:
            return
