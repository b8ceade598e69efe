"""The operators of a plan, on a set of rows.

A row is a record of columns `<variable>.<column>`; every node variable contributes its id. Names that start
with two underscores are variables of the plan, which no query can write.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.catalog.bound import (
    BoundOrdering,
    BoundProjection,
    Comparison,
    Direction,
    Expression,
    Operator,
    TextMatchValue,
)
from omnigraph.core.values import ValueType

Condition = Comparison | TextMatchValue


@dataclass(frozen=True, slots=True)
class NodeScan:
    """All nodes of a type that pass the filters: the row set, or its cross product with them."""

    variable: str
    type_name: str
    filters: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Expand:
    """One row per node that an edge type leads to; per stored edge where the edge is bound.

    Destinations that fail `dst_filters` or are missing from their table are dropped.
    """

    src_var: str
    dst_var: str
    edge_type: str
    direction: Direction
    dst_type: str
    min_hops: int
    max_hops: int
    dst_filters: tuple[Condition, ...]
    edge_binding: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the condition is true."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Rows from which running `inner` yields nothing."""

    outer_var: str
    inner: "tuple[Operation, ...]"


Operation = NodeScan | Expand | Filter | AntiJoin


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A read: the pipeline makes rows, the rest orders, projects and cuts them."""

    name: str
    parameters: Mapping[str, ValueType]
    pipeline: tuple[Operation, ...]
    projections: tuple[BoundProjection, ...]
    orderings: tuple[BoundOrdering, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class ColumnPredicate:
    """One comparison of a column with a value."""

    column: str
    operator: Operator
    value: Expression


@dataclass(frozen=True, slots=True)
class InsertOp:
    """One pending row."""

    type_name: str
    is_edge: bool
    assignments: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class UpdateOp:
    """Pending rows for every node that the predicate selects."""

    type_name: str
    assignments: tuple[tuple[str, Expression], ...]
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
    """A mutation: operations in order, over physical column names."""

    name: str
    parameters: Mapping[str, ValueType]
    operations: tuple[MutationOp, ...]


Plan = ReadPlan | MutationPlan
