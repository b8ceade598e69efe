"""Conditions on properties, as clauses of a match block.

The language has no *or* and no test for null. Both follow from `not`: a block whose match fails because of a
null keeps its row, and what is in none of two complements is in one of the two sets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from omnigraph.agents.parameters import QueryParameters
from omnigraph.catalog.model import NodeType, Property
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import named

Test = Literal["=", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "starts_with", "is there"]


@dataclass(frozen=True, slots=True)
class PropertyTest:
    """What one property must be like. `!=` and `not in` also hold where it has no value."""

    name: str
    test: Test
    value: object


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of them holds."""

    parts: "tuple[WantedNodes, ...]"


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one of them holds."""

    parts: "tuple[WantedNodes, ...]"


@dataclass(frozen=True, slots=True)
class NoneOf:
    """Not one of them holds."""

    parts: "tuple[WantedNodes, ...]"


WantedNodes = PropertyTest | AllOf | OneOf | NoneOf

_WORDS: Mapping[str, Test] = {
    "$eq": "=",
    "$ne": "!=",
    "$lt": "<",
    "$lte": "<=",
    "$gt": ">",
    "$gte": ">=",
    "$in": "in",
    "$nin": "not in",
    "$contains": "contains",
    "$starts_with": "starts_with",
}


def wanted_of(given: Mapping[str, object] | None) -> AllOf:
    """Return what a filter says: `{"page": 3}`, `{"page": {"$gte": 3, "$lt": 9}}`, or nothing.

    Raises:
        BadRequest: it is no dict, or has an unknown word.
    """
    if given is None:
        return AllOf(())
    if not isinstance(given, Mapping):
        raise BadRequest(f"a filter must be a dict of properties, as in {{'page': 3}}, not {named(given)}")
    tests: list[WantedNodes] = []
    for name, value in given.items():
        if not isinstance(value, Mapping):
            tests.append(PropertyTest(name, "=", value))
            continue
        for word, operand in value.items():
            if word not in _WORDS:
                raise BadRequest(f"a filter has no '{word}': use one of {', '.join(_WORDS)}")
            tests.append(PropertyTest(name, _WORDS[word], operand))
    return AllOf(tuple(tests))


def clauses(wanted: WantedNodes, type_: NodeType, variable: str, parameters: QueryParameters) -> list[str]:
    """Return clauses that hold for the nodes that are wanted; `type_` must have a text as its key.

    Raises:
        BadRequest: the type has no such property.
    """
    match wanted:
        case PropertyTest():
            return [_test(wanted, type_, variable, parameters)]
        case AllOf(parts):
            return [text for part in parts for text in clauses(part, type_, variable, parameters)]
        case NoneOf(parts):
            return [_negated(part, type_, variable, parameters) for part in parts]
        case OneOf(parts):
            return [_negated(NoneOf(parts), type_, variable, parameters)]
        case _:
            assert_never(wanted)


def checked_property(type_: NodeType, name: object) -> Property:
    """Return a property that a condition may name (A2).

    Raises:
        BadRequest: the type has no such property.
    """
    found = type_.properties.get(name) if isinstance(name, str) else None
    if found is None:
        raise BadRequest(
            f"{type_.name} has no property {name!r} to filter by; it has {', '.join(type_.properties)}"
        )
    return found


def _negated(wanted: WantedNodes, type_: NodeType, variable: str, parameters: QueryParameters) -> str:
    """Return a block that holds where something does not; it has to name the node itself, not in a block."""
    inner = clauses(wanted, type_, variable, parameters)
    if all(text.startswith("not ") for text in inner):
        assert type_.key is not None
        inner = [
            f"{variable}.{type_.key[0]} starts_with {parameters.add('', 'String')}",
            *inner,
        ]  # always holds
    return f"not {{ {' '.join(inner)} }}"


def _test(wanted: PropertyTest, type_: NodeType, variable: str, parameters: QueryParameters) -> str:
    property_ = checked_property(type_, wanted.name)
    scalar = str(property_.type.scalar)
    column = f"{variable}.{property_.name}"
    match wanted.test:
        case "in" | "not in":
            items = list(wanted.value) if isinstance(wanted.value, Sequence | set | frozenset) else None
            if items is None or isinstance(wanted.value, str):
                raise BadRequest(
                    f"the filter on {wanted.name} needs a list of values, not {named(wanted.value)}"
                )
            within = f"{parameters.add(items, f'[{scalar}]')} contains {column}"
            return within if wanted.test == "in" else f"not {{ {within} }}"
        case "is there":  # null is not even equal to itself
            return f"{column} = {column}"
        case "!=":
            return f"not {{ {column} = {parameters.add(wanted.value, scalar)} }}"
        case "=" if property_.type.is_list:
            return f"{column} contains {parameters.add(wanted.value, scalar)}"
        case _:
            return f"{column} {wanted.test} {parameters.add(wanted.value, scalar)}"
