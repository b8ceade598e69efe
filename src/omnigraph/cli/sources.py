"""Source files named on the command line."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import SOURCE_BYTES_MAX
from omnigraph.core.regular_file import open_regular
from omnigraph.core.span import Source
from omnigraph.language.parser import decode_source

STDIN = "-"


def read_source(path: str) -> Source:
    """Return the text of a file, or of standard input for `-`.

    Raises:
        BadRequest: the file cannot be read.
        ParseError: it is not UTF-8, or too large.
    """
    # Reading one byte past the limit is enough to know that a file is too large.
    if path == STDIN:
        return decode_source(sys.stdin.buffer.read(SOURCE_BYTES_MAX + 1), "<stdin>")
    try:
        with open_regular(path) as file:
            return decode_source(file.read(SOURCE_BYTES_MAX + 1), path)
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error


def source_files(paths: Iterable[str], suffixes: frozenset[str]) -> Iterator[str]:
    """Yield the files themselves, and for a folder the files below it that have one of the suffixes, sorted.

    Raises:
        BadRequest: a folder holds no such file.
    """
    for path in paths:
        folder = Path(path)
        if path == STDIN or not os.path.isdir(folder):  # noqa: PTH112 - no folder has a name that the system refuses
            yield path
            continue
        found = sorted(file for file in folder.rglob("*") if file.suffix in suffixes and file.is_file())
        if not found:
            raise BadRequest(f"no {' or '.join(sorted(suffixes))} file in {path}")
        yield from (str(file) for file in found)


def refuse_second_stdin(*paths: str) -> None:
    """Refuse standard input for two things at once."""
    if paths.count(STDIN) > 1:
        raise click.UsageError("'-' (standard input) can be given only once")
