"""Printing: data unchanged, messages that cannot steer a terminal, long answers piece by piece.

Data goes into a pipe unchanged, whatever bytes it has. On a terminal, and in messages anywhere, what a
terminal would obey is escaped. A reader at the other end of a pipe need not wait for the end.
"""

import codecs
import json
import sys
from collections.abc import Iterable, Mapping, Sequence

import click

from omnigraph.cli.steering import in_json, on_lines

_PIECE_CHARACTERS = 1 << 16  # large enough that writing costs nothing, small enough to appear at once


def print_document(document: Mapping[str, object] | Sequence[object]) -> None:
    """Print one JSON document to standard output."""
    texts = json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(document)
    _print(in_json(text) for text in texts)
    click.echo()


def print_data(texts: Iterable[str]) -> None:
    """Print data to standard output: unchanged, except for what would steer a terminal if it is one."""
    _print(map(on_lines, texts) if sys.stdout.isatty() else texts)


def print_records(pieces: Iterable[bytes]) -> None:
    """Print NDJSON to standard output: unchanged, but equivalent where a terminal would obey some of it."""
    if sys.stdout.isatty():
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        _print(in_json(decoder.decode(piece)) for piece in pieces)
        return
    sys.stdout.buffer.writelines(pieces)
    sys.stdout.buffer.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for people to standard output; data in them is already escaped."""
    _print((f"{line}\n" for line in lines), keeps_escapes=None)


def say(text: str) -> None:
    """Print a message to standard output."""
    click.echo(on_lines(text))


def tell(text: str, *, nl: bool = True) -> None:
    """Print a message to standard error."""
    click.echo(on_lines(text), err=True, nl=nl)


def _print(texts: Iterable[str], *, keeps_escapes: bool | None = True) -> None:
    """Write texts; unless told not to, click would strip escape sequences from what goes to a pipe."""
    piece, size = list[str](), 0
    for text in texts:
        piece.append(text)
        size += len(text)
        if size >= _PIECE_CHARACTERS:
            click.echo(_printable(piece), nl=False, color=keeps_escapes)
            piece, size = [], 0
    click.echo(_printable(piece), nl=False, color=keeps_escapes)


def _printable(piece: Iterable[str]) -> str:
    """Return a text that can be written: half a surrogate pair, as in a file name, is escaped."""
    return "".join(piece).encode(errors="backslashreplace").decode()
