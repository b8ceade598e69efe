"""What a caller gives as a text, a name or a file: accepted, or refused with what is expected."""

import re
from collections.abc import Mapping
from pathlib import Path

from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import open_regular
from omnigraph.core.span import Source
from omnigraph.core.values import named

_FILE_NAME = re.compile(r"(?!\s*//)[^\n{}]+\.(?:pg|gq)")  # a text of either language has braces


def text_source(source: str | Path | Source) -> Source:
    """Return the text of a query or a schema: as given, or as read from a file.

    A text that is just the name of a `.pg` or `.gq` file means the file: it is neither a schema nor a query.

    Raises:
        BadRequest: the file cannot be read, or the value is neither text nor path.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, Path) or (isinstance(source, str) and _FILE_NAME.fullmatch(source)):
        return Source(read_file(source).decode(errors="replace"), str(source))
    if not isinstance(source, str):
        raise BadRequest(f"expected the text of a schema or a query, or its path, not {named(source)}")
    return Source(source)


def query_name(name: object) -> str | None:
    """Return the name of a query, refusing parameters passed in its place.

    Raises:
        BadRequest: the value is not a name.
    """
    if name is None or isinstance(name, str):
        return name
    hint = ": pass parameters as params=" if isinstance(name, Mapping) else ""
    raise BadRequest(f"the name of a query must be a text, not {named(name)}{hint}")


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
