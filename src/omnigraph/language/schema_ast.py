"""What a schema file says, as written, and what its annotations mean.

Trees compare by content: spans are ignored, so a formatted file has the tree of the original.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from omnigraph.core.span import Source, Span
from omnigraph.core.values import Scalar, ValueType
from omnigraph.language.tree import Name, span_field

AnnotationValue = str | int | float | bool
DefaultValue = AnnotationValue | tuple[AnnotationValue, ...]

COLUMN_ANNOTATIONS = ("key", "unique", "index")  # the same as a one-column constraint in the body
TYPED_ANNOTATIONS = frozenset({*COLUMN_ANNOTATIONS, "default", "embed", "external", "rename_from"})


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
class ListArgument:
    """A list of literals, which only `@default` and `@external` take."""

    items: tuple[LiteralArgument, ...]
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
    argument: NameArgument | LiteralArgument | ListArgument | None
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


@dataclass(frozen=True, slots=True)
class Embed:
    """Where the vectors of a property come from."""

    source: str
    model: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Note:
    """An annotation as data: one that the catalog only carries along, a default, or the bases of references.

    Notes compare by their JSON, in which 1, 1.0 and true are three things.
    """

    name: str
    value: DefaultValue | None
    keywords: tuple[tuple[str, AnnotationValue], ...] = ()

    @property
    def canonical(self) -> str:
        """The text that distinguishes this note from others."""
        return json.dumps([self.name, self.value, sorted(json.dumps(pair) for pair in self.keywords)])

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same note."""
        return isinstance(other, Note) and self.canonical == other.canonical

    def __hash__(self) -> int:
        """Return a hash that fits the comparison."""
        return hash(self.canonical)

    def to_json(self) -> dict[str, Any]:
        """Return `{"name", "value"}`, with `kwargs` where there are any."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        document: dict[str, Any] = {"name": self.name, "value": value}
        if self.keywords:
            document["kwargs"] = dict(self.keywords)
        return document


def written_columns(item: PropertyDeclaration) -> tuple[str, ...]:
    """Return which of key, unique and index are written on a property."""
    names = {annotation.name for annotation in item.annotations}
    return tuple(name for name in COLUMN_ANNOTATIONS if name in names)


def embed_of(item: PropertyDeclaration) -> Embed | None:
    """Return the embed source of a property.

    An interface that no node implements may hold an annotation without a source, which has no effect.
    """
    annotation = find(item.annotations, "embed")
    if annotation is None:
        return None
    source = argument_text(annotation)
    if source is None:
        return None
    model = dict(annotation.keywords).get("model")
    return Embed(source, model if isinstance(model, str) else None)


def default_of(item: PropertyDeclaration) -> Note | None:
    """Return the `@default` of a property, with its value as written.

    An interface that no node implements may hold an annotation without a value, which has no effect.
    """
    annotation = find(item.annotations, "default")
    return None if annotation is None or annotation.argument is None else _note(annotation)


def external_of(item: PropertyDeclaration) -> tuple[str, ...]:
    """Return the bases that references of a property lie below, in order; none of one that holds bytes.

    An interface that no node implements may hold an annotation without a base, which has no effect.
    """
    annotation = find(item.annotations, "external")
    if annotation is None or not isinstance(annotation.argument, ListArgument):
        return ()
    return tuple(sorted({str(base.value) for base in annotation.argument.items}))


def rename_hint(annotations: tuple[Annotation, ...]) -> str | None:
    """Return the name given by `@rename_from`."""
    annotation = find(annotations, "rename_from")
    return None if annotation is None else argument_text(annotation)


def notes_of(annotations: tuple[Annotation, ...]) -> tuple[Note, ...]:
    """Return the annotations that mean nothing to the catalog, in a canonical order."""
    notes = {_note(annotation) for annotation in annotations if annotation.name not in TYPED_ANNOTATIONS}
    return tuple(sorted(notes, key=note_order))


def note_order(note: Note) -> str:
    """Return what notes are sorted by."""
    return note.canonical


def _note(annotation: Annotation) -> Note:
    value: DefaultValue | None
    match annotation.argument:
        case ListArgument(items):
            value = tuple(item.value for item in items)
        case LiteralArgument(literal):
            value = literal
        case _:
            value = argument_text(annotation)
    return Note(annotation.name, value, tuple(sorted(annotation.keywords, key=json.dumps)))


def find(annotations: tuple[Annotation, ...], name: str) -> Annotation | None:
    """Return the first annotation with a given name."""
    return next((annotation for annotation in annotations if annotation.name == name), None)


def argument_text(annotation: Annotation) -> str | None:
    """Return the positional argument where it is a name or a string."""
    match annotation.argument:
        case NameArgument(name):
            return name
        case LiteralArgument(str() as text):
            return text
        case _:
            return None


@dataclass(frozen=True, slots=True)
class OwnedProperty:
    """A property that a node has: declared by itself, or injected by interfaces."""

    item: PropertyDeclaration
    is_declared: bool
    interfaces: tuple[str, ...]


def owned_properties(node: Node, interfaces: dict[str, Interface]) -> dict[str, OwnedProperty]:
    """Return every property of a node by name: its own as written, then the injected ones.

    Unknown interfaces are skipped, and the first of two different declarations wins; the rules and the
    catalog report both.
    """
    suppliers: dict[str, list[str]] = {}
    injected: dict[str, PropertyDeclaration] = {}
    for name in sorted({implemented.text for implemented in node.implements}):
        for item in interfaces[name].properties if name in interfaces else ():
            suppliers.setdefault(item.name.text, []).append(name)
            injected.setdefault(item.name.text, item)
    owned: dict[str, OwnedProperty] = {}
    for item in node.properties:
        name = item.name.text
        owned.setdefault(name, OwnedProperty(item, True, tuple(suppliers.get(name, ()))))
    for name, item in injected.items():
        owned.setdefault(name, OwnedProperty(item, False, tuple(suppliers[name])))
    return owned
