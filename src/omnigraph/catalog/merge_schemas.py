"""Three schemas to one: what two branches did to the schema that they have in common.

M1  Types and properties are matched by their numbers: a rename is a change of one thing, and two things of
    one name that were added on two sides are two things.
M2  What one side changed is taken; what both changed alike agrees; what both changed differently is a
    conflict, and so is a change of something that the other side dropped. All conflicts are found.
M3  Values that two sides added to an enum are all taken: neither takes anything away.
M4  The result is read as any schema is: what does not fit together is a conflict, never an accepted schema.
M5  A fill is nobody's change: it is what the base says, or else whoever has the property. Where one side
    lacks a required property without a fill, nobody knows what its rows have, and that is a conflict.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from omnigraph.catalog.build import reread_schema
from omnigraph.catalog.identity import AcceptedSchema, PropertyKey, TypeKey
from omnigraph.catalog.render import render_schema
from omnigraph.catalog.shape import DeclarationKind, PropertyShape, Rule, SchemaShape, TypeShape
from omnigraph.core.source_errors import CatalogError, ParseError
from omnigraph.core.span import Source
from omnigraph.core.values import ValueType
from omnigraph.language.schema_ast import DefaultValue

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class SchemaConflict:
    """A type or property about which two schemas disagree; `table_key` is that of its type."""

    table_key: str
    property: str | None
    message: str


@dataclass(frozen=True, slots=True)
class MergedSchemas:
    """The schema that two sides come to, if they agree, and what they disagree about."""

    accepted: AcceptedSchema | None
    text: str
    conflicts: tuple[SchemaConflict, ...]


def merge_schemas(base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema) -> MergedSchemas:
    """Return the schema that has what both sides did to the base (M1, M2)."""
    merging = _Merging(_numbered(base), _numbered(ours), _numbered(theirs))
    types = list(merging.types())
    if merging.conflicts:
        return MergedSchemas(None, "", tuple(merging.conflicts))
    shape = _named(types)
    text = render_schema(shape)
    try:
        desired = reread_schema(Source(text, "the merged schema"))
    except (ParseError, CatalogError) as error:  # M4
        return MergedSchemas(None, text, (SchemaConflict("schema", None, str(error)),))
    type_ids: dict[TypeKey, int] = {(item.kind, item.shape.name): item.id for item in types}
    property_ids: dict[PropertyKey, int] = {
        (item.kind, item.shape.name, found.shape.name): number
        for item in types
        for number, found in item.properties.items()
    }
    incarnations = {
        (item.kind, item.shape.name): item.incarnation for item in types if item.incarnation is not None
    }
    next_id = max(ours.next_id, theirs.next_id)
    fills: dict[PropertyKey, DefaultValue | None] = {
        (item.kind, item.shape.name, found.shape.name): found.fill
        for item in types
        for found in item.properties.values()
    }
    accepted = AcceptedSchema(
        desired.shape, base.domain, next_id, type_ids, property_ids, incarnations, fills
    )
    return MergedSchemas(accepted, text, ())


@dataclass(frozen=True, slots=True)
class _Property:
    """A property; names of other properties and of interfaces are numbers."""

    shape: PropertyShape
    embed_source: int | None
    satisfies: frozenset[int]
    fill: DefaultValue | None

    @property
    def meaning(self) -> object:
        """All that it says, in numbers."""
        embed = self.shape.embed and (self.embed_source, self.shape.embed.model)
        return replace(self.shape, embed=None, satisfies=()), embed, self.satisfies


@dataclass(frozen=True, slots=True)
class _Rule:
    rule: Rule  # without its columns
    columns: frozenset[int | str]


@dataclass(frozen=True, slots=True)
class _Type:
    """A type; names of other types and of its properties are numbers."""

    kind: DeclarationKind
    id: int
    incarnation: int | None
    shape: TypeShape  # its properties, rules and the names of other types do not count
    ends: tuple[int | None, int | None]
    implements: frozenset[int]
    rules: frozenset[_Rule]
    properties: Mapping[int, _Property]

    @property
    def own(self) -> tuple[object, ...]:
        """What it says of itself, apart from its properties."""
        shape = self.shape
        return shape.name, shape.notes, shape.cardinality, self.ends, self.implements, self.rules

    @property
    def meaning(self) -> object:
        """All that it says, in numbers: other types and properties may have other names."""
        return self.own, {number: item.meaning for number, item in self.properties.items()}


_Numbered = Mapping[int, _Type]


def _numbered(schema: AcceptedSchema) -> _Numbered:
    ids = schema.type_ids
    found: dict[int, _Type] = {}
    for shape in schema.shape.types:
        key = (shape.kind, shape.name)
        numbers = {item.name: schema.property_ids[*key, item.name] for item in shape.properties}
        source, target = (
            None if end is None else ids[DeclarationKind.NODE, end] for end in (shape.source, shape.target)
        )
        found[ids[key]] = _Type(
            shape.kind,
            ids[key],
            schema.incarnations.get(key),
            shape,
            (source, target),
            frozenset(ids[DeclarationKind.INTERFACE, name] for name in shape.implements),
            frozenset(
                _Rule(replace(rule, columns=()), frozenset(numbers.get(name, name) for name in rule.columns))
                for rule in shape.rules
            ),
            {
                numbers[item.name]: _Property(
                    item,
                    None if item.embed is None else numbers.get(item.embed.source),
                    frozenset(ids[DeclarationKind.INTERFACE, name] for name in item.satisfies),
                    schema.fills[*key, item.name],
                )
                for item in shape.properties
            },
        )
    return found


@dataclass(slots=True)
class _Merging:
    base: _Numbered
    ours: _Numbered
    theirs: _Numbered
    conflicts: list[SchemaConflict] = field(default_factory=list)

    def types(self) -> Iterator[_Type]:
        """Yield the types that the result has."""
        for number in sorted(self.base.keys() | self.ours.keys() | self.theirs.keys()):
            base, ours, theirs = self.base.get(number), self.ours.get(number), self.theirs.get(number)
            if ours is not None and theirs is not None:
                yield self.both(f"{ours.kind}:{ours.shape.name}", base, ours, theirs)
                continue
            left = ours or theirs
            if left is None:
                continue
            if base is None:
                yield left
            elif left.meaning != base.meaning:
                key = f"{left.kind}:{left.shape.name}"
                self.refuse(key, None, "one side changed the type, the other dropped it")

    def both(self, key: str, base: _Type | None, ours: _Type, theirs: _Type) -> _Type:
        """Return a type that both sides have."""
        chosen = _three_way(base and base.own, ours.own, theirs.own)
        if chosen is None:
            merged = self.by_part(key, base, ours, theirs)
        else:
            merged = ours if chosen == ours.own else theirs
        return replace(merged, properties=dict(self.properties(key, base, ours, theirs)))

    def by_part(self, key: str, base: _Type | None, ours: _Type, theirs: _Type) -> _Type:
        """Return a type whose name, texts or rules both sides changed, each of them something else."""
        if base is None:
            self.refuse(key, None, "both sides added the type, in different ways")
            return ours
        name = _three_way(base.shape.name, ours.shape.name, theirs.shape.name)
        notes = _three_way(base.shape.notes, ours.shape.notes, theirs.shape.notes)
        if name is None or notes is None:
            self.refuse(key, None, "both sides renamed or described the type, in different ways")
            return ours
        rules = (ours.rules & theirs.rules) | (ours.rules - base.rules) | (theirs.rules - base.rules)
        return replace(ours, shape=replace(ours.shape, name=name, notes=notes), rules=rules)

    def properties(
        self, key: str, base: _Type | None, ours: _Type, theirs: _Type
    ) -> Iterator[tuple[int, _Property]]:
        before = {} if base is None else base.properties
        names: dict[str, int] = {}
        for number in sorted(before.keys() | ours.properties.keys() | theirs.properties.keys()):
            found = self.property(
                key, before.get(number), ours.properties.get(number), theirs.properties.get(number)
            )
            if found is None:
                continue
            if names.setdefault(found.shape.name, number) != number:
                self.refuse(key, found.shape.name, "both sides have added a property of this name")
            yield number, found

    def property(
        self, key: str, base: _Property | None, ours: _Property | None, theirs: _Property | None
    ) -> _Property | None:
        """Return what becomes of one property; None if it is not in the result."""
        if ours is not None and theirs is not None:
            return self.both_have(key, ours.shape.name, base, ours, theirs)
        left = ours or theirs
        if left is None:
            return None
        if base is None:
            if left.fill is None and not left.shape.type.nullable:  # M5
                message = (
                    "nobody knows what rows of the side that lacks this required property have for it; "
                    "give it a @default where it is"
                )
                self.refuse(key, left.shape.name, message)
            return left
        if left.meaning != base.meaning:
            self.refuse(key, left.shape.name, "one side changed the property, the other dropped it")
        return None

    def both_have(
        self, key: str, name: str, base: _Property | None, ours: _Property, theirs: _Property
    ) -> _Property:
        """Return a property that both sides have: each part of it as whoever changed it has it."""
        if base is None:
            if ours.meaning != theirs.meaning:
                self.refuse(key, name, "both sides added the property, in different ways")
            return ours
        parts: dict[str, object] = {}
        for part in fields(PropertyShape):
            was, here, there = (getattr(side.shape, part.name) for side in (base, ours, theirs))
            chosen = _three_way(was, here, there)
            if chosen is None and part.name == "type":
                chosen = _type_of_both(was, here, there)
            if chosen is None and (was, here, there) != (None, None, None):
                self.refuse(key, name, f"both sides changed its {part.name}, in different ways")
            parts[part.name] = chosen
        source = ours.embed_source if theirs.embed_source == base.embed_source else theirs.embed_source
        satisfies = ours.satisfies if theirs.satisfies == base.satisfies else theirs.satisfies
        is_told = base.fill is not None or base.shape.type.nullable
        fill = base.fill if is_told else _three_way(None, ours.fill, theirs.fill)  # M5
        return _Property(replace(ours.shape, **parts), source, satisfies, fill)  # type: ignore[arg-type]

    def refuse(self, key: str, name: str | None, message: str) -> None:
        self.conflicts.append(SchemaConflict(key, name, message))


def _three_way(base: Part, ours: Part, theirs: Part) -> Part | None:
    """Return what two sides come to; None if they disagree."""
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def _type_of_both(base: ValueType, ours: ValueType, theirs: ValueType) -> ValueType | None:
    """Return a type of which each side changed another part, with the values that both added (M3)."""
    parts: dict[str, object] = {}
    for part in fields(ValueType):
        was, here, there = (getattr(side, part.name) for side in (base, ours, theirs))
        if part.name == "enum_values" and all((was, here, there)) and set(was) <= set(here) & set(there):
            parts[part.name] = tuple(sorted({*here, *there}))
        elif was == here == there:
            parts[part.name] = was
        else:
            parts[part.name] = _three_way(was, here, there)
            if parts[part.name] is None:
                return None
    return ValueType(**parts)  # type: ignore[arg-type]


def _named(types: list[_Type]) -> SchemaShape:
    """Return types with names in place of numbers."""
    names = {item.id: item.shape.name for item in types}
    shapes = [_named_type(item, names) for item in types]
    order = list(DeclarationKind)
    shapes.sort(key=lambda shape: (order.index(shape.kind), shape.name))
    return SchemaShape(tuple(shapes))


def _named_type(item: _Type, names: Mapping[int, str]) -> TypeShape:
    columns: dict[int | str, str] = {number: found.shape.name for number, found in item.properties.items()}
    properties = [
        replace(
            found.shape,
            embed=None
            if found.shape.embed is None
            else replace(
                found.shape.embed,
                source=columns.get(found.embed_source or "", found.shape.embed.source),
            ),
            satisfies=tuple(sorted(names[number] for number in found.satisfies if number in names)),
        )
        for found in item.properties.values()
    ]
    source, target = (None if end is None else names.get(end, "?") for end in item.ends)
    rules = [
        replace(rule.rule, columns=tuple(sorted(columns.get(column, str(column)) for column in rule.columns)))
        for rule in item.rules
    ]
    return replace(
        item.shape,
        properties=tuple(sorted(properties, key=lambda shape: shape.name)),
        rules=tuple(sorted(rules, key=repr)),
        implements=tuple(sorted(names[number] for number in item.implements if number in names)),
        source=source,
        target=target,
    )
