"""The plan of a mutation: its statements over physical column names, in order."""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.catalog.bound import (
    BoundAssignment,
    BoundDelete,
    BoundExpression,
    BoundInsert,
    BoundMutation,
    BoundPredicate,
    BoundStatement,
    BoundUpdate,
    Operator,
)
from omnigraph.catalog.model import EdgeType
from omnigraph.core.values import ValueType

_ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}


@dataclass(frozen=True, slots=True)
class ColumnPredicate:
    """One comparison of a column with a value."""

    column: str
    operator: Operator
    value: BoundExpression


@dataclass(frozen=True, slots=True)
class InsertOp:
    """One pending row."""

    type_name: str
    is_edge: bool
    assignments: tuple[tuple[str, BoundExpression], ...]


@dataclass(frozen=True, slots=True)
class UpdateOp:
    """Pending rows for every node that the predicate selects."""

    type_name: str
    assignments: tuple[tuple[str, BoundExpression], ...]
    predicate: ColumnPredicate


@dataclass(frozen=True, slots=True)
class DeleteOp:
    """Removal of what the predicate selects, with the edges of removed nodes."""

    type_name: str
    is_edge: bool
    predicate: ColumnPredicate


MutationOp = InsertOp | UpdateOp | DeleteOp


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """A mutation: operations in order."""

    name: str
    parameters: Mapping[str, ValueType]
    operations: tuple[MutationOp, ...]


def plan_mutation(bound: BoundMutation) -> MutationPlan:
    """Return the plan of a checked mutation."""
    operations = tuple(_statement(statement) for statement in bound.statements)
    return MutationPlan(bound.name, bound.parameters, operations)


def _statement(statement: BoundStatement) -> MutationOp:
    name, is_edge = statement.type.name, isinstance(statement.type, EdgeType)
    match statement:
        case BoundInsert(assignments=assignments):
            return InsertOp(name, is_edge, _columns(assignments, is_edge))
        case BoundUpdate(assignments=assignments, predicate=predicate):
            return UpdateOp(name, _columns(assignments, is_edge), _predicate(predicate, is_edge))
        case BoundDelete(predicate=predicate):
            return DeleteOp(name, is_edge, _predicate(predicate, is_edge))


def _columns(
    assignments: tuple[BoundAssignment, ...], is_edge: bool
) -> tuple[tuple[str, BoundExpression], ...]:
    return tuple((_column(assignment.name, is_edge), assignment.value) for assignment in assignments)


def _predicate(predicate: BoundPredicate, is_edge: bool) -> ColumnPredicate:
    return ColumnPredicate(_column(predicate.name, is_edge), predicate.operator, predicate.value)


def _column(name: str, is_edge: bool) -> str:
    return _ENDPOINT_COLUMNS.get(name, name) if is_edge else name
