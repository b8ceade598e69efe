"""The classes of errors: those of the code, and those of the specification's table."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.core import access_errors, blob_errors, damage, errors, source_errors
from omnigraph.core.errors import OmnigraphError

ENGINE = Path(__file__).parents[2] / "docs" / "spec" / "engine.md"


def error_classes() -> Iterator[type[OmnigraphError]]:
    """Yield the classes of the error tree."""
    names: dict[str, object] = {}
    for module in (errors, source_errors, damage, access_errors, blob_errors):
        names |= vars(module)
    for value in names.values():
        if isinstance(value, type) and issubclass(value, OmnigraphError):
            yield value


@dataclass(frozen=True, slots=True)
class Listed:
    """What the table of the specification says of a class."""

    parent: str | None
    code: str | None
    detail: str | None
    status: int
    exit_code: int


@cache
def listed_errors() -> dict[str, Listed]:
    """Return the classes of the specification's table; a blank cell is the parent's."""
    text = ENGINE.read_text(encoding="utf-8")
    table = text.partition("\n## 14. Errors\n")[2].partition("\n## 15. ")[0]
    found: dict[str, Listed] = {}
    path: list[str] = []
    for line in table.splitlines():
        first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = re.findall(r"`([A-Z]\w+)", first)
        if not line.startswith("| ") or not names:
            continue
        path = path[: first.count("·")]
        parent, _, children = first.partition("→")
        for name in re.findall(r"`([A-Z]\w+)", parent):
            found[name] = _listed(found, path[-1] if path else None, *cells[:3])
        path.append(names[0])
        for name in re.findall(r"`([A-Z]\w+)", children):
            found[name] = _listed(found, names[0], "", "", "")
    return found


def _listed(found: dict[str, Listed], parent: str | None, wire: str, status: str, exit_code: str) -> Listed:
    inherited = Listed(None, "internal", None, 500, 1) if parent is None else found[parent]
    code, _, detail = (part.strip().strip("`") for part in wire.partition("/"))
    return Listed(
        parent,
        None if code == "none" else inherited.code if code in {"", "–"} else code,
        re.split(r"[{\[]", detail)[0] or inherited.detail,
        inherited.status if status in {"", "–"} else int(status),
        int(exit_code.strip("*") or inherited.exit_code),
    )
