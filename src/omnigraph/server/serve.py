"""Running a server: open, listen, say where, serve until a signal comes, finish, end.

S1  Graphs are open, and what dead writers left is settled, before the address is bound.
S2  SIGTERM and SIGINT stop new work. Requests that run are answered, commits in flight are finished, also
    those whose callers have gone; then the process ends with 0. Reads that last longer than the time to
    drain are given up.
"""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from omnigraph.core.errors import BadRequest
from omnigraph.server.access import Access
from omnigraph.server.app import build_app
from omnigraph.server.protocol import http_of
from omnigraph.server.serving import Serving
from omnigraph.server.settings import Bind, ServerSettings

LISTENING = "OMNIGRAPH_LISTEN_ADDR"  # what the line begins with that says where; no setting
BACKLOG = 2_048
_log = logging.getLogger("omnigraph.server")


def serve(settings: ServerSettings) -> None:
    """Serve until a signal says to stop.

    Raises:
        BadRequest: the settings do not go together, or the address cannot be listened on.
        OmnigraphError: a graph cannot be opened.
    """
    serving = Serving.begin(settings)
    try:
        with bound(settings.bind) as listener:
            serve_on(serving, listener, ready=lambda: tell_address(listener))
    finally:
        serving.close()


def serve_on(serving: Serving, listener: socket.socket, *, ready: Callable[[], None]) -> None:
    """Serve on a bound address until a signal says to stop; `ready` is called when it answers."""
    try:
        if serving.access is Access.OPEN:
            _log.warning("open to everybody who can reach it: there are no tokens and no policy")
        server = _Server(config_of(serving), ready)
        with _stopping(server, serving):
            server.run(sockets=[listener])
            serving.close()
    finally:
        serving.close()
    if serving.threads.is_reading:
        _log.warning("reads that did not end in time are given up")
        logging.shutdown()
        os._exit(0)  # the interpreter would wait for their threads (S2)


def config_of(serving: Serving) -> uvicorn.Config:
    """Return what uvicorn is to serve, and how."""
    limits = serving.settings.limits
    return uvicorn.Config(
        build_app(serving),
        http=http_of(limits.body_wait_s),
        log_config=None,  # what uvicorn tells goes the way of the server's own log
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",  # no route speaks it, and no check of a request would see it
        backlog=BACKLOG,
        timeout_graceful_shutdown=limits.drain_wait_s,
    )


class _Server(uvicorn.Server):
    """Says when it listens, and leaves signals to `_stopping`."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, then say so."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the original sends signals again when it ends, and the process would end by them."""
        yield


@contextmanager
def _stopping(server: uvicorn.Server, serving: Serving) -> Iterator[None]:
    """Let the signals end the server, and not the process before its work is done (S2)."""

    def stop(number: int, frame: FrameType | None) -> None:
        serving.events.stopping.set()  # streams of commits have no end of their own
        server.handle_exit(number, frame)

    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def bound(bind: Bind) -> Iterator[socket.socket]:
    """Bind the address; whoever serves on it begins to listen.

    Raises:
        BadRequest: it is taken, or not an address of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (
        ValueError,
        OSError,
    ) as error:  # ValueError: no name of a machine is like this host
        reason = (error.strerror or error) if isinstance(error, OSError) else "no machine can be called so"
        raise BadRequest(f"cannot listen on {bind.host:.200}:{bind.port}: {reason}") from error
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            raise BadRequest(
                f"cannot listen on {bind.host}:{bind.port}: {error.strerror or error}"
            ) from error
        yield listener


def tell_address(listener: socket.socket) -> None:
    """Print where the server listens."""
    sys.stdout.write(f"{LISTENING}={_shown(listener)}\n")
    sys.stdout.flush()


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{host}:{port}"
