"""Paths as they were sent: a segment is one segment, whatever it contains.

The server gives applications a path that is already decoded, in which the branch `review/june` is two
segments. So requests are routed by the raw path, segment by segment, and each segment that is a value is
decoded once, here: `%252F` means the text `%2F`.
"""

import re
from urllib.parse import quote, unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.core.errors import BadRequest

_UNRESERVED = "-._~"
_PLAIN = re.compile(rb"[A-Za-z0-9_.~/-]*")  # a path that says the same when it is decoded and encoded again


class RawPaths:
    """Gives the router the segments of the raw path, each of them in one spelling."""

    def __init__(self, app: ASGIApp) -> None:
        """Take what comes next."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Replace the path of a request."""
        if scope["type"] == "http":
            scope = {**scope, "path": routed_path(scope["raw_path"])}
        await self.app(scope, receive, send)


def routed_path(raw: bytes) -> str:
    """Return a raw path with every segment decoded and encoded again, which leaves no two spellings of it.

    Raises:
        BadRequest: a segment is not valid text.
    """
    if _PLAIN.fullmatch(raw):
        return raw.decode()
    try:
        decoded = [unquote_to_bytes(segment).decode() for segment in raw.partition(b"?")[0].split(b"/")]
    except UnicodeDecodeError:
        raise BadRequest("the path is not valid UTF-8") from None
    return "/".join(quote(segment, safe=_UNRESERVED) for segment in decoded)


def decoded_segment(segment: str) -> str:
    """Return the value of a segment of `routed_path`, which is always valid."""
    return unquote_to_bytes(segment).decode()
