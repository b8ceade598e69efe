"""What a caller gives in place of a text, a name or a table: taken, or refused with what is expected."""

import re
from collections.abc import Mapping
from pathlib import Path

from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import open_regular
from omnigraph.core.span import Source
from omnigraph.core.values import named

_FILE_NAME = re.compile(r"(?!\s*//)[^\n{}]+\.(?:pg|gq)")  # a text of either language has braces


def text_source(source: str | Path | Source) -> Source:
    """Return the text of a query or a schema: itself, or what a file has.

    A text that is nothing but the name of a `.pg` or `.gq` file means the file: it is no schema and no query.

    Raises:
        BadRequest: the file cannot be read, or this is neither text nor path.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, Path) or (isinstance(source, str) and _FILE_NAME.fullmatch(source)):
        return Source(read_file(source).decode(errors="replace"), str(source))
    if not isinstance(source, str):
        raise BadRequest(f"expected the text of a schema or a query, or its path, not {named(source)}")
    return Source(source)


def query_name(name: object) -> str | None:
    """Return the name of a query, which is not a place for its parameters.

    Raises:
        BadRequest: this is no name.
    """
    if name is None or isinstance(name, str):
        return name
    hint = ": parameters are given as params=" if isinstance(name, Mapping) else ""
    raise BadRequest(f"the name of a query is a text, not {named(name)}{hint}")


def read_file(path: str | Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        BadRequest: it cannot be read.
    """
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
