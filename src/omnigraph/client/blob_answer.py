"""The bytes of a value as a server sends them: those that were asked for, of the value that was asked for.

A1  An answer is one about a value, has exactly the range of the request, and is not encoded: a page of a
    proxy, the whole in place of a part, or another part never count as the bytes.
A2  They are all there: an answer says how many there are, and a connection that ends before that breaks off.
"""

import re
from collections.abc import Iterator, Mapping

from omnigraph.client.http import BrokenAnswer, HttpReply
from omnigraph.client.understood import understood
from omnigraph.core.blob_errors import NOT_FOLLOWED, ExternalBlobError

KIND_HEADER, EXTERNAL = "Omnigraph-Blob-Kind", "external"
AS_IT_IS = {"Accept-Encoding": "identity"}
_PART = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", re.ASCII)
_COUNT = re.compile(r"\d{1,19}", re.ASCII)


def range_header(start: int, end: int | None) -> dict[str, str]:
    """Return the header that asks for bytes from one position to another, or to the end; of all, none."""
    if start == 0 and end is None:
        return {}
    return {"Range": f"bytes={start}-{'' if end is None else end - 1}"}


def length_of(headers: Mapping[str, str]) -> int:
    """Return how many bytes an answer has, or would have.

    Raises:
        ValueError: it does not say that.
    """
    text = headers.get("content-length", "")
    if _COUNT.fullmatch(text) is None:
        raise ValueError("it does not say how long it is")
    return int(text)


def bytes_of(answer: HttpReply, start: int, end: int | None, etag: str | None = None) -> Iterator[bytes]:
    """Yield the bytes of an answer to a request for them, of the value with an ETag if one is given (A1, A2).

    Raises:
        TransportError: it is no answer about a value.
        BrokenAnswer: it has other bytes.
        ExternalBlobError: the value is a reference.
    """
    headers = answer.headers
    with understood():
        is_same = etag is None or headers["etag"] == etag
        is_external, _ = headers[KIND_HEADER] == EXTERNAL, headers["etag"]
    if is_external:
        with understood():
            where = headers["location"]
        raise ExternalBlobError(uri=where, reason=NOT_FOLLOWED)
    if not is_same:
        raise BrokenAnswer("it is of another value than the one that was asked for")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise BrokenAnswer("it is encoded, which nobody asked for")
    missing = _length(answer, start, end)
    for piece in answer.pieces:
        missing -= len(piece)
        if missing < 0:
            raise BrokenAnswer("it has more bytes than it says")
        yield piece
    if missing:
        raise BrokenAnswer("it has fewer bytes than it says")


def _length(answer: HttpReply, start: int, end: int | None) -> int:
    """Return how many bytes an answer has, which is one for this range."""
    if start == 0 and end is None:
        if answer.status != 200:
            raise BrokenAnswer("it is a part of the value, and all of it was asked for")
        with understood():
            return length_of(answer.headers)
    found = _PART.fullmatch(answer.headers.get("content-range", ""))
    if answer.status != 206 or found is None:
        raise BrokenAnswer("it is not the range that was asked for")
    first, last, size = (int(text) for text in found.groups())
    if first != start or last + 1 != (size if end is None else min(end, size)):
        raise BrokenAnswer("it is another range than the one that was asked for")
    return last + 1 - first
