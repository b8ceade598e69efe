"""What a request for bytes asks for: which of them, and under which conditions.

N1  Conditions are weighed in one order: If-Match, If-None-Match, If-Range. The first and the last compare
    strongly, so a weak ETag never fulfils them; what cannot be read as a list of ETags matches nothing.
N2  One range of bytes is kept. Several, another unit and what cannot be read count as none: the caller gets
    the whole value, as it would from a server that knows no ranges.
"""

import re
from dataclasses import dataclass
from enum import Enum

from starlette.requests import Request

from omnigraph.core.blob_errors import BlobRangeError

_RANGE = re.compile(r"[ \t]*bytes[ \t]*=[ \t]*(\d*)-(\d*)[ \t]*", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')
_TAGS = re.compile(rf"[ \t,]*(?:{_TAG.pattern}[ \t]*(?:,[ \t,]*|$))+")
_DIGITS_MAX = 19  # of a position; a longer number is behind the end of anything


class Weighed(Enum):
    """What the conditions of a request come to."""

    SEND = "send"
    NOT_MODIFIED = "not modified"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ByteSpan:
    """Bytes from one position to another."""

    start: int
    end: int


def weigh(request: Request, etag: str) -> Weighed:
    """Weigh If-Match and If-None-Match against a strong ETag (N1)."""
    wanted = _combined(request, "if-match")
    if wanted is not None and not _matches(wanted, etag, is_strong=True):
        return Weighed.FAILED
    unwanted = _combined(request, "if-none-match")
    if unwanted is not None and _matches(unwanted, etag, is_strong=False):
        return Weighed.NOT_MODIFIED
    return Weighed.SEND


def wanted_span(request: Request, etag: str, length: int) -> ByteSpan | None:
    """Return the bytes that a request asks for; `None` is all of them (N2).

    Raises:
        BlobRangeError: the value ends before the first of them.
    """
    given = request.headers.getlist("range")
    if len(given) != 1 or (found := _RANGE.fullmatch(given[0])) is None:
        return None
    condition = request.headers.getlist("if-range")
    if condition and condition != [etag]:  # a date, a weak ETag, another one
        return None
    first, last = (_position(text) for text in found.groups())
    if first is None:
        return None if last is None else _suffix(last, length)
    if last is not None and last < first:
        return None
    if first >= length:
        raise BlobRangeError(start=first, end=None if last is None else last + 1, length=length)
    return ByteSpan(first, length if last is None else min(last + 1, length))


def _suffix(count: int, length: int) -> ByteSpan:
    if not count or not length:
        raise BlobRangeError(start=length, end=None, length=length)
    return ByteSpan(max(0, length - count), length)


def _position(text: str) -> int | None:
    if not text:
        return None
    return int(text) if len(text) <= _DIGITS_MAX else 10**_DIGITS_MAX


def _combined(request: Request, name: str) -> str | None:
    given = request.headers.getlist(name)
    return ", ".join(given) if given else None


def _matches(given: str, etag: str, *, is_strong: bool) -> bool:
    if given.strip() == "*":
        return True
    if _TAGS.fullmatch(given) is None:
        return False
    return any(tag == etag and not (weak and is_strong) for weak, tag in _TAG.findall(given))
