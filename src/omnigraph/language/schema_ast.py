"""What a schema file says, as written.

Trees compare by content: spans are ignored, so a formatted file has the tree of the original.
"""

from dataclasses import dataclass, field

from omnigraph.core.span import Source, Span
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.tree import Name, span_field

AnnotationValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class NameArgument:
    """A bare name given to an annotation or constraint."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class LiteralArgument:
    """A literal given to an annotation or constraint."""

    value: AnnotationValue
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class RangeArgument:
    """Inclusive bounds, at least one of which is given."""

    low: int | float | None
    high: int | float | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name(argument, keyword=literal)` on a declaration or property."""

    name: str
    argument: NameArgument | LiteralArgument | None
    keywords: tuple[tuple[str, AnnotationValue], ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Constraint:
    """`@key(a, b)` and the like, on its own line in a body."""

    name: str
    arguments: tuple[NameArgument | LiteralArgument | RangeArgument, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written; enum values keep their order here, while the value type sorts them."""

    scalar: Scalar
    nullable: bool
    is_list: bool
    enum_values: tuple[Name, ...] | None
    dimension: int | None
    span: Span = span_field()

    @property
    def value_type(self) -> ValueType:
        """The type that is meant."""
        values = None if self.enum_values is None else tuple(sorted(v.text for v in self.enum_values))
        return ValueType(self.scalar, self.nullable, self.is_list, values, self.dimension)


@dataclass(frozen=True, slots=True)
class PropertyDeclaration:
    """`name: type @annotation`."""

    name: Name
    type: TypeName
    annotations: tuple[Annotation, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many edges a source node may have; `high` is `None` when unbounded."""

    low: int
    high: int | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Interface:
    """Properties that several nodes share."""

    name: Name
    properties: tuple[PropertyDeclaration, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Node:
    """A node type."""

    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    body: tuple[PropertyDeclaration | Constraint, ...]
    span: Span = span_field()

    @property
    def properties(self) -> tuple[PropertyDeclaration, ...]:
        """The properties declared here, without those of interfaces."""
        return tuple(item for item in self.body if isinstance(item, PropertyDeclaration))

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints written on their own lines."""
        return tuple(item for item in self.body if isinstance(item, Constraint))


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge type from one node type to another."""

    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None
    annotations: tuple[Annotation, ...]
    body: tuple[PropertyDeclaration | Constraint, ...]
    span: Span = span_field()

    @property
    def properties(self) -> tuple[PropertyDeclaration, ...]:
        """The properties of the edge."""
        return tuple(item for item in self.body if isinstance(item, PropertyDeclaration))

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints written on their own lines."""
        return tuple(item for item in self.body if isinstance(item, Constraint))


Declaration = Interface | Node | Edge


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """The declarations of one source, in the order written."""

    declarations: tuple[Declaration, ...]
    source: Source = field(compare=False, repr=False)

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """The interfaces, in the order written."""
        return tuple(d for d in self.declarations if isinstance(d, Interface))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The node types, in the order written."""
        return tuple(d for d in self.declarations if isinstance(d, Node))

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edge types, in the order written."""
        return tuple(d for d in self.declarations if isinstance(d, Edge))
