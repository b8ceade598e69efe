"""YAML that people write: read, or refused with one kind of error that names the file and the line.

Aliases let a few lines stand for billions of values, and a megabyte of short ones takes its reader half a
minute, so what a text comes to is counted before anything is made.
"""

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import NESTING_MAX, SETTINGS_BYTES_MAX, SETTINGS_NODES_MAX
from omnigraph.core.regular_file import open_regular
from omnigraph.core.values import value_failure

if TYPE_CHECKING:
    from ruamel.yaml import YAML

# What the parser lets through though it is not YAML: scalars that do not fit their tag, and depth.
_PARSER_FAILURES = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
)
_TEXT_OF_A_VALUE = 256  # characters; a longer text counts as several values, as each alias copies it


def read_yaml(path: Path) -> object:
    """Return the value of a file.

    Raises:
        BadRequest: it cannot be read, or is not YAML.
    """
    return _read(path, "safe")


def read_placed_yaml(path: Path) -> object:
    """Return the value of a file whose mappings know the lines of their keys, as `key_line` says them.

    Raises:
        BadRequest: it cannot be read, or is not YAML.
    """
    return _read(path, "rt")


def parse_placed_yaml(text: str, name: str) -> object:
    """Return the value of a text as `read_placed_yaml` returns that of a file; errors call it by a name.

    Raises:
        BadRequest: it is not YAML, or too large.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadRequest(f"{name} is not UTF-8") from error
    if size > SETTINGS_BYTES_MAX:
        raise BadRequest(f"{name} has more than {SETTINGS_BYTES_MAX} bytes")
    return _parse(text, name, "rt")


def key_line(mapping: object, key: object) -> int | None:
    """Return the line of a key, counted from one; None where the mapping does not know it."""
    places = getattr(getattr(mapping, "lc", None), "data", None) or {}
    return places[key][0] + 1 if key in places else None


def _read(path: Path, kind: str) -> object:
    return _parse(read_text(path), path, kind)


def _parse(text: str, path: Path | str, kind: str) -> object:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        if _may_be_large(text):
            _bound(path, YAML(typ=kind, pure=True), text)
        return YAML(typ=kind, pure=True).load(StringIO(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f":{mark.line + 1}"
        raise BadRequest(f"{path}{where}: {getattr(error, 'problem', None) or 'not YAML'}") from error
    except _PARSER_FAILURES as error:
        reason = (
            "nested too deeply"
            if isinstance(error, RecursionError)
            else f"an invalid value ({value_failure(error)})"
        )
        raise BadRequest(f"{path}: not YAML: {reason}") from error


def _may_be_large(text: str) -> bool:
    """Say whether a text may have too many values or levels; most are so short that it shows."""
    levels = sum(text.count(character) for character in "[{-:?")  # each takes one of these
    return "*" in text or len(text) > SETTINGS_NODES_MAX or levels > NESTING_MAX


def _bound(path: Path | str, yaml: "YAML", text: str) -> None:
    """Make sure that a text has few values and few levels, with every alias written out.

    Raises:
        BadRequest: it has too many values, or nests them too deeply.
    """
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

    sizes: dict[str, tuple[int, int]] = {}  # by anchor: values in it, and levels
    ways: list[tuple[str | None, int, int]] = [(None, 0, 0)]  # what is open, from the outside inwards
    for event in yaml.parse(StringIO(text)):
        if isinstance(event, CollectionStartEvent):
            ways.append((event.anchor, 1, 1))
            count, depth = 0, 0
        elif isinstance(event, CollectionEndEvent):
            anchor, count, depth = ways.pop()
            if anchor is not None:
                sizes[anchor] = (count, depth)
        elif isinstance(event, AliasEvent):  # one that is not closed yet has no end
            if event.anchor not in sizes and all(event.anchor != way[0] for way in ways):
                line = event.start_mark.line + 1
                raise BadRequest(f"{path}:{line}: the alias '*{event.anchor}' stands for nothing above it")
            count, depth = sizes.get(event.anchor, (SETTINGS_NODES_MAX, NESTING_MAX))
        elif isinstance(event, NodeEvent):
            count, depth = 1 + len(getattr(event, "value", "")) // _TEXT_OF_A_VALUE, 0
            if event.anchor is not None:
                sizes[event.anchor] = (count, depth)
        else:
            continue
        anchor, inside, below = ways[-1]
        ways[-1] = (anchor, inside + count, max(below, depth + 1))
        if inside + count > SETTINGS_NODES_MAX:
            raise BadRequest(f"{path}: more than {SETTINGS_NODES_MAX} values, with aliases written out")
        if depth > NESTING_MAX or len(ways) > NESTING_MAX:
            raise BadRequest(f"{path}: nested more than {NESTING_MAX} deep")


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        BadRequest: it cannot be read, is too large, or is not UTF-8.
    """
    try:
        with open_regular(path) as file:
            content = file.read(SETTINGS_BYTES_MAX + 1)
        if len(content) > SETTINGS_BYTES_MAX:
            raise BadRequest(f"{path} has more than {SETTINGS_BYTES_MAX} bytes")
        return content.decode()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not UTF-8") from error
