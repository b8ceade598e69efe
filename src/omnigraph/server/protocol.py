"""HTTP as it comes from a socket: bounded heads, and answers of ours to what is not HTTP.

P1  The line and the headers of a request are bounded: no more of them is ever held, 414 or 431 is the answer.
P2  What cannot be read as HTTP is answered as every error is, with an id that is also in the log, and the
    connection ends. No byte of it is repeated, in the answer or in the log.
P3  Answers keep their order: what is refused behind a request that still runs is refused after its answer.
P4  A head has as long to arrive as a body; a connection on which none comes ends. So has the rest of a body
    that nobody reads, since its request is answered.
P5  What comes behind a body is no header: trailers are counted with the headers, and dropped.
P6  No request runs with a part of its input missing.

An application is called when a head has been read, so none of this can be done in one. Uvicorn takes the
class of its protocol as a setting, and tells a subclass of each part of a head as it is read; its parser is
the one in C, which a server needs for speed anyway.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from omnigraph.core.ids import UlidSource
from omnigraph.server.answers import error_answer
from omnigraph.server.middleware import REQUEST_ID, given_id
from omnigraph.server.observed import UNROUTED
from omnigraph.server.refusal import BODY_IS_BROKEN, Refusal, malformed, too_slow

TARGET_BYTES_MAX = 32 * 1024  # a path and its parameters: eight tokens of pages, and room for texts as ids
HEADER_BYTES_MAX = 64 * 1024  # names and values together: what proxies add is a few kB, the largest token 4
HEADERS_MAX = 128  # a browser behind two proxies sends thirty
LINGER_S = 2.0  # what is still on its way is taken and dropped: unread, it would have the answer dropped
_VERSIONS = frozenset({"1.0", "1.1"})
_BETWEEN = 4  # bytes around a header: a colon, a blank and the end of its line
_log = logging.getLogger("omnigraph.server.requests")


def http_of(head_wait_s: int) -> type[HttpToolsProtocol]:
    """Return the class of the connections of a server."""

    class Http(BoundedHttp):
        wait_s = head_wait_s

    return Http


class BoundedHttp(HttpToolsProtocol):
    """One connection, which waits `wait_s` seconds for a head."""

    wait_s = 20

    _is_in_head, _has_asked, _has_body = True, False, False
    _begun = 0.0  # when the first byte of a head came
    _head_bytes = _header_bytes = 0
    _frame_bytes = 0  # since the last part of a body: the frames of chunks, and trailers
    _refused: Refusal | None = None  # the head that is not answered yet
    _is_over = False  # nothing more is read
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Wait for a head, and not for ever (P4)."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came; a head that goes on in a later piece is counted as it comes (P1)."""
        if self._is_over:
            return
        was_in_head, self._has_body = self._is_in_head and self._begun > 0, False
        super().data_received(data)
        if self._is_over or not self._is_in_head:
            self._count_frame(len(data))
            return
        if not self._begun:
            if data.strip(b"\r\n"):
                return  # it was the end of a request
            self._begun = time.monotonic()  # the blank lines that may come before a head are part of it
        # The parser tells of a header at its end, and one without an end would be held as it grows.
        if was_in_head:
            self._head_bytes += len(data)
        elif not self._has_body:  # behind a body it begins somewhere: it is counted from the next piece on
            self._head_bytes = len(data.rpartition(b"\r\n\r\n")[2])
        if self._head_bytes > TARGET_BYTES_MAX + HEADER_BYTES_MAX:
            self._refuse_head(_large_headers())
        elif self._head_timer is None:
            self._await_head()

    def _count_frame(self, size: int) -> None:
        """Bound what comes of a body without being a part of it: a trailer without an end is held (P5)."""
        self._frame_bytes = 0 if self._has_body else self._frame_bytes + size
        if self._frame_bytes > HEADER_BYTES_MAX:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """Begin to count a head."""
        super().on_message_begin()
        self._is_in_head, self._begun, self._head_bytes, self._header_bytes = True, time.monotonic(), 0, 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the target (P1)."""
        super().on_url(url)
        if len(self.url) > TARGET_BYTES_MAX:
            self._fail(_too_large(414, f"the target of the request is over {TARGET_BYTES_MAX} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header (P1)."""
        self._header_bytes += len(name) + len(value) + _BETWEEN
        if self._header_bytes > HEADER_BYTES_MAX:
            self._fail(_large_headers())
        if not self._is_in_head:
            return  # it came behind the body, when who asks and what is asked have been said (P5)
        super().on_header(name, value)
        if len(self.headers) > HEADERS_MAX:
            self._fail(_too_large(431, f"there are more than {HEADERS_MAX} headers"))

    def on_headers_complete(self) -> None:
        """Start the request, or line it up behind the one that runs."""
        self._check_head()
        super().on_headers_complete()
        self._is_in_head, self._begun, self._has_asked = False, 0.0, True
        self._frame_bytes = 0
        self._stop_waiting()
        if self.parser.should_upgrade():  # to something that nobody here speaks: what follows is not read
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._has_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the next head."""
        super().on_message_complete()
        self._is_in_head = True
        self._stop_waiting()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words, said in plain text
        """Refuse what the parser did not take, or what stopped it (P2)."""
        if self._is_over:
            return
        if self._is_in_head:
            self._refuse_head(self._refused or malformed("request"))
            return
        self._is_over = True
        self._stop_waiting()
        if self.cycle.response_complete:
            self._end()
            return
        # The request that this is the body of has begun, so its answer tells, when its turn comes (P3).
        self.cycle.keep_alive = False
        self.cycle.transport = _Lingering(self.transport, self._end)  # type: ignore[assignment]  # what a cycle uses
        self.cycle.scope["state"][BODY_IS_BROKEN] = True
        self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Go on with what is lined up; a refusal comes last (P3)."""
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self._is_over and self._refused is not None and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._answer(self._refused)
        elif is_last and not self._is_in_head and not self._is_over and not self.transport.is_closing():
            self._await_head()  # nobody reads the rest of the body any more (P4)

    def _check_head(self) -> None:
        """Refuse a head that HTTP does not allow, and one whose body would not be read (P6)."""
        version = self.parser.get_http_version()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if version not in _VERSIONS or hosts > 1 or (version == "1.1" and not hosts):
            self._fail(malformed("request"))
        if self.parser.should_upgrade() and any(_says_body(*header) for header in self.headers):
            self._fail(_upgrade_with_body())

    def _fail(self, refusal: Refusal) -> None:
        """Stop the parser, which calls `send_400_response`."""
        self._refused = refusal
        raise ValueError(refusal.status)

    def _refuse_head(self, refusal: Refusal) -> None:
        self._is_over, self._refused = True, refusal
        self._stop_waiting()
        if not self.pipeline and (self.cycle is None or self.cycle.response_complete):
            self._answer(refusal)

    def _answer(self, refusal: Refusal) -> None:
        """Answer without an application, tell of it, and end the connection."""
        request_id = given_id(self.headers or ()) or UlidSource()().encode()
        made = error_answer(refusal, request_id=request_id.decode())
        headers = [*made.raw_headers, (REQUEST_ID, request_id)]
        lines = [STATUS_LINE[refusal.status], *(b"%b: %b\r\n" % header for header in headers), b"\r\n"]
        about = {
            "request_id": request_id.decode(),
            "actor": None,
            "graph": None,
            "method": UNROUTED,
            "route": UNROUTED,
            "status": refusal.status,
            "ms": round((time.monotonic() - self._begun) * 1_000, 3) if self._begun else 0.0,
        }
        _log.info("request", extra=about)
        self.transport.write(b"".join([*lines, bytes(made.body)]))
        self._end()

    def _end(self) -> None:
        """End the connection; what is on its way is taken, so that the answer is not lost."""
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.loop.call_later(LINGER_S, self.transport.close)
        else:
            self.transport.close()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.wait_s, self._head_is_late)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._is_over:
            return
        if not self._is_in_head:
            if self.cycle.response_complete:
                self._is_over = True
                self._end()
        elif self._begun:
            self._refuse_head(too_slow(self.wait_s, "head"))
        elif not self._has_asked:
            self.transport.close()  # nothing was asked


def _large_headers() -> Refusal:
    return _too_large(431, f"the headers are over {HEADER_BYTES_MAX} bytes")


class _Lingering:
    """A transport for one last answer, at whose end what is still on its way is taken."""

    def __init__(self, transport: asyncio.Transport, end: Callable[[], None]) -> None:
        self.write, self.is_closing, self.close = transport.write, transport.is_closing, end


def _says_body(name: bytes, value: bytes) -> bool:
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")


def _upgrade_with_body() -> Refusal:
    """Return the refusal of a body behind the offer of another protocol, at which the parser stops."""
    message = "a request with a body cannot offer another protocol: leave Upgrade out"
    return Refusal(400, "bad_request", message, {"Connection": "close"})


def _too_large(status: int, message: str) -> Refusal:
    return Refusal(status, "bad_request", message, {"Connection": "close"})
