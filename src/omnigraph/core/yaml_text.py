"""YAML that people write: read, or refused with one kind of error that names the file and the line."""

from io import StringIO
from pathlib import Path

from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import open_regular

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


def read_yaml(path: Path) -> object:
    """Return the value of a file.

    Raises:
        BadRequest: it cannot be read, or is not YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    text = read_text(path)
    try:
        return YAML(typ="safe", pure=True).load(StringIO(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f":{mark.line + 1}"
        raise BadRequest(f"{path}{where}: {getattr(error, 'problem', None) or 'not YAML'}") from error
    except _PARSER_FAILURES as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else f"an invalid value ({error})"
        raise BadRequest(f"{path}: not YAML: {reason}") from error


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        BadRequest: it cannot be read, or is not UTF-8.
    """
    try:
        with open_regular(path) as file:
            return file.read().decode()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not UTF-8") from error
