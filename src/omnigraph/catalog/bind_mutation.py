"""The statements of a mutation, checked in order."""

from collections.abc import Mapping
from typing import NoReturn

from omnigraph.catalog.bind_expression import (
    NOW,
    BoundValue,
    bind_assigned,
    bind_literal,
    bind_parameter,
    bind_text,
)
from omnigraph.catalog.bind_match import COMPARISONS, check_comparable
from omnigraph.catalog.bound import (
    BoundAssignment,
    BoundDelete,
    BoundInsert,
    BoundPredicate,
    BoundStatement,
    BoundUpdate,
)
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.catalog.scope import Scope, nearest_name
from omnigraph.core.errors import ExecutionError
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language import query_ast as ast
from omnigraph.language.tree import Name

ENDPOINTS = ("from", "to")


def bind_statement(statement: ast.Statement, scope: Scope) -> BoundStatement:
    """Return one statement with its names resolved.

    Raises:
        TypeCheckError: a name or a type does not fit.
        ExecutionError: an update assigns a key, or a date literal does not exist.
    """
    type_ = _type(statement.type_name, scope)
    match statement:
        case ast.Insert():
            assignments = _assignments(statement.assignments, type_, scope)
            _require_all(statement, type_, assignments, scope)
            return BoundInsert(type_, tuple(assignments.values()))
        case ast.Update():
            if isinstance(type_, EdgeType):
                help = "delete the edge and insert it again"
                scope.fail("T16", f"edges cannot be updated, and '{type_.name}' is one", statement.span, help)
            assignments = _assignments(statement.assignments, type_, scope)
            predicate = _predicate(statement.predicate, type_, scope)
            _refuse_key(type_, assignments)
            return BoundUpdate(type_, tuple(assignments.values()), predicate)
        case ast.Delete():
            return BoundDelete(type_, _predicate(statement.predicate, type_, scope))


def _type(name: Name, scope: Scope) -> NodeType | EdgeType:
    catalog = scope.catalog
    type_ = catalog.nodes.get(name.text) or catalog.edges.get(name.text)
    if type_ is None:
        help = nearest_name(name.text, [*catalog.nodes, *catalog.edges])
        scope.fail("T10", f"unknown type '{name.text}'", name.span, help)
    return type_


def _assignments(
    assignments: tuple[ast.Assignment, ...], type_: NodeType | EdgeType, scope: Scope
) -> dict[str, BoundAssignment]:
    bound: dict[str, BoundAssignment] = {}
    for assignment in assignments:
        name = assignment.name.text
        if name in bound:
            scope.fail("T13", f"'{type_.name}.{name}' is assigned twice", assignment.name.span)
        bound[name] = BoundAssignment(name, _assigned(assignment, type_, scope))
    return bound


def _assigned(assignment: ast.Assignment, type_: NodeType | EdgeType, scope: Scope) -> BoundValue:
    name = assignment.name.text
    where = f"{type_.name}.{name}"
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        return bind_text(assignment.value, where, scope)
    item = type_.properties.get(name)
    if item is None:
        _fail_unknown(assignment.name, type_, scope)
    return bind_assigned(assignment.value, item, where, scope)


def _require_all(
    statement: ast.Insert, type_: NodeType | EdgeType, assigned: Mapping[str, BoundAssignment], scope: Scope
) -> None:
    for name in ENDPOINTS if isinstance(type_, EdgeType) else ():
        if name not in assigned:
            scope.fail("T12", f"insert for edge '{type_.name}' must provide '{name}'", statement.span)
    for item in type_.properties.values():
        if item.type.nullable or item.name in assigned:
            continue
        if item.embed is None:
            message = f"insert for '{type_.name}' must provide non-nullable property '{item.name}'"
            scope.fail("T12", message, statement.span)
        elif item.embed.source not in assigned:
            message = (
                f"insert for '{type_.name}' must provide non-nullable property '{item.name}' "
                f"or its embed source '{item.embed.source}'"
            )
            scope.fail("T12", message, statement.span)


def _predicate(predicate: ast.Predicate, type_: NodeType | EdgeType, scope: Scope) -> BoundPredicate:
    name = predicate.name.text
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        wanted = ValueType(Scalar.STRING)
    else:
        item = type_.properties.get(name)
        if item is None:
            _fail_unknown(predicate.name, type_, scope)
        if item.is_blob:
            scope.fail(
                "T11", f"'{type_.name}.{name}' is a Blob and cannot select anything", predicate.name.span
            )
        wanted = item.type
    value = _compared(predicate.value, scope)
    check_comparable(wanted, value.type, predicate, scope)
    return BoundPredicate(name, COMPARISONS[predicate.operator], value)


def _compared(value: ast.Value, scope: Scope) -> BoundValue:
    match value:
        case ast.Variable():
            return bind_parameter(value, scope)
        case ast.Now():
            return NOW
        case ast.Literal() | ast.ListLiteral():
            return bind_literal(value, scope)


def _refuse_key(type_: NodeType, assigned: Mapping[str, BoundAssignment]) -> None:
    for name in type_.key or ():
        if name in assigned:
            message = f"'{type_.name}.{name}' is part of the key and cannot be updated"
            raise ExecutionError(f"{message}; delete the node and insert it again")


def _fail_unknown(name: Name, type_: NodeType | EdgeType, scope: Scope) -> NoReturn:
    known = [*type_.properties, *(ENDPOINTS if isinstance(type_, EdgeType) else ())]
    scope.fail(
        "T11", f"'{type_.name}' has no property '{name.text}'", name.span, nearest_name(name.text, known)
    )
