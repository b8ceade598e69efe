"""YAML that people write: read, or refused with one kind of error that names the file and the line.

Aliases let a few lines stand for billions of values, so what they come to is counted before anything is made.
"""

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import NESTING_MAX, SETTINGS_BYTES_MAX, SETTINGS_NODES_MAX
from omnigraph.core.regular_file import open_regular

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


def key_line(mapping: object, key: object) -> int | None:
    """Return the line of a key, counted from one; None where the mapping does not know it."""
    places = getattr(getattr(mapping, "lc", None), "data", None) or {}
    return places[key][0] + 1 if key in places else None


def _read(path: Path, kind: str) -> object:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    text = read_text(path)
    try:
        if "*" in text:  # without aliases there are no more values than characters
            _bound_aliases(path, YAML(typ=kind, pure=True), text)
        return YAML(typ=kind, pure=True).load(StringIO(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f":{mark.line + 1}"
        raise BadRequest(f"{path}{where}: {getattr(error, 'problem', None) or 'not YAML'}") from error
    except _PARSER_FAILURES as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else f"an invalid value ({error})"
        raise BadRequest(f"{path}: not YAML: {reason}") from error


def _bound_aliases(path: Path, yaml: "YAML", text: str) -> None:
    """Make sure that a text stays small with every alias written out.

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
            raise BadRequest(f"{path}: its aliases come to more than {SETTINGS_NODES_MAX} values")
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
