"""One mapping of a configuration file: typed values, and errors that name the file, the line and the key.

A reader asks for the keys it knows and then calls `end`, which warns of each of the others. So the list of
known keys is the reader itself, and cannot differ from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NoReturn

from omnigraph.core.errors import BadRequest
from omnigraph.core.nearest import nearest_name
from omnigraph.core.yaml_text import key_line, read_placed_yaml

_KINDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


class Section:
    """A mapping of a file, with the way that leads to it; absent mappings are empty."""

    def __init__(self, file: Path, way: str, members: object, warnings: list[str]) -> None:
        """Take the file, the dotted way from its top, the mapping itself and the list of warnings to add to.

        Raises:
            BadRequest: it is not a mapping.
        """
        self.file = file
        self._way, self._warnings = way, warnings
        self._asked: set[object] = set()
        if not isinstance(members, Mapping | None):
            raise BadRequest(f"{file}: {way or 'the file'} must be a mapping of keys to values")
        self._members: Mapping[object, object] = members or {}

    @staticmethod
    def of_file(file: Path, warnings: list[str]) -> "Section":
        """Return the top of a file.

        Raises:
            BadRequest: the file cannot be read, is not YAML, or is not a mapping.
        """
        return Section(file, "", read_placed_yaml(file), warnings)

    def has(self, key: str) -> bool:
        """Return whether a key has a value."""
        return self._ask(key) is not None

    def mentions(self, key: str) -> bool:
        """Return whether a key is there, perhaps without a value."""
        return key in self._members

    def text(self, key: str) -> str | None:
        """Return a text, or None if the key is absent."""
        value = self._ask(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.refuse(key, "must be a text" if isinstance(value, str) else f"{_must_be(value)}: quote it")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return a list of texts; one text alone is a list of one."""
        value = self._ask(key)
        if value is None:
            return None
        if isinstance(value, str):
            return (str(value),)
        if not isinstance(value, Sequence) or not all(isinstance(item, str) and item for item in value):
            self.refuse(key, "must be a list of texts")
        return tuple(str(item) for item in value)

    def number(self, key: str, *, least: int, most: int) -> int | None:
        """Return a whole number within bounds, or None if the key is absent."""
        value = self._ask(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(key, f"must be a whole number from {least} to {most}")
        return int(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._ask(key)
        if value is not None and not isinstance(value, bool):
            self.refuse(key, "must be true or false")
        return default if value is None else bool(value)

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        """Return one of a few words, or None if the key is absent."""
        value = self._ask(key)
        if value is not None and value not in choices:
            self.refuse(key, f"must be one of {', '.join(choices)}")
        return None if value is None else str(value)

    def values(self, key: str) -> dict[str, object]:
        """Return a mapping of names to JSON values; a date is its ISO text."""
        value = self._ask(key)
        if not isinstance(value, Mapping | None):
            self.refuse(key, "must be a mapping of names to values")
        return {self._name(key, name): _json(item) for name, item in (value or {}).items()}

    def section(self, key: str) -> "Section":
        """Return the mapping below a key, empty if the key is absent."""
        return Section(self.file, self._to(key), self._ask(key), self._warnings)

    def sections(self, key: str) -> Iterator[tuple[str, "Section"]]:
        """Yield the named mappings below a key, in their order."""
        below = self.section(key)
        for name in below._members:
            word = self._name(key, name)
            yield word, below.section(word)

    def raw(self, key: str) -> object:
        """Return a value of any kind."""
        return self._ask(key)

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Refuse the value of a key.

        Raises:
            BadRequest: always.
        """
        raise BadRequest(f"{self._at(key)}{self._to(key)} {reason}")

    def refuse_old(self, key: str, replacement: str) -> None:
        """Refuse a key that is spelled differently today.

        Raises:
            BadRequest: the key is there.
        """
        if key in self._members:
            self.refuse(key, f"is not a key: it is called {self._to(replacement)}")

    def end(self) -> None:
        """Warn of every key that nobody asked for."""
        for key in self._members:
            if key not in self._asked:
                meant = nearest_name(str(key), self._absent(), f"{self._way}." if self._way else "")
                hint = "" if meant is None else f"; {meant}"
                self._warnings.append(f"{self._at(key)}unknown key '{self._to(key)}' is ignored{hint}")

    def _absent(self) -> list[str]:
        """Return the keys that somebody asked for and nobody gave."""
        return sorted(str(key) for key in self._asked if key not in self._members)

    def _ask(self, key: str) -> object:
        self._asked.add(key)
        return self._members.get(key)

    def _name(self, key: str, name: object) -> str:
        if not isinstance(name, str):
            self.refuse(key, f"has the name {name!r:.60}, which is not a text: quote it")
        return str(name)

    def _to(self, key: object) -> str:
        return f"{self._way}.{key}" if self._way else str(key)

    def _at(self, key: object) -> str:
        line = key_line(self._members, key)
        return f"{self.file}: " if line is None else f"{self.file}:{line}: "


def _must_be(value: object) -> str:
    kind = next((text for of, text in _KINDS.items() if isinstance(value, of)), "something else")
    return f"must be a text, not {kind}"


def _json(value: object) -> object:
    """Return a value of YAML as JSON has it: plain Python values, dates as texts."""
    match value:
        case bool() | None:
            return value
        case str():
            return str(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case date():  # a moment is one, too
            return value.isoformat()
        case Mapping():
            return {str(name): _json(item) for name, item in value.items()}
        case Sequence():
            return [_json(item) for item in value]
        case _:
            return str(value)
