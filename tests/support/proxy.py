"""A proxy on loopback in front of an S3-compatible server: it records, delays and drops.

X1  A request is in the record before its answer leaves: what a client asks because of an answer starts after
    that answer's end. Requests that overlap were not waiting for each other.
X2  An answer that is dropped belongs to a request that the server has carried out. The connection ends
    without a byte, as it does when a network fails behind the server.
X3  A refusal repeats the request with all of its headers, as the answers of some servers do. The server
    behind never sees it.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from urllib.parse import parse_qs, unquote, urlsplit

KINDS = ("GET", "HEAD", "LIST", "PUT", "POST", "DELETE")
_OF_ONE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "server"})
_PATIENCE_S = 120  # of a server that shares its processors with a test suite


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """One request that the server has answered; times are seconds of one clock."""

    kind: str
    key: str  # of the object below its bucket, or the prefix that is listed
    start: float
    end: float
    status: int
    part: str = ""  # the range of bytes that is read; the page that a listing goes on from
    size: int = 0  # bytes of the answer


def longest_chain(requests: Sequence[StoreRequest]) -> int:
    """Return how many requests, at most, waited for each other: each started after the one before ended."""
    length, end = 0, float("-inf")
    for request in sorted(requests, key=lambda request: request.end):
        if request.start >= end:
            length, end = length + 1, request.end
    return length


class StoreProxy:
    """What the proxy has seen and what it does to answers; both may be changed while it runs."""

    def __init__(self, upstream: str) -> None:
        """Take the address of the server."""
        target = urlsplit(upstream)
        assert target.hostname is not None
        self.upstream = (target.hostname, target.port)
        self.endpoint = ""
        self.delay_s = 0.0
        self.drops: Callable[[StoreRequest], bool] = lambda _: False
        self.refuses = False
        self._seen: list[StoreRequest] = []
        self._lock = threading.Lock()

    def taken(self) -> list[StoreRequest]:
        """Return the requests since the last call, in the order in which they began."""
        with self._lock:
            seen, self._seen = self._seen, []
        return sorted(seen, key=lambda request: request.start)

    def record(self, request: StoreRequest) -> None:
        """Keep a request (X1)."""
        with self._lock:
            self._seen.append(request)


@contextmanager
def store_proxy(upstream: str) -> Iterator[StoreProxy]:
    """Yield a proxy in front of a server; it ends with the block."""
    proxy = StoreProxy(upstream)
    server = _Server(proxy)
    proxy.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="store-proxy", daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def asked(proxy: StoreProxy, work: Callable[[], object]) -> list[StoreRequest]:
    """Return what a piece of work asked of the store."""
    proxy.taken()
    work()
    return proxy.taken()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, proxy: StoreProxy) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.proxy = proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients close connections as they like."""


class _Connection(BaseHTTPRequestHandler):
    """One connection of a client; its requests come one after the other."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def parse_request(self) -> bool:
        self._start = monotonic()
        return super().parse_request()

    def do_GET(self) -> None:
        proxy, start = self.server.proxy, self._start
        if proxy.refuses:
            self._refuse()
            return
        answer, content = self._forward(proxy, self._body())
        if proxy.delay_s:
            threading.Event().wait(proxy.delay_s)
        request = self._described(start, answer.status, content)
        if proxy.drops(request):
            proxy.record(request)
            self.close_connection = True  # X2
            return
        length = answer.getheader("content-length") if self.command == "HEAD" else str(len(content))
        kept = [pair for pair in answer.getheaders() if pair[0].lower() not in _OF_ONE_CONNECTION]
        head = [*kept, *([("Content-Length", length)] if length is not None else [])]
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}", *(f"{name}: {value}" for name, value in head)]
        proxy.record(request)
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
        self.wfile.flush()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the record has it."""

    def _refuse(self) -> None:
        self._body()
        said = f"<Error><Code>AccessDenied</Code><Message>{self.requestline} {self.headers}</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said.encode("latin-1"))

    def _forward(self, proxy: StoreProxy, body: bytes | None) -> tuple[HTTPResponse, bytes]:
        upstream = HTTPConnection(*proxy.upstream, timeout=_PATIENCE_S)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        upstream.request(self.command, self.path, body=body, headers=headers)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        return answer, content

    def _body(self) -> bytes | None:
        length = self.headers.get("content-length")
        assert "transfer-encoding" not in self.headers, "clients of a store say how much they send"
        return None if length is None else self.rfile.read(int(length))

    def _described(self, start: float, status: int, content: bytes) -> StoreRequest:
        address = urlsplit(self.path)
        query = parse_qs(address.query, keep_blank_values=True)
        key = unquote(address.path).lstrip("/").partition("/")[2]
        kind, part = self.command, self.headers.get("range", "").removeprefix("bytes=")
        if kind == "GET" and ("list-type" in query or "prefix" in query):
            kind, key = "LIST", query.get("prefix", [""])[0]
            part = "next page" if "continuation-token" in query else ""
        return StoreRequest(kind, key, start, monotonic(), status, part, len(content))
