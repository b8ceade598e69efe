"""A reader of the TypeScript that `omnigraph codegen` writes: interfaces, and whether a JSON value fits one.

It takes less of TypeScript than there is, and nothing that TypeScript would refuse.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

_TOKENS = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*(?:(?!\*/).)*\*/)
    |(?P<text>"(?:[^"\\\n]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<sign>[{}()|:;?]|\[\])""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_PRIMITIVES = ("string", "number", "boolean", "null")
# What no interface can be called: types that are there already, and words of the language.
_WORDS = """any bigint never object symbol undefined unknown void
break case catch class const continue debugger default delete do else enum export extends false finally for
function if implements import in instanceof interface let new package private protected public return static
super switch this throw true try typeof var while with yield await"""
_TAKEN = frozenset((*_PRIMITIVES, *_WORDS.split()))
EXACT = 2**53 - 1  # the integers up to which a `number` is what was written


class NotTypeScriptError(ValueError):
    """A text that a compiler would refuse, or that this reader does not take."""


@dataclass(frozen=True)
class Named:
    """A type of the language, or an interface."""

    name: str


@dataclass(frozen=True)
class Literal:
    """The type of one text."""

    value: str


@dataclass(frozen=True)
class ListOf:
    """An array."""

    item: "Type"


@dataclass(frozen=True)
class OneOf:
    """A union."""

    types: tuple["Type", ...]


Type: TypeAlias = Named | Literal | ListOf | OneOf


@dataclass(frozen=True)
class Member:
    """A member of an interface."""

    type: Type
    is_optional: bool


Interfaces = Mapping[str, Mapping[str, Member]]


def interfaces_of(text: str) -> Interfaces:
    """Return the interfaces of a module, by their names.

    Raises:
        NotTypeScriptError: a compiler would refuse it.
    """
    reader, found = _Reader(text), dict[str, dict[str, Member]]()
    while reader.has_more:
        reader.take("export")
        reader.take("interface")
        name = reader.name()
        if name in _TAKEN or name in found:
            raise NotTypeScriptError(f"no interface can be called {name} here")
        found[name] = reader.members()
    for members in found.values():
        for member in members.values():
            for name in _names(member.type):
                if name not in found and name not in _PRIMITIVES:
                    raise NotTypeScriptError(f"there is no type {name}")
    return found


def misfit(value: object, type_: Type, interfaces: Interfaces, place: str = "") -> str | None:
    """Return where a JSON value is not of a type; None where it is."""
    match type_:
        case OneOf(types):
            found = [misfit(value, one, interfaces, place) for one in types]
            return None if None in found else f"{place} is {value!r}"
        case ListOf(item):
            if not isinstance(value, list):
                return f"{place} is no array"
            return next(filter(None, (misfit(one, item, interfaces, f"{place}[]") for one in value)), None)
        case Literal(text):
            return None if value == text else f"{place} is {value!r}"
        case Named(name) if name in interfaces:
            return _misfit_of(value, interfaces[name], interfaces, place)
        case Named(name):
            return None if _is_primitive(value, name) else f"{place} is {value!r}, no {name}"


def _misfit_of(
    value: object, members: Mapping[str, Member], interfaces: Interfaces, place: str
) -> str | None:
    if not isinstance(value, dict):
        return f"{place} is no object"
    for name, member in members.items():
        if name not in value and not member.is_optional:
            return f"{place}.{name} is missing"
        if name in value and (wrong := misfit(value[name], member.type, interfaces, f"{place}.{name}")):
            return wrong
    return next((f"{place}.{name} is not declared" for name in value if name not in members), None)


def _is_primitive(value: object, name: str) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case _:
            is_exact = isinstance(value, float) or (isinstance(value, int) and abs(value) <= EXACT)
            return is_exact and not isinstance(value, bool)


def _names(type_: Type) -> Iterator[str]:
    match type_:
        case Named(name):
            yield name
        case ListOf(item):
            yield from _names(item)
        case OneOf(types):
            for one in types:
                yield from _names(one)
        case Literal():
            pass


class _Reader:
    """The words of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self._words = list(_words_of(text))

    @property
    def has_more(self) -> bool:
        return bool(self._words)

    def take(self, *wanted: str) -> str:
        """Return the next word, which must be one of these."""
        if not self._words or self._words[0] not in wanted:
            raise NotTypeScriptError(f"expected {' or '.join(wanted)} before {' '.join(self._words[:5])}")
        return self._words.pop(0)

    def takes(self, wanted: str) -> bool:
        """Return whether the next word is this one, which is then taken."""
        if self._words[:1] != [wanted]:
            return False
        self._words.pop(0)
        return True

    def name(self) -> str:
        """Return the next word, which must be a name."""
        if not self._words or not re.match(r"[A-Za-z_$]", self._words[0]):
            raise NotTypeScriptError(f"expected a name before {' '.join(self._words[:5])}")
        return self._words.pop(0)

    def members(self) -> dict[str, Member]:
        """Return the members of an interface, each with a name of its own."""
        found = dict[str, Member]()
        self.take("{")
        while not self.takes("}"):
            name = self._text() if self._words[:1] and self._words[0].startswith('"') else self.name()
            if name in found:
                raise NotTypeScriptError(f"{name} is declared twice")
            is_optional = self.takes("?")
            self.take(":")
            found[name] = Member(self._type(), is_optional)
            self.take(";")
        return found

    def _type(self) -> Type:
        types = [self._part()]
        while self.takes("|"):
            types.append(self._part())
        return types[0] if len(types) == 1 else OneOf(tuple(types))

    def _part(self) -> Type:
        found: Type
        if self.takes("("):
            found = self._type()
            self.take(")")
        elif self._words[:1] and self._words[0].startswith('"'):
            found = Literal(self._text())
        else:
            found = Named(self.name())
        while self.takes("[]"):
            found = ListOf(found)
        return found

    def _text(self) -> str:
        return str(json.loads(self._words.pop(0)))


def _words_of(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        found = _TOKENS.match(text, place)
        if found is None:
            raise NotTypeScriptError(f"what is {text[place : place + 20]!r}?")
        place = found.end()
        if found.lastgroup != "blank":
            yield found[0]
