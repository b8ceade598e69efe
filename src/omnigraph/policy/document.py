"""Parts of a YAML document that is read strictly: every key is known, every value is of its kind.

What is wrong is told with the file, the line, and what the part belongs to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from omnigraph.core.errors import BadRequest
from omnigraph.core.values import is_text, shown
from omnigraph.core.yaml_text import key_line


@dataclass(frozen=True, slots=True)
class StrictPart:
    """One mapping of a document, with its place in words."""

    file: str
    members: Mapping[object, object]
    owner: str = ""  # such as "rule 'crew-work'"

    @staticmethod
    def of(value: object, file: str, what: str, owner: str = "") -> "StrictPart":
        """Take a mapping.

        Raises:
            BadRequest: the value is something else.
        """
        if not isinstance(value, Mapping):
            prefix = f"{owner}: " if owner else ""
            raise BadRequest(f"{file}: {prefix}{what} must be a mapping, not {shown(value)}")
        return StrictPart(file, value, owner)

    def named(self, owner: str) -> "StrictPart":
        """Return the same part, told as another's."""
        return StrictPart(self.file, self.members, owner)

    def part(self, key: str, owner: str) -> "StrictPart":
        """Return a mapping inside of this one, which must be there.

        Raises:
            BadRequest: it is missing, or no mapping.
        """
        if key not in self.members:
            self.refuse(None, f"'{key}' is missing")
        value = self.members[key]
        if not isinstance(value, Mapping):
            self.refuse(key, f"'{key}' must be a mapping, not {shown(value)}")
        return StrictPart(self.file, value, owner)

    def require_known(self, keys: Iterable[str]) -> None:
        """Refuse keys that mean nothing: a misspelt one would mean something else than it says.

        Raises:
            BadRequest: there is one.
        """
        known = tuple(keys)
        for key in self.members:
            if key not in known:
                self.refuse(key, f"unknown key {shown(key)}: use {', '.join(known)}")

    def text(self, key: str, value: object, what: str) -> str:
        """Return a text without surrounding blanks.

        Raises:
            BadRequest: it is none, is blank, has several lines or half of a surrogate pair.
        """
        if not isinstance(value, str):
            self.refuse(key, f"{what} must be a text, not {shown(value)}")
        trimmed = str(value).strip()
        if not trimmed:
            self.refuse(key, f"{what} is blank")
        if trimmed.splitlines() != [trimmed]:
            self.refuse(key, f"{what} has several lines")
        if not is_text(trimmed):
            self.refuse(key, f"{what} has half of a surrogate pair, and is no text: {shown(trimmed)}")
        return trimmed

    def required_text(self, key: str) -> str:
        """Return a text that must be there.

        Raises:
            BadRequest: it is not, or is no text.
        """
        if key not in self.members:
            self.refuse(None, f"'{key}' is missing")
        return self.text(key, self.members[key], f"'{key}'")

    def texts(self, key: str, value: object, what: str) -> tuple[str, ...]:
        """Return a list of texts.

        Raises:
            BadRequest: it is no list, or has something else in it.
        """
        if not isinstance(value, list):
            self.refuse(key, f"{what} must be a list, not {shown(value)}")
        assert isinstance(value, list)
        return tuple(self.text(key, item, f"a member of {what}") for item in value)

    def items(self, key: str) -> list[object]:
        """Return a list, which may be absent.

        Raises:
            BadRequest: it is no list.
        """
        value = self.members.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(key, f"'{key}' must be a list, not {shown(value)}")
        return list(value)

    def refuse(self, key: object, reason: str) -> NoReturn:
        """Say what is wrong with a key, or with the part.

        Raises:
            BadRequest: always.
        """
        line = key_line(self.members, key)
        if line is None and (first := next(iter(self.members), None)) is not None:
            line = key_line(self.members, first)
        where = self.file if line is None else f"{self.file}:{line}"
        raise BadRequest(f"{where}: {self.owner}: {reason}" if self.owner else f"{where}: {reason}")
