"""Schemas as data, and what a text means against the schema in force: planned without the engine.

A schema in force has numbers for types and properties, and a text has names and hints. `plan` finds for every
name of a text the number that it goes on with, and judges what changed (languages 2.4 and 2.5).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Kind = Literal["node", "edge"]
Scalar = Literal["String", "Bool", "I32", "I64", "F32", "F64", "enum"]
Value = str | int | float | bool | None
Planned = Literal["applied", "unchanged", "unsupported", "invalid"]

WIDER = {("I32", "I64"), ("I32", "F64"), ("F32", "F64")}  # old and new type of a property
I32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Property:
    """A property; `values` are those of an enum, `default` is for rows that do not mention it.

    `fill` is for rows that are older than the property: the default that it was added with. It stays whatever
    becomes of the default, and no text says it.
    """

    name: str
    scalar: Scalar
    is_nullable: bool = True
    values: frozenset[str] = frozenset()
    default: Value = None
    is_indexed: bool = False
    is_key: bool = False
    fill: Value = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Type:
    """A type in force; the ends of an edge are numbers of node types."""

    kind: Kind
    name: str
    properties: Mapping[int, Property]
    ends: tuple[int, int] | None = None

    @property
    def key(self) -> int | None:
        """The number of the property that is the id, if there is one."""
        return next((number for number, each in self.properties.items() if each.is_key), None)

    def number_of(self, name: str) -> int | None:
        """Return the number of the property with a name."""
        return next((number for number, each in self.properties.items() if each.name == name), None)


Schema = Mapping[int, Type]  # by the number of the type


@dataclass(frozen=True, slots=True)
class WantedProperty:
    """A property in a text; the hint says how it was called."""

    shape: Property
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class WantedType:
    """A type in a text; the ends of an edge are names."""

    kind: Kind
    name: str
    properties: tuple[WantedProperty, ...]
    ends: tuple[str, str] | None = None
    hint: str | None = None


Wanted = tuple[WantedType, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying a text must do; the schema in force stays unless it is applied."""

    outcome: Planned
    schema: Schema
    reasons: tuple[str, ...] = ()


class Invalid(Exception):
    """A text that is no schema, or whose hints name nothing."""


def wanted_of(schema: Schema) -> Wanted:
    """Return the text that describes a schema as it is."""
    return tuple(
        WantedType(
            each.kind,
            each.name,
            tuple(WantedProperty(shape) for shape in each.properties.values()),
            None if each.ends is None else (schema[each.ends[0]].name, schema[each.ends[1]].name),
        )
        for each in schema.values()
    )


def plan(accepted: Schema, wanted: Wanted, numbers: Iterator[int]) -> Plan:
    """Return what a text means for the schema in force; new types and properties take new numbers."""
    try:
        _compile(wanted)
        schema = _numbered(accepted, wanted, _matched_types(accepted, wanted), numbers)
    except Invalid as error:
        return Plan("invalid", accepted, (str(error),))
    kept = [(old, schema[number]) for number, old in accepted.items() if number in schema]
    reasons = [reason for old, new in kept for reason in _unsupported(old, new)]
    if reasons:
        return Plan("unsupported", accepted, tuple(reasons))
    return Plan("applied", schema) if schema != accepted else Plan("unchanged", accepted)


def takes(shape: Property, value: Value) -> bool:
    """Return whether a property takes a value."""
    if value is None:
        return shape.is_nullable
    if isinstance(value, bool):
        return shape.scalar == "Bool"
    if isinstance(value, str):
        return value in shape.values if shape.scalar == "enum" else shape.scalar == "String"
    if isinstance(value, float):
        return shape.scalar in {"F32", "F64"}
    return shape.scalar in {"I64", "F32", "F64"} or (shape.scalar == "I32" and abs(value) <= I32_MAX)


def broken_names(schema: Schema) -> list[str]:
    """Return names that two things have, and edge types whose ends are not there."""
    found = []
    seen = set[tuple[Kind, str]]()
    for each in schema.values():
        place = (each.kind, each.name.lower() if each.kind == "edge" else each.name)
        if place in seen:
            found.append(f"two {each.kind} types are called {each.name}")
        seen.add(place)
        names = [shape.name for shape in each.properties.values()]
        found += [f"two properties of {each.name}" for _ in range(len(names) - len(set(names)))]
        found += [f"{each.name} has lost an end" for end in each.ends or () if end not in schema]
    return found


