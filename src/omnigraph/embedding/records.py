"""Records of NDJSON as `embed` sees them: their text, whether a vector is missing, and JSON in and out.

T1  The text of a record is `type: <Type>`, followed by a line `field: value` for each field with a value.
T2  JSON that comes out means what came in; a member that appears twice is refused, as one would be lost.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from omnigraph.core.values import read_json


def text_of(type_name: str, fields: Sequence[str], data: Mapping[str, object]) -> str | None:
    """Return the text of a record (T1), or `None` if no field has a value."""
    values = [(field, _value(data.get(field))) for field in fields]
    lines = [f"{field}: {value}" for field, value in values if value]
    return "\n".join([f"type: {type_name}", *lines]) if lines else None


def is_missing(vector: object) -> bool:
    """Return whether a record has no vector: the member is missing, null, or an empty array."""
    return vector is None or vector == []


def parse_record(line: bytes) -> object:
    """Return the JSON of a line (T2).

    Raises:
        ValueError: it is not valid JSON; the message says why.
    """
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    try:
        return read_json(text, members=_members, constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON at column {error.colno}: {error.msg}") from error


def dump_record(record: object, like: bytes) -> bytes:
    """Return a record as one line with the same line ending as another."""
    try:
        text = json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can write
        text = json.dumps(record).encode()
    return text + like[len(like.rstrip(b"\r\n")) :]


def _value(value: object) -> str:
    """Return a value as text; an empty value has no text."""
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, str):
        return value if value.strip() else ""
    if isinstance(value, list):
        return ", ".join(text for item in value if (text := _value(item)))
    return json.dumps(value, ensure_ascii=False)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"member '{twice}' appears twice")
    return found


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")
