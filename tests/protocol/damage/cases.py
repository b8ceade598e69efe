"""Which files there are below a graph's root, by kind, and what is done to them."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_RULES: tuple[tuple[str, str], ...] = (
    (r"_versions/latest_version_hint\.json$", "hint"),
    (r"_versions/\d+\.manifest$", "version"),
    (r"_transactions/.*\.txn$", "transaction"),
    (r"_deletions/", "deletion"),
    (r"_indices/", "index"),
    (r"data/.*\.lance$", "data"),
    (r"_refs/", "ref"),
    (r"_acknowledged$", "note"),
    (r"_branch(_ended)?$", "branch copy"),
)
_PLACES: tuple[tuple[str, str], ...] = (
    (r"^__manifest/tree/", "branch manifest"),
    (r"^__manifest/", "manifest"),
    (r"^(nodes|edges)/[^/]*/tree/", "fork"),
    (r"^(nodes|edges)/", "table"),
    (r"^_graph_commit_recoveries\.lance/", "audit"),
)
# A flipped bit in the middle of one of these may leave a file that reads well and says something else. Only
# checksums notice that.
NEEDS_CHECKSUM = frozenset({"data", "deletion", "index", "version"})


def kind_of(path: str) -> str:
    """Name the kind of a file by its path inside the graph."""
    place = next((name for rule, name in _PLACES if re.search(rule, path)), None)
    part = next((name for rule, name in _RULES if re.search(rule, path)), None)
    if place is not None:
        return f"{place} {part or 'other'}"
    return {"__branches": "control object", "__recovery": "sidecar", "__locks": "lock"}.get(
        path.partition("/")[0], "schema contract"
    )


def _remove(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _truncate(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _flip(path: Path) -> None:
    """Flip one bit, at a place that only the file's name and length decide."""
    data = bytearray(path.read_bytes())
    if data:
        draw = random.Random(f"{re.sub(r'[^a-z]', '', path.name)} {len(data)}")
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(data))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "removed": _remove,
    "emptied": _empty,
    "truncated": _truncate,
    "flipped": _flip,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One file and what is done to it."""

    file: str
    kind: str
    damage: str

    @property
    def may_be_silent(self) -> bool:
        """Whether only checksums could notice it."""
        return self.damage == "flipped" and self.kind.rpartition(" ")[2] in NEEDS_CHECKSUM


def cases(root: Path) -> Iterator[Case]:
    """Yield every file with every damage, in an order that does not depend on random names."""
    files = [path for path in root.rglob("*") if path.is_file()]
    ordered = sorted(files, key=lambda path: (path.stat().st_mtime_ns, str(path)))
    for path in ordered:
        name = str(path.relative_to(root))
        for damage in DAMAGES:
            yield Case(name, kind_of(name), damage)


def one_of_each(found: list[Case], damages: int) -> list[Case]:
    """Return so many damages of the newest file of each kind, beginning with another one for each."""
    newest = {case.kind: case.file for case in found}
    chosen = []
    for at, (kind, file) in enumerate(sorted(newest.items())):
        names = list(DAMAGES)
        picked = {names[(at + step) % len(names)] for step in range(damages)}
        chosen += [case for case in found if (case.kind, case.file) == (kind, file) and case.damage in picked]
    return chosen
