"""Texts that a caller gives as text or as a file."""

from pathlib import Path

from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source


def text_source(source: str | Path | Source) -> Source:
    """Return the text of a query or a schema: itself, or what a file has.

    Raises:
        BadRequest: the file cannot be read.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, Path):
        return Source(read_file(source).decode(errors="replace"), str(source))
    return Source(source)


def read_file(path: str | Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        BadRequest: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
