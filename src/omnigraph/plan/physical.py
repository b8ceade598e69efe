"""The operators of a physical plan: what runs, in which order, and how much of it is kept.

P1  A physical plan gives the rows of the pattern it was made from.
P2  It looks at statistics of pinned versions, never at parameters: a choice that depends on a value (index or
    plain scan, index hop or adjacency) is made when the query runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.catalog.bound import (
    BoundExpression,
    BoundOrdering,
    BoundProjection,
    Condition,
    Direction,
    PropertyValue,
)
from omnigraph.core.values import ValueType


class Keep(StrEnum):
    """What later operators need from a traversal."""

    ROWS = "rows"  # one row per destination or edge
    COUNT = "count"  # how many there are: rows stay, their weight is multiplied
    EXISTS = "exists"  # whether there is one: rows without are dropped


@dataclass(frozen=True, slots=True)
class PlanVariable:
    """What a variable of a plan ranges over."""

    name: str
    type_name: str
    is_edge: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """The nodes of a type that pass conditions on only this variable. The first operator of a pipeline."""

    variable: str
    type_name: str
    conditions: tuple[Condition, ...]
    estimate: float


@dataclass(frozen=True, slots=True)
class JoinKey:
    """An equality between a property of the joined variable and an expression over already bound ones."""

    own: PropertyValue
    other: BoundExpression


@dataclass(frozen=True, slots=True)
class Join:
    """Every row with every node of a scan whose keys are equal; without keys, the cross product."""

    scan: Scan
    keys: tuple[JoinKey, ...]
    estimate: float


@dataclass(frozen=True, slots=True)
class Expand:
    """The nodes that an edge type leads to from a bound variable.

    Set semantics per row, unless the edge is bound: then one row per stored edge.
    """

    src_var: str
    dst_var: str
    dst_type: str
    edge_type: str
    direction: Direction
    min_hops: int
    max_hops: int
    edge_binding: str | None
    dst_conditions: tuple[Condition, ...]
    edge_conditions: tuple[Condition, ...]
    keep: Keep
    estimate: float


@dataclass(frozen=True, slots=True)
class Close:
    """Both ends are bound: keep the rows whose right node is among the destinations of the left one.

    With an edge binding, one row per such edge. Hops are as in `Expand`, counted from the left end.
    """

    left_var: str
    left_type: str
    right_var: str
    right_type: str
    edge_type: str
    direction: Direction
    min_hops: int
    max_hops: int
    edge_binding: str | None
    edge_conditions: tuple[Condition, ...]
    estimate: float


@dataclass(frozen=True, slots=True)
class FilterRows:
    """Rows for which every condition is true; conditions over several variables."""

    conditions: tuple[Condition, ...]
    estimate: float


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Rows for which `inner` yields nothing; `on` are the outer variables that it mentions.

    `inner` starts from the rows themselves (distinct by `on`), so that its first operator may be an Expand,
    a Join or a Filter over outer variables.
    """

    on: tuple[str, ...]
    inner: "tuple[PlanOperator, ...]"
    estimate: float


PlanOperator = Scan | Join | Expand | Close | FilterRows | AntiJoin


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """A read, ready to run on any snapshot that has the schema it was made for."""

    name: str
    parameters: Mapping[str, ValueType]
    variables: Mapping[str, PlanVariable]  # those of the pipeline, not of the inside of anti-joins
    pipeline: tuple[PlanOperator, ...]
    projections: tuple[BoundProjection, ...]
    orderings: tuple[BoundOrdering, ...]
    limit: int | None
    estimate: float
