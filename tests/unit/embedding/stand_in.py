"""A provider on this machine: answers what a test has laid out, and remembers what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.embedding.transport import Timing


@dataclass
class Answer:
    """One answer; `drips` sends the body byte by byte without an end, `hangs` sends nothing at all."""

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drips: bool = False
    hangs: bool = False
    drops: bool = False


@dataclass
class Asked:
    """One request that came in."""

    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class StandIn:
    """The server's address, the answers still to give (the last one for good) and the requests so far."""

    url: str
    answers: list[Answer]
    asked: list[Asked] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    _heard: threading.Condition = field(default_factory=threading.Condition)

    def hear(self, asked: Asked) -> None:
        """Remember a request."""
        with self._heard:
            self.asked.append(asked)
            self._heard.notify_all()

    def wait_for_requests(self, count: int) -> None:
        """Wait until so many have come in: whoever gave up waiting may be ahead of the server."""
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.asked) >= count, timeout=60)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    stand_in: StandIn


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        stand_in = self.server.stand_in
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        stand_in.hear(Asked(self.path, headers, body, self.client_address[1]))
        answer = stand_in.answers.pop(0) if len(stand_in.answers) > 1 else stand_in.answers[0]
        if answer.hangs or answer.drops:
            if answer.hangs:
                stand_in.released.wait(30)
            self.close_connection = True
            return
        content = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(10**6 if answer.drips else len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = answer.drips

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def stand_in(*answers: Answer) -> Iterator[StandIn]:
    """Serve answers on the loopback interface."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.stand_in = StandIn(f"http://127.0.0.1:{server.server_port}/v1", list(answers))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.stand_in
    finally:
        server.stand_in.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class FakeTime:
    """A clock that moves when somebody waits, and a little at each look."""

    step: float = 0.0
    now: float = 100.0
    waits: list[float] = field(default_factory=list)

    def timing(self) -> Timing:
        return Timing(self._look, self._wait)

    def _look(self) -> float:
        self.now += self.step
        return self.now

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
