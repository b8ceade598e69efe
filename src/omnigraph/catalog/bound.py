"""Checked queries: every name resolved, every expression typed.

B1  No reader of a bound query consults the catalog for a type again: the operator of a filter, the direction
    of a traversal and the type of every expression are decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.span import Source, Span
from omnigraph.core.values import Scalar, ValueType

NOW_PARAMETER = (
    "__omnigraph_now"  # `now()`: bound once per request, so that it is the same instant throughout
)


class Operator(StrEnum):
    """The comparisons of filters; `contains` on a list and `contains` on a text are two different ones."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    LT = "lt"
    GE = "ge"
    LE = "le"
    CONTAINS = "contains"
    STRING_CONTAINS = "string_contains"
    STARTS_WITH = "starts_with"


class Direction(StrEnum):
    """How an edge is followed, seen from where it starts in a plan."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    @property
    def reversed(self) -> "Direction":
        """The direction seen from the other end."""
        return {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}.get(self, Direction.BOTH)


# Expressions


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """A property of a bound node or edge."""

    variable: str
    property: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """A parameter, `now()` included."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A literal. A `Date` is in days and a `DateTime` in milliseconds since the epoch; lists are tuples."""

    value: str | int | float | bool | tuple[str | int | float | bool, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class EntityValue:
    """A whole node or edge, identified by its id."""

    variable: str
    type_name: str
    is_edge: bool


@dataclass(frozen=True, slots=True)
class AggregateValue:
    """`count` and the like over a group."""

    function: str
    argument: "BoundExpression"
    type: ValueType


@dataclass(frozen=True, slots=True)
class AliasValue:
    """A projected column, by its alias; an unknown one has no projection, and plan rules refuse it."""

    name: str
    projection: "BoundExpression | None"


@dataclass(frozen=True, slots=True)
class TextMatchValue:
    """`search`, `fuzzy` or `match_text`."""

    function: str
    field: PropertyValue
    query: "BoundExpression"
    edits: "BoundExpression | None" = None


@dataclass(frozen=True, slots=True)
class NearestValue:
    """Distance of a vector; the query is a vector, or a text that is embedded when the query runs."""

    field: PropertyValue
    query: "BoundExpression"
    model: str | None


@dataclass(frozen=True, slots=True)
class Bm25Value:
    """Text relevance."""

    field: PropertyValue
    query: "BoundExpression"


@dataclass(frozen=True, slots=True)
class RrfValue:
    """Two rankings fused."""

    first: "NearestValue | Bm25Value"
    second: "NearestValue | Bm25Value"
    k: "BoundExpression | None"


RankValue = NearestValue | Bm25Value | RrfValue
BoundExpression = (
    PropertyValue
    | ParameterValue
    | LiteralValue
    | EntityValue
    | AggregateValue
    | AliasValue
    | TextMatchValue
    | NearestValue
    | Bm25Value
    | RrfValue
)

_TRUTH = ValueType(Scalar.BOOL)
_SCORE = ValueType(Scalar.F64)


def type_of(expression: BoundExpression) -> ValueType | None:
    """Return the type of an expression, or `None` for a whole entity."""
    match expression:
        case PropertyValue() | ParameterValue() | LiteralValue() | AggregateValue():
            return expression.type
        case AliasValue(projection=projection):
            return None if projection is None else type_of(projection)
        case TextMatchValue():
            return _TRUTH
        case NearestValue() | Bm25Value() | RrfValue():
            return _SCORE
        case EntityValue():
            return None


def behind_alias(expression: BoundExpression) -> BoundExpression:
    """Return what an order key stands for: the projection that an alias names, else the key itself."""
    if isinstance(expression, AliasValue) and expression.projection is not None:
        return expression.projection
    return expression


# Clauses


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, true or not."""

    left: BoundExpression
    operator: Operator
    right: BoundExpression


Condition = Comparison | TextMatchValue


@dataclass(frozen=True, slots=True)
class BoundBinding:
    """A variable over the nodes of a type that pass its matches."""

    variable: str
    type_name: str
    matches: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class BoundTraversal:
    """An edge between two variables; an anonymous end or edge is `None`.

    `direction` is seen from the left end. Every traversal has both bounds.
    """

    left: str | None
    right: str | None
    left_type: str
    right_type: str
    edge_type: str
    direction: Direction
    hops_min: int
    hops_max: int
    edge_variable: str | None


@dataclass(frozen=True, slots=True)
class BoundFilter:
    """A condition on the row."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class BoundNegation:
    """Keeps the rows for which the clauses have no match.

    `visible` are the outer variables bound before the block that it mentions: a variable of the block with
    the name of one bound later is a different variable.
    """

    clauses: "tuple[BoundClause, ...]"
    visible: frozenset[str]


BoundClause = BoundBinding | BoundTraversal | BoundFilter | BoundNegation


# Queries


@dataclass(frozen=True, slots=True)
class BoundProjection:
    """One column: its name in results and the short name of the descriptor."""

    expression: BoundExpression
    column: str
    short_name: str
    alias: str | None


@dataclass(frozen=True, slots=True)
class BoundOrdering:
    """One key of the order."""

    expression: BoundExpression
    descending: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class BoundRead:
    """A read that passed all checks."""

    name: str
    parameters: Mapping[str, ValueType]
    clauses: tuple[BoundClause, ...]
    projections: tuple[BoundProjection, ...]
    orderings: tuple[BoundOrdering, ...]
    limit: int | None
    source: Source = field(compare=False, repr=False)

    @property
    def is_aggregate(self) -> bool:
        """Whether the result has one row per group."""
        return any(isinstance(p.expression, AggregateValue) for p in self.projections)


@dataclass(frozen=True, slots=True)
class BoundAssignment:
    """A value for a property, or for `from` and `to` of an edge."""

    name: str
    value: BoundExpression


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """The one comparison that selects what a statement changes."""

    name: str
    operator: Operator
    value: BoundExpression


@dataclass(frozen=True, slots=True)
class BoundInsert:
    """A new node or edge."""

    type: NodeType | EdgeType
    assignments: tuple[BoundAssignment, ...]


@dataclass(frozen=True, slots=True)
class BoundUpdate:
    """Changed nodes."""

    type: NodeType
    assignments: tuple[BoundAssignment, ...]
    predicate: BoundPredicate


@dataclass(frozen=True, slots=True)
class BoundDelete:
    """Removed nodes with their edges, or removed edges."""

    type: NodeType | EdgeType
    predicate: BoundPredicate


BoundStatement = BoundInsert | BoundUpdate | BoundDelete


@dataclass(frozen=True, slots=True)
class BoundMutation:
    """A mutation that passed all checks."""

    name: str
    parameters: Mapping[str, ValueType]
    statements: tuple[BoundStatement, ...]


BoundQuery = BoundRead | BoundMutation
