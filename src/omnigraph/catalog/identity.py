"""Stable numbers for types, properties and tables, and how a new schema inherits them.

N1  One counter per graph issues every number; it only grows, and no number is issued twice.
N2  Names are not identity: a renamed type or property keeps its number, and a name that was dropped and added
    again gets a new one.
N3  A property remembers its *fill*: the default that it was added with, or null. That is the value of rows
    that were there before it, on every branch and whenever they get it; no change of the default changes it.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.catalog.shape import (
    DeclarationKind,
    DesiredSchema,
    Hint,
    PropertyShape,
    SchemaShape,
    TypeShape,
)
from omnigraph.core.diagnostics import Diagnostic, Severity
from omnigraph.core.ids import new_ulid
from omnigraph.core.limits import DIAGNOSTICS_MAX
from omnigraph.core.source_errors import CatalogError
from omnigraph.core.values import Scalar
from omnigraph.language.schema_ast import AnnotationValue, DefaultValue

TypeKey = tuple[DeclarationKind, str]
PropertyKey = tuple[DeclarationKind, str, str]


@dataclass(frozen=True, slots=True)
class AcceptedSchema:
    """A shape in which every type, property and table has a number, and every property its fill (N3)."""

    shape: SchemaShape
    domain: str
    next_id: int
    type_ids: dict[TypeKey, int]
    property_ids: dict[PropertyKey, int]
    incarnations: dict[TypeKey, int]
    fills: dict[PropertyKey, DefaultValue | None]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A desired schema matched to the accepted one.

    `types` and `properties` map every desired declaration to the accepted name it continues, or to `None` if
    it is new.
    """

    types: dict[TypeKey, str | None]
    properties: dict[PropertyKey, str | None]
    diagnostics: tuple[Diagnostic, ...]


def accept_first(desired: DesiredSchema, *, make_domain: Callable[[], str] = new_ulid) -> AcceptedSchema:
    """Number the first schema of a graph; rename hints have no effect."""
    nothing = AcceptedSchema(SchemaShape(()), make_domain(), 1, {}, {}, {}, {})
    types: dict[TypeKey, str | None] = {(shape.kind, shape.name): None for shape in desired.shape.types}
    properties: dict[PropertyKey, str | None] = {
        (shape.kind, shape.name, name): None for shape in desired.shape.types for name in shape.property_names
    }
    return inherit(nothing, desired, Resolution(types, properties, ()))


def inherit(
    accepted: AcceptedSchema, desired: DesiredSchema, resolution: Resolution, *, start: int | None = None
) -> AcceptedSchema:
    """Return the desired schema with what it inherits, numbers and fills, and fresh ones for what is new.

    Where branches have schemas of their own, `start` is the first number that none of them has.
    """
    counter = accepted.next_id if start is None else start
    type_ids: dict[TypeKey, int] = {}
    property_ids: dict[PropertyKey, int] = {}
    incarnations: dict[TypeKey, int] = {}
    fills: dict[PropertyKey, DefaultValue | None] = {}
    shapes = {
        (owner.kind, owner.name, item.name): item
        for owner in desired.shape.types
        for item in owner.properties
    }
    for type_key, old in resolution.types.items():
        if old is None:
            type_ids[type_key], counter = counter, counter + 1
        else:
            type_ids[type_key] = accepted.type_ids[type_key[0], old]
    for key in sorted(resolution.properties, key=lambda key: (type_ids[key[:2]], key[2])):
        old_property, old_owner = resolution.properties[key], resolution.types[key[:2]]
        if old_property is None or old_owner is None:
            property_ids[key], counter = counter, counter + 1
            fills[key] = added_fill(shapes[key])
        else:
            former = (key[0], old_owner, old_property)
            property_ids[key] = accepted.property_ids[former]
            fills[key] = _kept_fill(accepted.fills[former], shapes[key])
    for type_key in sorted(type_ids, key=type_ids.__getitem__):
        if type_key[0] is DeclarationKind.INTERFACE:
            continue
        old = resolution.types[type_key]
        if old is None:
            incarnations[type_key], counter = counter, counter + 1
        else:
            incarnations[type_key] = accepted.incarnations[type_key[0], old]
    return AcceptedSchema(
        desired.shape, accepted.domain, counter, type_ids, property_ids, incarnations, fills
    )


def added_fill(item: PropertyShape) -> DefaultValue | None:
    """Return what rows get that are there when a property is added: its default, as they hold it (N3).

    A wider type keeps the value that a narrow one rounded to.
    """
    value = None if item.default is None else item.default.value
    if value is None or item.type.scalar is not Scalar.F32:
        return value
    return tuple(_single(each) for each in value) if isinstance(value, tuple) else _single(value)


