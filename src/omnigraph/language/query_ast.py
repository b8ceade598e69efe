"""What a query file says, as written.

Trees compare by content: spans are ignored, so a formatted file has the tree of the original.
"""

from dataclasses import dataclass, field

from omnigraph.core.span import Source, Span
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.tree import Name, span_field

ANONYMOUS = "_"  # `$_` binds nothing; each occurrence stands for itself


# Expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """One value. A `Date` or `DateTime` keeps its text until the query is checked."""

    scalar: Scalar
    value: str | int | float | bool
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`."""

    items: tuple["Literal | ListLiteral", ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: a parameter if one is declared, else a variable of the match."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class PropertyAccess:
    """`$variable.property`."""

    variable: str
    property: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AliasReference:
    """A bare name: the alias of a projection."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`: the instant of the request."""

    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`count(x)` and the like."""

    function: str
    argument: "Expression"
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class TextMatch:
    """`search`, `fuzzy` or `match_text`: whether a field contains words of a query."""

    function: str
    field: "Expression"
    query: "Expression"
    edits: "Expression | None"
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Nearest:
    """`nearest(field, query)`: distance of a vector."""

    field: PropertyAccess
    query: "Expression"
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Bm25:
    """`bm25(field, query)`: text relevance."""

    field: "Expression"
    query: "Expression"
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Rrf:
    """`rrf(a, b, k)`: two rankings fused."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: "Expression | None"
    span: Span = span_field()


Rank = Nearest | Bm25 | Rrf
Value = Literal | ListLiteral | Variable | Now
Expression = Value | PropertyAccess | AliasReference | Aggregate | TextMatch | Rank


# Match


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`property: value` inside a binding."""

    name: Name
    value: Value


@dataclass(frozen=True, slots=True)
class Binding:
    """`$variable: Type { property: value }`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Hops:
    """`{low, high}`; a missing upper bound parses and is refused by the checker."""

    low: int
    high: int | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$left $edge_variable:edge{hops} $right`, or `<edge>` for both directions."""

    left: Variable
    edge_variable: Variable | None
    edge: Name
    undirected: bool
    hops: Hops | None
    right: Variable
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Filter:
    """`left operator right`."""

    left: Expression
    operator: str
    right: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class TextPredicate:
    """A text match that is a clause by itself."""

    expression: TextMatch
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { ... }`."""

    clauses: tuple["Clause", ...]
    span: Span = span_field()


Clause = Binding | Traversal | Filter | TextPredicate | Negation


# Queries


@dataclass(frozen=True, slots=True)
class Projection:
    """One column of the result."""

    expression: Expression
    alias: Name | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Ordering:
    """One key of the order."""

    expression: Expression
    descending: bool
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Read:
    """`match`, `return`, `order`, `limit`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    orderings: tuple[Ordering, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property: value`."""

    name: Name
    value: Value


@dataclass(frozen=True, slots=True)
class Predicate:
    """`property operator value`."""

    name: Name
    operator: str
    value: Value
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { ... }`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { ... } where ...`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    predicate: Predicate
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where ...`."""

    type_name: Name
    predicate: Predicate
    span: Span = span_field()


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Mutation:
    """Statements in order: inserts and updates, or deletes, never both."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name: type` in the head of a query."""

    name: str
    type: ValueType
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Query:
    """One named query."""

    name: Name
    parameters: tuple[Parameter, ...]
    description: Literal | None
    instruction: Literal | None
    body: Read | Mutation
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of one source, in the order written."""

    queries: tuple[Query, ...]
    source: Source = field(compare=False, repr=False)
