"""What a terminal would obey: data and messages show it escaped instead.

Control characters move the cursor, change colours and set titles; some reverse the reading direction.
"""

import re

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_STEERING_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def on_one_line(text: str) -> str:
    r"""Return a text with `\n` for a newline, and escapes for whatever else a terminal would obey."""
    return _STEERING.sub(_escape, text)


def on_lines(text: str) -> str:
    """Return a text with its lines and tabs, and escapes for whatever else a terminal would obey."""
    return _STEERING_BUT_LINES.sub(_escape, text)


def in_json(text: str) -> str:
    """Return equivalent JSON, with JSON escapes for what a terminal would obey but JSON leaves unescaped."""
    return _STEERING_BUT_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
