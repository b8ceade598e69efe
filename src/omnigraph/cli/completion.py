"""What a shell offers when Tab is pressed: commands and flags by click, branches and types of a local graph.

B1  Nothing is opened that would take longer than a person waits: names are read from the small files that a
    graph on this disk keeps for them. A graph elsewhere offers none.
B2  Whatever goes wrong offers nothing: a completion never prints an error into the line that is being typed.
B3  Beside a policy nothing is read: it may hide these names, and is not asked.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from omnigraph.core.regular_file import GRAPH_MARK, read_control_file

VARIABLE = "_OMNIGRAPH_COMPLETE"  # the one that click reads, by the name of the program
BRANCHES_DIR, SCHEMA_SOURCE = "__branches", "_schema.pg"  # as in `history`, which would import Arrow (B1)
_BRANCH_FLAGS = frozenset({"--branch", "--from", "--into"})
_GRAPH_FLAGS = frozenset({"--store", "--uri"})
_BRANCH_COMMANDS = frozenset({"delete", "merge", "upgrade", "diff"})

Items = list[CompletionItem[str]]


class _Completing(ShellComplete):
    """Offers the names of a graph, else what click offers, else files."""

    def get_completions(self, args: list[str], incomplete: str) -> Items:
        """Return what may stand in the place of the incomplete word."""
        flag, joined, start = incomplete.partition("=")
        is_joined = bool(joined) and flag.startswith("--")
        words = [*args, flag] if is_joined else args
        try:
            names = names_for(words, start if is_joined else incomplete)
            if names is not None:
                return names
            found = super().get_completions(args, incomplete)
        except Exception:  # noqa: BLE001 - an edge: nothing is offered (B2)
            return []
        if found or incomplete.startswith("-"):
            return found
        return [CompletionItem(incomplete, type="file")]


class Bash(_Completing, BashComplete):
    """Completion in bash."""


class Zsh(_Completing, ZshComplete):
    """Completion in zsh."""


class Fish(_Completing, FishComplete):
    """Completion in fish."""


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def register() -> None:
    """Let click use these for its shells."""
    for name, shell in SHELLS.items():
        add_completion_class(shell, name)


def script(shell: str, program: click.Command) -> str:
    """Return what a shell runs to complete the command line of the program."""
    return SHELLS[shell](program, {}, "omnigraph", VARIABLE).source()


def names_for(words: Sequence[str], incomplete: str) -> Items | None:
    """Return the names of a graph that may follow the words of a command line; None where others belong."""
    if any(word.partition("=")[0] == "--policy" for word in words):
        return None  # B3
    read = _reader(words, incomplete)
    root = None if read is None else _graph(words)
    if read is None or root is None:
        return None
    return [CompletionItem(name) for name in read(root) if name.startswith(incomplete)]


def branch_names(root: Path) -> list[str]:
    """Return the branches of a graph on this disk, main first."""
    found = [
        json.loads(text)["name"]
        for path in sorted((root / BRANCHES_DIR).glob("*.json"))
        if (text := read_control_file(path))
    ]
    return ["main", *sorted(name for name in found if isinstance(name, str) and not name.startswith("__"))]


def type_names(root: Path) -> list[str]:
    """Return the node and edge types of main, by name."""
    from omnigraph.core.span import Source
    from omnigraph.language.schema_parser import parse_schema

    schema = parse_schema(Source(read_control_file(root / SCHEMA_SOURCE).decode(), SCHEMA_SOURCE))
    return sorted(one.name.text for one in schema.declarations if one not in schema.interfaces)


def _reader(words: Sequence[str], incomplete: str) -> Callable[[Path], list[str]] | None:
    """Return what reads the names that belong here, or None."""
    last = words[-1] if words else ""
    if last in _BRANCH_FLAGS:
        return branch_names
    if last == "--type":
        return type_names
    if incomplete.startswith("-") or last in _GRAPH_FLAGS:
        return None
    positionals = [word for word in _positionals(words) if _as_graph(word) is None]
    match positionals:
        case ["describe"]:
            return type_names
        case ["branch", command] if command in _BRANCH_COMMANDS:
            return branch_names
    return None


def _positionals(words: Sequence[str]) -> list[str]:
    """Return the words that are neither flags nor their values; of flags, those with a graph are known."""
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in _GRAPH_FLAGS | _BRANCH_FLAGS
    ]


def _graph(words: Sequence[str]) -> Path | None:
    """Return the graph on this disk that a command line names."""
    return next((root for word in words if (root := _as_graph(word)) is not None), None)


def _as_graph(word: str) -> Path | None:
    text = word.partition("=")[2] if word.startswith("--") else word
    root = Path(text.removeprefix("file://"))
    return root if text and (root / GRAPH_MARK).is_dir() else None
