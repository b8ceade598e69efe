"""NDJSON as a server streams it: whole, or an error.

N1  What is in memory does not grow with the stream: one line, and the piece that it came in.
N2  A stream that breaks off raises. An answer that does not say where it ends is none: whatever came before
    its connection closed would look like all of it.
"""

from collections.abc import Iterator

import orjson

from omnigraph.client.http import BrokenAnswer, HttpReply
from omnigraph.client.understood import NOT_OF_THIS_API
from omnigraph.core.access_errors import TransportError

NDJSON = "application/x-ndjson"
_NO_END = "its last line has no end"


def whole_lines(answer: HttpReply) -> Iterator[bytes]:
    """Yield a stream in the pieces that it comes in.

    Raises:
        TransportError: it is none of records.
        BrokenAnswer: it was cut off, or could be (N2).
    """
    _require_records(answer)
    end = b"\n"
    for piece in answer.pieces:
        end = piece[-1:] or end
        yield piece
    if end != b"\n":
        raise BrokenAnswer(_NO_END)


def lines_of(answer: HttpReply) -> Iterator[bytes]:
    """Yield the lines of a stream that are not empty (N1).

    Raises:
        TransportError: it is none of records.
        BrokenAnswer: it was cut off, or could be (N2).
    """
    _require_records(answer)
    begun: list[bytes] = []  # a line of many pieces is put together once
    for piece in answer.pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        if others:
            yield from filter(None, (b"".join(begun), *others[:-1]))
            begun = [others[-1]]
    if any(begun):
        raise BrokenAnswer(_NO_END)


def record_of(line: bytes) -> dict[str, object]:
    """Return a line as a record.

    Raises:
        BrokenAnswer: it is none.
    """
    try:
        record = orjson.loads(line)
    except ValueError as error:
        raise BrokenAnswer(str(error)) from error
    if not isinstance(record, dict):
        raise BrokenAnswer("a record is an object")
    return record


def _require_records(answer: HttpReply) -> None:
    if answer.media_type != NDJSON:
        raise TransportError(NOT_OF_THIS_API)
    if not {"content-length", "transfer-encoding"} & {name.lower() for name in answer.headers}:
        raise BrokenAnswer("it does not say where it ends")
