"""The canonical shape of a schema: what is declared, without order, spelling and comments.

H1  Two sources with the same shape have the same hash, whatever their order, comments, white space and rename
    hints.
H2  A shape is plain data: it compares by value and becomes JSON without loss.
"""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.core.span import Span
from omnigraph.core.values import ValueType
from omnigraph.language.schema_ast import (
    COLUMN_ANNOTATIONS,
    Constraint,
    Edge,
    Embed,
    Interface,
    LiteralArgument,
    NameArgument,
    Node,
    Note,
    OwnedProperty,
    PropertyDeclaration,
    RangeArgument,
    SchemaFile,
    default_of,
    embed_of,
    external_of,
    note_order,
    notes_of,
    owned_properties,
    rename_hint,
    written_columns,
)


class DeclarationKind(StrEnum):
    """The three kinds of declarations, each with its own namespace, in the order they are listed."""

    INTERFACE = "interface"
    NODE = "node"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint over sorted columns; bounds for a range, a pattern for a check."""

    kind: str
    columns: tuple[str, ...]
    low: int | float | None = None
    high: int | float | None = None
    pattern: str | None = None

    def renamed(self, names: dict[str, str]) -> "Rule":
        """Return the rule under new names of its columns."""
        columns = tuple(sorted(names.get(column, column) for column in self.columns))
        return Rule(self.kind, columns, self.low, self.high, self.pattern)

    def __str__(self) -> str:
        """Return the rule as written in a body."""
        columns = ", ".join(self.columns)
        if self.kind == "range":
            low = "" if self.low is None else self.low
            return f"@range({columns}, {low}..{'' if self.high is None else self.high})"
        if self.pattern is not None:
            return f"@check({columns}, {json.dumps(self.pattern, ensure_ascii=False)})"
        return f"@{self.kind}({columns})"


@dataclass(frozen=True, slots=True)
class PropertyShape:
    """One property of a type.

    `written` says which of key, unique and index are written on the property itself; `satisfies` are the
    interfaces that require it. `default` is the `@default` with its value as written, `external` are the
    bases of `@external`, in order.
    """

    name: str
    type: ValueType
    notes: tuple[Note, ...]
    written: tuple[str, ...]
    embed: Embed | None
    is_declared: bool
    satisfies: tuple[str, ...]
    default: Note | None = None
    external: tuple[str, ...] = ()

    @property
    def external_note(self) -> Note | None:
        """The `@external` as data; one base stands alone, as of an annotation without a meaning."""
        if not self.external:
            return None
        return Note("external", self.external if len(self.external) > 1 else self.external[0])


@dataclass(frozen=True, slots=True)
class TypeShape:
    """One declaration; fields that do not apply to its kind are empty."""

    kind: DeclarationKind
    name: str
    notes: tuple[Note, ...]
    implements: tuple[str, ...]
    properties: tuple[PropertyShape, ...]
    rules: tuple[Rule, ...]
    source: str | None = None
    target: str | None = None
    cardinality: tuple[int, int | None] = (0, None)

    @property
    def property_names(self) -> tuple[str, ...]:
        """The names of the properties, in order."""
        return tuple(item.name for item in self.properties)


@dataclass(frozen=True, slots=True)
class SchemaShape:
    """All declarations: interfaces, nodes, edges, each by name."""

    types: tuple[TypeShape, ...]

    def of_kind(self, kind: DeclarationKind) -> tuple[TypeShape, ...]:
        """Return the declarations of one kind, by name."""
        return tuple(shape for shape in self.types if shape.kind is kind)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the shape as plain data."""
        return [_type_json(shape) for shape in self.types]

    @property
    def hash(self) -> str:
        """`sha256:<hex>` of the compact JSON (H1)."""
        text = json.dumps(self.to_json(), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Hint:
    """The old name that `@rename_from` gives; an injected one came with an interface's property."""

    old: str
    span: Span
    is_injected: bool = False


@dataclass(frozen=True, slots=True)
class DesiredSchema:
    """A shape, and the rename hints by declaration and by property, which only migration planning reads."""

    shape: SchemaShape
    file: SchemaFile
    type_hints: dict[tuple[DeclarationKind, str], Hint]
    property_hints: dict[tuple[DeclarationKind, str, str], Hint]


def desire(file: SchemaFile) -> DesiredSchema:
    """Return the shape and hints of a schema that passed all checks."""
    interfaces = {interface.name.text: interface for interface in file.interfaces}
    types: list[TypeShape] = []
    type_hints: dict[tuple[DeclarationKind, str], Hint] = {}
    property_hints: dict[tuple[DeclarationKind, str, str], Hint] = {}
    for declaration in file.declarations:
        kind, owned, shape = _shape(declaration, interfaces)
        types.append(shape)
        name = declaration.name.text
        annotations = () if isinstance(declaration, Interface) else declaration.annotations
        if old := rename_hint(annotations):
            type_hints[kind, name] = Hint(old, declaration.name.span)
        for item in owned:
            if old := rename_hint(item.item.annotations):
                hint = Hint(old, item.item.name.span, not item.is_declared)
                property_hints[kind, name, item.item.name.text] = hint
    order = list(DeclarationKind)
    types.sort(key=lambda shape: (order.index(shape.kind), shape.name))
    return DesiredSchema(SchemaShape(tuple(types)), file, type_hints, property_hints)


def _shape(
    declaration: Interface | Node | Edge, interfaces: dict[str, Interface]
) -> tuple[DeclarationKind, tuple[OwnedProperty, ...], TypeShape]:
    name = declaration.name.text
    match declaration:
        case Interface():
            owned = tuple(OwnedProperty(item, True, ()) for item in declaration.properties)
            shape = TypeShape(DeclarationKind.INTERFACE, name, (), (), _properties(owned), _rules(owned, ()))
            return DeclarationKind.INTERFACE, owned, shape
        case Node():
            owned = tuple(owned_properties(declaration, interfaces).values())
            implements = tuple(sorted({interface.text for interface in declaration.implements}))
            notes = notes_of(declaration.annotations)
            rules = _rules(owned, declaration.constraints)
            return (
                DeclarationKind.NODE,
                owned,
                TypeShape(DeclarationKind.NODE, name, notes, implements, _properties(owned), rules),
            )
        case Edge():
            owned = tuple(OwnedProperty(item, True, ()) for item in declaration.properties)
            cardinality = declaration.cardinality
            shape = TypeShape(
                DeclarationKind.EDGE,
                name,
                notes_of(declaration.annotations),
                (),
                _properties(owned),
                _rules(owned, declaration.constraints),
                declaration.source.text,
                declaration.target.text,
                (cardinality.low, cardinality.high) if cardinality else (0, None),
            )
            return DeclarationKind.EDGE, owned, shape


def _properties(owned: tuple[OwnedProperty, ...]) -> tuple[PropertyShape, ...]:
    shapes = [
        PropertyShape(
            name=property_.item.name.text,
            type=property_.item.type.value_type,
            notes=notes_of(property_.item.annotations),
            written=written_columns(property_.item),
            embed=embed_of(property_.item),
            is_declared=property_.is_declared,
            satisfies=property_.interfaces,
            default=default_of(property_.item),
            external=external_of(property_.item),
        )
        for property_ in owned
    ]
    return tuple(sorted(shapes, key=lambda shape: shape.name))


def _rules(owned: tuple[OwnedProperty, ...], constraints: tuple[Constraint, ...]) -> tuple[Rule, ...]:
    rules = {_rule(constraint) for constraint in constraints}
    for property_ in owned:
        rules |= _column_rules(property_.item)
    return tuple(sorted(rules, key=repr))


def _column_rules(item: PropertyDeclaration) -> set[Rule]:
    return {Rule(kind, (item.name.text,)) for kind in COLUMN_ANNOTATIONS if kind in written_columns(item)}


def _rule(constraint: Constraint) -> Rule:
    columns = {argument.name for argument in constraint.arguments if isinstance(argument, NameArgument)}
    low = high = pattern = None
    for argument in constraint.arguments:
        if isinstance(argument, RangeArgument):
            low, high = _bound(argument.low), _bound(argument.high)
        elif isinstance(argument, LiteralArgument):
            pattern = str(argument.value)
    return Rule(constraint.name, tuple(sorted(columns)), low, high, pattern)


def _bound(value: int | float | None) -> int | float | None:
    """Return an integral bound as an integer: `0..1` and `0.0..1.0` are one rule."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def type_json(type_: ValueType) -> dict[str, Any]:
    """Return a type as migration steps and shapes print it."""
    scalar = {"Vector": type_.dimension} if type_.is_vector else str(type_.scalar)
    values = None if type_.enum_values is None else list(type_.enum_values)
    return {"scalar": scalar, "nullable": type_.nullable, "list": type_.is_list, "enum_values": values}


def _type_json(shape: TypeShape) -> dict[str, Any]:
    return {
        "kind": str(shape.kind),
        "name": shape.name,
        "annotations": [note.to_json() for note in shape.notes],
        "implements": list(shape.implements),
        "properties": [_property_json(item) for item in shape.properties],
        "constraints": [
            [rule.kind, list(rule.columns), rule.low, rule.high, rule.pattern] for rule in shape.rules
        ],
        "from": shape.source,
        "to": shape.target,
        "cardinality": list(shape.cardinality),
    }


def _property_json(item: PropertyShape) -> dict[str, Any]:
    # These stand among the other annotations, where they stood before they had a meaning: hashes stay.
    meant = [note for note in (item.default, item.external_note) if note is not None]
    notes = sorted((*item.notes, *meant), key=note_order)
    return {
        "name": item.name,
        "type": type_json(item.type),
        "annotations": [note.to_json() for note in notes],
        "written": list(item.written),
        "embed": [item.embed.source, item.embed.model] if item.embed else None,
        "declared": item.is_declared,
        "satisfies": list(item.satisfies),
    }
