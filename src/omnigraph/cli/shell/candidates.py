"""What may be typed next: keywords, types, properties, branches and names of the session.

The catalog decides. A variable that the text binds to a type offers that type's properties; one that it does
not bind offers all of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog
from omnigraph.cli.shell.session import COMMANDS, FORMATS
from omnigraph.cli.shell.statement import COMMAND_MARK

KEYWORDS = (
    *("and", "as", "asc", "avg", "bm25", "count", "delete", "desc", "false", "fuzzy", "insert", "limit"),
    *("match", "match_text", "max", "min", "nearest", "not", "null", "order", "query", "return", "rrf"),
    *("search", "set", "sum", "true", "update", "where"),
)
_WORD = re.compile(r"\\?\w*$")
_ACCESS = re.compile(r"\$(\w+)\.\w*$")
_INSIDE = re.compile(r"\b([A-Z]\w*)\s*(?:set\s*)?\{[^{}]*$")


@dataclass(frozen=True, slots=True)
class Names:
    """Everything that can be offered."""

    catalog: Catalog
    branches: tuple[str, ...]
    kept: tuple[str, ...]


def candidates(text: str, names: Names) -> tuple[str, list[str]]:
    """Return the word before the cursor, and what it may become."""
    found = _WORD.search(text)
    word = "" if found is None else found[0]
    command, blank, _ = text.lstrip().partition(" ")
    if command.startswith(COMMAND_MARK):
        argument = text.lstrip()[len(command) + 1 :]
        if not blank:
            return command, _beginning(command, (f"{COMMAND_MARK}{name}" for name in COMMANDS))
        if command == "\\branch":
            return argument, _beginning(argument, names.branches)
        if command == "\\format":
            return argument, _beginning(argument, FORMATS)
        if command == "\\describe":
            return argument, _beginning(argument, _types(names.catalog))
    return word, _beginning(word, _words(text, word, names))


def _words(text: str, word: str, names: Names) -> Iterable[str]:
    access = _ACCESS.search(text)
    if access is not None:
        bound = re.search(rf"\${re.escape(access[1])}\s*:\s*([A-Z]\w*)", text)
        return _properties(names.catalog, bound[1] if bound else None)
    if word[:1].isupper():
        return _types(names.catalog)
    inside = _INSIDE.search(text)
    own = () if inside is None else _properties(names.catalog, inside[1])
    edges = (name[0].lower() + name[1:] for name in names.catalog.edges)
    everything = (*own, *KEYWORDS, *edges, *names.kept)
    return everything if word else (*everything, *_types(names.catalog))


def _types(catalog: Catalog) -> list[str]:
    return [type_.name for type_ in catalog.types]


def _properties(catalog: Catalog, type_name: str | None) -> list[str]:
    """Return the properties of a type, or of all if there is no such type."""
    known = [type_ for type_ in catalog.types if type_.name == type_name] or catalog.types
    return [*dict.fromkeys(name for type_ in known for name in type_.properties), "id"]


def _beginning(word: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(word)})
