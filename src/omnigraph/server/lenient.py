"""What older clients send to `/ingest`, as the lines that a load takes.

The lenient reader takes records over several lines, lines that begin with `//`, and members of an envelope
that mean nothing. Every record stays on the line that it begins on, and errors name that line.
"""

import json
import re

from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import read_strict_json, whole_number

_ENVELOPE = frozenset({"type", "edge", "from", "to", "data"})
_BLANKS = re.compile(r"[ \t\r\n]+")


def strict_lines(text: str) -> bytes:
    """Return a text in the strict form: one record on each line, with the members that an envelope has.

    Raises:
        BadRequest: there is something that is not JSON; the line is named.
    """
    decoder = json.JSONDecoder(parse_int=whole_number)
    lines: list[str] = []
    place, line = 0, 0
    while place < len(text):
        check_cancelled()
        blanks = _BLANKS.match(text, place)
        if blanks is not None:  # all at once: a body may be nothing else
            line += text.count("\n", place, blanks.end())
            place = blanks.end()
        elif text.startswith("//", place):
            place = _end_of_line(text, place)
        else:
            try:
                _, end = decoder.raw_decode(text, place)
            except (ValueError, RecursionError) as error:
                raise BadRequest(f"line {line + 1}: invalid JSON: {_reason(error)}") from error
            record = text[place:end]
            lines += [""] * (line - len(lines))
            lines.append(_strict(record))
            line += record.count("\n")
            place = end
    return "\n".join(lines).encode()


def _strict(record: str) -> str:
    """Return a record on one line; what its envelope cannot have is left out, the rest stays as it is."""
    try:
        value = read_strict_json(record)
    except ValueError:
        return _on_one_line(record)  # the strict reader says what is wrong, and where
    if isinstance(value, dict) and not value.keys() <= _ENVELOPE:
        return json.dumps({key: value[key] for key in value if key in _ENVELOPE})
    return _on_one_line(record)


def _on_one_line(record: str) -> str:
    return record.replace("\r", " ").replace("\n", " ")


def _end_of_line(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
