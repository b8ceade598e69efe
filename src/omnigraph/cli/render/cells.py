"""One value in one place of a terminal: its text, its width, and what happens when it is too wide.

Widths are terminal cells, not characters: a Chinese character takes two, a combining accent none.
"""

import json
import re

from rich.cells import cell_len, chop_cells, set_cell_size

ELLIPSIS = "…"

# What moves the cursor, changes colours or turns the reading direction: data must not steer a terminal.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_STEERING_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def plain(value: object) -> str:
    """Return a JSON value as text: a text raw, null as `null`, lists and objects as compact JSON."""
    return value if isinstance(value, str) else compact(value)


def compact(value: object) -> str:
    """Return a JSON value without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def on_one_line(text: str) -> str:
    r"""Return a text with `\n` for a newline, and escapes for whatever else a terminal would obey."""
    return _STEERING.sub(_escape, text)


def on_lines(text: str) -> str:
    """Return a text with its lines and tabs, and escapes for whatever else a terminal would obey."""
    return _STEERING_BUT_LINES.sub(_escape, text)


def width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return len(text) if text.isascii() else cell_len(text)


def cut(text: str, cells: int) -> str:
    """Return a text of at most so many cells; an ellipsis shows that something is missing."""
    if width(text) <= cells:
        return text
    return set_cell_size(text, cells - width(ELLIPSIS)).rstrip() + ELLIPSIS


def wrap(text: str, cells: int) -> list[str]:
    """Return a text as lines of at most so many cells."""
    return [text] if width(text) <= cells else chop_cells(text, cells)


def pad(text: str, cells: int, *, to_the_right: bool) -> str:
    """Return a text with blanks up to so many cells, behind it or before it."""
    blanks = " " * (cells - width(text))
    return blanks + text if to_the_right else text + blanks


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
