"""Aligned columns of text, moments, counts and sizes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GAP = "  "
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: frozenset[int] = frozenset()
) -> str:
    """Return a table: the head, then the rows, every column as wide as its widest cell.

    The columns of numbers are aligned to the right.
    """
    cells = [[_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    lines = [_line(row, widths, numbers) for row in [head, *cells]]
    return "\n".join([click.style(lines[0], bold=True), *lines[1:]])


def moment(micros: int) -> str:
    """Return a time of the engine for people: UTC, to the millisecond."""
    at = _EPOCH + timedelta(microseconds=micros)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1_000:03d}Z"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def size_of(size: int) -> str:
    """Return a number of bytes for people."""
    shown, unit = float(size), 0
    while shown >= 1024 and unit < len(_UNITS) - 1:
        shown, unit = shown / 1024, unit + 1
    return f"{size} bytes" if unit == 0 else f"{shown:.1f} {_UNITS[unit]}"


def _line(cells: Sequence[str], widths: Sequence[int], numbers: frozenset[int]) -> str:
    padded = [
        cell.rjust(width) if place in numbers else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(padded).rstrip()


def _one_line(cell: str) -> str:
    """Return the first line of a cell, with control characters escaped: a row stays on one line."""
    first, *more = cell.splitlines() or [""]
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in first
    )
    return f"{shown} …" if more else shown
