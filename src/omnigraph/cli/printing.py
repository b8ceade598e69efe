"""Printing documents and long answers, piece by piece: a reader behind a pipe need not wait for the end."""

import json
from collections.abc import Iterable, Mapping

import click

_PIECE_CHARACTERS = 1 << 16  # large enough that writing costs nothing, small enough to be there at once


def print_document(document: Mapping[str, object]) -> None:
    """Print one JSON document to standard output."""
    _print(json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(document))
    click.echo()


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output."""
    _print(f"{line}\n" for line in lines)


def _print(texts: Iterable[str]) -> None:
    piece, size = list[str](), 0
    for text in texts:
        piece.append(text)
        size += len(text)
        if size >= _PIECE_CHARACTERS:
            click.echo(_printable(piece), nl=False)
            piece, size = [], 0
    click.echo(_printable(piece), nl=False)


def _printable(piece: Iterable[str]) -> str:
    """Return a text that can be written: half of a surrogate pair, as in the name of a file, is escaped."""
    return "".join(piece).encode(errors="backslashreplace").decode()
