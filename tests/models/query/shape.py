"""What the oracle speaks of: schemas, graphs and queries as plain values.

Nothing here comes from the package under test. A query is generated as these values, rendered to text for the
engine (`render.py`) and evaluated as it stands by the oracle (`oracle.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

Value = str | bool | int | float | date | datetime | list["Value"] | None

Cell = Any  # the value of a property or a column: its type is in the schema

ANONYMOUS = "_"
INTEGERS = ("I32", "I64", "U32", "U64")
FLOATS = ("F32", "F64")
NUMBERS = (*INTEGERS, *FLOATS)


# Schema


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a property or parameter; an enum is a String with members."""

    scalar: str
    is_list: bool = False
    is_nullable: bool = True
    members: tuple[str, ...] = ()
    dimension: int = 0
    index: str = ""  # what stands behind the type in the schema: "@index", "@key", "@unique"

    @property
    def is_number(self) -> bool:
        """A plain number."""
        return self.scalar in NUMBERS and not self.is_list and not self.dimension

    @property
    def is_string(self) -> bool:
        """A plain String or an enum."""
        return self.scalar == "String" and not self.is_list

    @property
    def is_orderable(self) -> bool:
        """A scalar with an order."""
        return not self.is_list and not self.dimension


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type; `body` holds its body constraints."""

    name: str
    key: tuple[str, ...]
    properties: Mapping[str, Type]
    body: str = ""


@dataclass(frozen=True, slots=True)
class EdgeType:
    """An edge type."""

    name: str
    source: str
    target: str
    properties: Mapping[str, Type] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Schema:
    """All types."""

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]

    def properties(self, type_name: str) -> Mapping[str, Type]:
        """Return the properties of a node or edge type; no two share a name here."""
        return (self.nodes.get(type_name) or self.edges[type_name]).properties


# Data


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node."""

    type_name: str
    id: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """An edge; `source` and `target` are ids."""

    type_name: str
    id: str
    source: str
    target: str
    values: Mapping[str, Value]


Entity = Node | Edge


@dataclass(frozen=True, slots=True)
class Data:
    """The content of a graph."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


# Expressions


@dataclass(frozen=True, slots=True)
class Property:
    """`$variable.name`."""

    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A bare node or edge variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter and what it is bound to; a query may use it several times."""

    name: str
    type: Type
    value: object


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal; a decimal is a float and an integer an int."""

    value: object


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`."""


@dataclass(frozen=True, slots=True)
class Alias:
    """The name of a projection, as an order key."""

    name: str


Operand = Property | Parameter | Literal | Now


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a property or a variable."""

    function: str
    argument: Property | Variable


@dataclass(frozen=True, slots=True)
class Nearest:
    """`nearest(field, query)` with a vector as query."""

    field: Property
    query: Parameter | Literal


@dataclass(frozen=True, slots=True)
class Bm25:
    """`bm25(field, query)`."""

    field: Property
    query: Parameter | Literal


@dataclass(frozen=True, slots=True)
class Rrf:
    """`rrf(first, second, k)`; no k means 60."""

    first: "Nearest | Bm25"
    second: "Nearest | Bm25"
    k: int | None = None


Rank = Nearest | Bm25 | Rrf
Expression = Operand | Variable | Alias | Aggregate | Rank


# Clauses


@dataclass(frozen=True, slots=True)
class Binding:
    """`$variable: Type { property: value, ... }`."""

    variable: str
    type_name: str
    matches: tuple[tuple[str, Operand], ...] = ()


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$left $edge_variable:edge{low,high} $right`; the edge by its declared name, written in any case."""

    left: str
    edge: str
    right: str
    edge_variable: str | None = None
    bounds: tuple[int, int] | None = None
    is_undirected: bool = False
    is_lower_case: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """`left op right`."""

    left: Operand
    operator: str
    right: Operand


@dataclass(frozen=True, slots=True)
class TextPredicate:
    """`search`, `match_text` or `fuzzy`; with `= true` behind it or not."""

    function: str
    field: Property
    query: Parameter | Literal
    edits: int | None = None
    is_compared: bool = False


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { ... }`."""

    clauses: tuple["Clause", ...]


Clause = Binding | Traversal | Filter | TextPredicate | Negation


@dataclass(frozen=True, slots=True)
class Projection:
    """An item of `return`."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Ordering:
    """An item of `order`."""

    expression: Expression
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A read."""

    parameters: tuple[Parameter, ...]
    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
