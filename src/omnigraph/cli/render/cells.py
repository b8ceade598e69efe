"""One value in one place of a terminal: its text, its width, and what happens when it is too wide.

Widths are terminal cells, not characters: a Chinese character takes two, a combining accent none. The width
tables are imported for the first text that needs them.
"""

import json

from omnigraph.cli.steering import in_json

ELLIPSIS = "…"


def plain(value: object) -> str:
    """Return a JSON value as text: a text raw, null as `null`, lists and objects as compact JSON."""
    return value if isinstance(value, str) else compact(value)


def compact(value: object) -> str:
    """Return a JSON value without blanks."""
    return in_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, cells: int) -> str:
    """Return a text cut to at most this many cells; an ellipsis shows that something is missing."""
    if width(text) <= cells:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, cells - width(ELLIPSIS)).rstrip() + ELLIPSIS


def wrap(text: str, cells: int) -> list[str]:
    """Return a text as lines of at most this many cells."""
    if width(text) <= cells:
        return [text]
    from rich.cells import chop_cells

    return chop_cells(text, cells)


def pad(text: str, cells: int, *, to_the_right: bool) -> str:
    """Return a text padded with blanks to this many cells, on its right or its left."""
    blanks = " " * (cells - width(text))
    return blanks + text if to_the_right else text + blanks
