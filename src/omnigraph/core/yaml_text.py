"""YAML that people write: read, or refused with one kind of error that names the file and the line.

Aliases let a few lines stand for billions of values, so what a text comes to is counted (`yaml_nodes`) before
any value is made.
"""

from io import StringIO
from pathlib import Path

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import SETTINGS_BYTES_MAX
from omnigraph.core.regular_file import open_regular
from omnigraph.core.values import value_failure

# What the parser lets through though it is not YAML: scalars that do not fit their tag.
_PARSER_FAILURES = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
)
_PROBLEM_MAX = 200  # characters; a problem may quote a tag of any length


def read_yaml(path: Path) -> object:
    """Return the value of a file.

    Raises:
        BadRequest: it cannot be read, or is not YAML.
    """
    return _read(path, is_placed=False)


def read_placed_yaml(path: Path) -> object:
    """Return the value of a file whose mappings know the lines of their keys, as `key_line` says them.

    Raises:
        BadRequest: it cannot be read, or is not YAML.
    """
    return _read(path, is_placed=True)


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
    return _parse(text, name, is_placed=True)


def key_line(mapping: object, key: object) -> int | None:
    """Return the line of a key, counted from one; None where the mapping does not know it."""
    return mapping.lines.get(key) if isinstance(mapping, PlacedMapping) else None


class PlacedMapping(dict[object, object]):
    """A mapping that knows the lines of its keys, also of those that are merged into it."""

    lines: dict[object, int]


def _read(path: Path, *, is_placed: bool) -> object:
    return _parse(read_text(path), path, is_placed=is_placed)


def _parse(text: str, path: Path | str, *, is_placed: bool) -> object:
    """Return the value of a text, which is scanned once: that is what takes the time."""
    from ruamel.yaml.error import YAMLError

    from omnigraph.core.yaml_nodes import bounded_yaml

    try:
        return bounded_yaml(path, PlacedMapping if is_placed else None).load(StringIO(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f":{mark.line + 1}"
        problem = str(getattr(error, "problem", None) or "not YAML")
        raise BadRequest(f"{path}{where}: {problem[:_PROBLEM_MAX]}") from error
    except _PARSER_FAILURES as error:
        raise BadRequest(f"{path}: not YAML: an invalid value ({value_failure(error)})") from error


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
