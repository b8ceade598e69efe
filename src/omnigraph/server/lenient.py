"""What older clients send to `/ingest`, as the lines that a load takes.

The lenient reader takes records over several lines, lines that begin with `//`, and members of an envelope
that mean nothing. Every record stays on the line that it begins on, and errors name that line. Once so many
values are no records that the strict reader will refuse the load for them, the rest is not looked at.
"""

import json
import re

from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import read_strict_json, whole_number
from omnigraph.validate.violations import COUNTED_MAX

_ENVELOPE = frozenset({"type", "edge", "from", "to", "data"})
_TYPES = frozenset({"type", "edge"})
_NO_RECORDS = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+)++")  # all at once: a body may be nothing else


def strict_lines(text: str) -> bytes:
    """Return a text in the strict form: one record on each line, with the members that an envelope has.

    Raises:
        BadRequest: there is something that is not JSON; the line is named.
    """
    decoder = json.JSONDecoder(parse_int=whole_number)
    pieces: list[str] = []
    place = line = written = refused = 0
    while place < len(text) and refused < COUNTED_MAX:
        check_cancelled()
        passed = _NO_RECORDS.match(text, place)
        if passed is not None:
            line += text.count("\n", place, passed.end())
            place = passed.end()
            continue
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"line {line + 1}: invalid JSON: {_reason(error)}") from error
        record = text[place:end]
        pieces += ["\n" * max(0, line - written), _strict(record, value), "\n"]
        written = max(line, written) + 1
        refused += not isinstance(value, dict) or _TYPES.isdisjoint(value)
        line += record.count("\n")
        place = end
    return "".join(pieces).encode()


def _strict(record: str, value: object) -> str:
    """Return a record on one line; what its envelope cannot have is left out, the rest stays as it is."""
    if not isinstance(value, dict) or value.keys() <= _ENVELOPE:
        return _on_one_line(record)
    try:
        read = read_strict_json(record)
    except ValueError:
        return _on_one_line(record)  # the strict reader says what is wrong, and where
    assert isinstance(read, dict), "it was one before"
    return json.dumps({key: read[key] for key in read if key in _ENVELOPE})


def _on_one_line(record: str) -> str:
    return record.replace("\r", " ").replace("\n", " ")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