def _single(value: AnnotationValue) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def _kept_fill(fill: DefaultValue | None, item: PropertyShape) -> DefaultValue | None:
    """Return the fill of a property that stays (N3).

    A required one without a fill came with its type, so that no row lacks it; or an earlier build added it,
    which kept no fills, and took its default away. The next default is the only value then known for it.
    """
    return added_fill(item) if fill is None and not item.type.nullable else fill


def resolve(accepted: AcceptedSchema, desired: DesiredSchema) -> Resolution:
    """Match every desired declaration to an accepted one by name, then by hint.

    Raises:
        CatalogError: a hint names nothing that can be renamed, or something already taken.
    """
    return _Resolver(accepted, desired).resolve()


class _Resolver:
    def __init__(self, accepted: AcceptedSchema, desired: DesiredSchema) -> None:
        self.accepted = accepted
        self.desired = desired
        self.properties_of: dict[TypeKey, set[str]] = {}
        for kind, owner, name in accepted.property_ids:
            self.properties_of.setdefault((kind, owner), set()).add(name)
        self.notes: list[Diagnostic] = []
        self.faults: list[Diagnostic] = []

    def resolve(self) -> Resolution:
        types: dict[TypeKey, str | None] = {}
        properties: dict[PropertyKey, str | None] = {}
        for kind in DeclarationKind:
            for name, old in self.match_types(kind).items():
                types[kind, name] = old
        for shape in self.desired.shape.types:
            for name, old in self.match_properties(shape, types[shape.kind, shape.name]).items():
                properties[shape.kind, shape.name, name] = old
        if self.faults:
            self.faults.sort(key=lambda fault: fault.span.start if fault.span else 0)
            raise CatalogError(self.faults[:DIAGNOSTICS_MAX], self.desired.file.source)
        return Resolution(types, properties, tuple(self.notes))

    def match_types(self, kind: DeclarationKind) -> dict[str, str | None]:
        names = [shape.name for shape in self.desired.shape.of_kind(kind)]
        known = {name for other, name in self.accepted.type_ids if other is kind}
        hints = {name: hint for (other, name), hint in self.desired.type_hints.items() if other is kind}
        return self.match(names, known, hints, lambda hint: self.type_fault(kind, hint))

    def match_properties(self, shape: TypeShape, old_owner: str | None) -> dict[str, str | None]:
        kind, owner = shape.kind, shape.name
        known = set() if old_owner is None else self.properties_of.get((kind, old_owner), set())
        hints = {}
        for name in shape.property_names:
            hint = self.desired.property_hints.get((kind, owner, name))
            # A hint that an interface injects applies only to nodes that had the old name.
            if hint and not (hint.is_injected and hint.old not in known):
                hints[name] = hint
        names = list(shape.property_names)
        return self.match(names, known, hints, lambda hint: self.property_fault(shape, old_owner, hint))

    def match(
        self, names: list[str], known: set[str], hints: dict[str, Hint], fault: Callable[[Hint], str]
    ) -> dict[str, str | None]:
        """Match names of one namespace: the same name first, then hints."""
        taken: dict[str, str] = {name: name for name in names if name in known}
        matched: dict[str, str | None] = {}
        for name in names:
            hint = hints.get(name)
            if name in known:
                matched[name] = name
                if hint:
                    message = (
                        f"'{name}' exists already: ignored exact match hint @rename_from(\"{hint.old}\")"
                    )
                    self.notes.append(Diagnostic(message, hint.span, severity=Severity.INFO))
            elif hint is None:
                matched[name] = None
            elif hint.old not in known:
                self.faults.append(Diagnostic(fault(hint), hint.span))
                matched[name] = None
            elif hint.old in taken:
                message = (
                    f"'{name}' cannot be renamed from '{hint.old}': '{taken[hint.old]}' already continues it"
                )
                self.faults.append(Diagnostic(message, hint.span))
                matched[name] = None
            else:
                matched[name] = hint.old
                taken[hint.old] = name
        return matched

    def type_fault(self, kind: DeclarationKind, hint: Hint) -> str:
        others = [str(other) for other, name in self.accepted.type_ids if name == hint.old]
        if others:
            return f"@rename_from(\"{hint.old}\"): '{hint.old}' is a type of kind {others[0]}, not {kind}"
        return f'@rename_from("{hint.old}"): no {kind} of that name exists'

    def property_fault(self, shape: TypeShape, old_owner: str | None, hint: Hint) -> str:
        if old_owner is None:
            return f"@rename_from(\"{hint.old}\"): '{shape.name}' is new and has no property to rename"
        elsewhere = sorted(key[1] for key in self.accepted.property_ids if key[2] == hint.old)
        if elsewhere:
            return (
                f"@rename_from(\"{hint.old}\") moves across owners: '{hint.old}' belongs to '{elsewhere[0]}'"
            )
        return f"@rename_from(\"{hint.old}\"): {shape.kind} '{old_owner}' has no property of that name"
