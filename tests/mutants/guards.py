"""The kept list of guards: lines that keep data whole, how to break each, and the tests that notice.

A guard is an entry of a file in `tests/mutants/lists`, one file for each package or theme. Its keys are the
fields of `Guard`. `line` is a text that occurs once in `file`: a line or a part of one, or several lines.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LISTS = Path(__file__).parent / "lists"
PACKAGE = Path("src/omnigraph")
SOURCE = "OMNIGRAPH_MUTANTS_SOURCE"  # tells a run where the package must come from
_KEYS = {"id", "file", "line", "becomes", "tests", "survives"}


class GuardError(Exception):
    """An entry of the list is wrong, or the code has moved away from it."""


@dataclass(frozen=True, slots=True)
class Guard:
    """One line, and what breaks it.

    `file` is below the package. `survives` is the reason why no test can notice; empty for all others.
    """

    id: str
    file: str
    line: str
    becomes: str
    tests: tuple[str, ...]
    survives: str = ""

    def mutated(self, text: str) -> str:
        """Return the text of the file with the guard broken.

        Raises:
            GuardError: the line does not occur exactly once, or would not change.
        """
        found = text.count(self.line)
        if found != 1:
            raise GuardError(f"{self.id}: its line occurs {found} times in {self.file}, and must occur once")
        if self.line == self.becomes:
            raise GuardError(f"{self.id}: the line becomes itself")
        return text.replace(self.line, self.becomes)


def read_guards(folder: Path = LISTS) -> tuple[Guard, ...]:
    """Return every guard of the lists, by file and in their order.

    Raises:
        GuardError: an entry lacks something, or says something twice.
    """
    guards = [
        _guard(path.name, entry)
        for path in sorted(folder.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["guard"]
    ]
    ids = [guard.id for guard in guards]
    if len(set(ids)) < len(ids):
        raise GuardError(f"two guards have one id: {sorted({name for name in ids if ids.count(name) > 1})}")
    return tuple(guards)


def _guard(name: str, entry: dict[str, object]) -> Guard:
    unknown, missing = entry.keys() - _KEYS, _KEYS - {"survives"} - entry.keys()
    if unknown or missing:
        raise GuardError(f"{name}: {entry.get('id')}: unknown {sorted(unknown)}, missing {sorted(missing)}")
    tests = entry["tests"]
    if not isinstance(tests, list) or not tests:
        raise GuardError(f"{name}: {entry['id']}: names no test")
    texts = {key: str(value) for key, value in entry.items() if key != "tests"}
    return Guard(tests=tuple(str(test) for test in tests), **texts)