# Texts


def _compile(wanted: Wanted) -> None:
    nodes = [each.name for each in wanted if each.kind == "node"]
    edges = [each.name.lower() for each in wanted if each.kind == "edge"]
    if len(set(nodes)) < len(nodes) or len(set(edges)) < len(edges):
        raise Invalid("a type is declared twice")
    for each in wanted:
        names = [item.shape.name for item in each.properties]
        if len(set(names)) < len(names):
            raise Invalid(f"{each.name} has a property twice")
        if any(end not in nodes for end in each.ends or ()):
            raise Invalid(f"an end of {each.name} is no node type")
        if any(item.shape.is_key and item.shape.is_nullable for item in each.properties):
            raise Invalid(f"the key of {each.name} may be null")
        for item in each.properties:
            if item.shape.default is not None and (
                item.shape.is_key or not takes(item.shape, item.shape.default)
            ):
                raise Invalid(f"{each.name}.{item.shape.name} does not take its default")


def _matched_types(accepted: Schema, wanted: Wanted) -> dict[tuple[Kind, str], int]:
    """Return the number with which each type of a text goes on, if it does, by kind and name."""
    found: dict[tuple[Kind, str], int] = {}
    for kind in ("node", "edge"):
        known = {each.name: number for number, each in accepted.items() if each.kind == kind}
        some = [each for each in wanted if each.kind == kind]
        matches = _match([(each.name, each.hint) for each in some], known)
        found |= {
            (each.kind, each.name): number for each, number in zip(some, matches, strict=True) if number
        }
    return found


def _match(names: Sequence[tuple[str, str | None]], known: Mapping[str, int]) -> list[int | None]:
    """Return what each name goes on with: the same name first, whatever its hint says."""
    found = []
    for name, hint in names:
        if name not in known and hint is not None and hint not in known:
            raise Invalid(f"the hint of {name} names {hint}, which is not there")
        found.append(known.get(name, known.get(hint or "")))
    taken = [each for each in found if each is not None]
    if len(set(taken)) < len(taken):
        raise Invalid("two declarations go on with the same one")
    return found


def _numbered(
    accepted: Schema, wanted: Wanted, types: Mapping[tuple[Kind, str], int], numbers: Iterator[int]
) -> Schema:
    """Return the schema that a text describes, with the numbers it goes on with and new ones."""
    every = {(each.kind, each.name): types.get((each.kind, each.name)) or next(numbers) for each in wanted}
    schema = {}
    for each in sorted(wanted, key=lambda each: every[each.kind, each.name]):
        number = every[each.kind, each.name]
        old = accepted.get(number)
        known = {} if old is None else {shape.name: item for item, shape in old.properties.items()}
        matches = _match([(item.shape.name, item.hint) for item in each.properties], known)
        properties = {
            match or next(numbers): replace(
                item.shape,
                fill=item.shape.default if old is None or match is None else old.properties[match].fill,
            )
            for item, match in zip(each.properties, matches, strict=True)
        }
        ends = each.ends and (every["node", each.ends[0]], every["node", each.ends[1]])
        schema[number] = Type(each.kind, each.name, dict(sorted(properties.items())), ends)
    return schema


# Changes


def _unsupported(old: Type, new: Type) -> Iterator[str]:
    """Say which changes of a type cannot be carried out."""
    if old.ends != new.ends:
        yield f"{new.name} has other ends"
    for number in old.properties.keys() | new.properties.keys():
        was, now = old.properties.get(number), new.properties.get(number)
        if was is None and now is not None:
            if now.is_key or (not now.is_nullable and now.default is None):
                yield f"{new.name}.{now.name} is new and required"
        elif was is not None and now is None:
            if was.is_indexed or was.is_key:
                yield f"{new.name}.{was.name} is dropped and has a constraint"
        elif was is not None and now is not None and not _is_wider(was, now):
            yield f"{new.name}.{was.name} cannot become what is wanted"


def _is_wider(was: Property, now: Property) -> bool:
    """Return whether a property keeps every value that it may have; its default may change."""
    return (
        (was.scalar == now.scalar or (was.scalar, now.scalar) in WIDER)
        and was.values <= now.values
        and now.is_nullable >= was.is_nullable
        and now.is_indexed >= was.is_indexed
        and was.is_key == now.is_key
    )
