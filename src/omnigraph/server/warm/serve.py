"""Running a warm server: hold the place, open, listen, answer, end.

Z1  One server at a place: it holds a lock for as long as it lives, and the system lets go of it. A socket
    without that lock is stale, and the next server replaces it.
Z2  Only processes of the same user are listened to; the socket has mode 0600 from its first moment on.
Z3  On a signal, when it is told to, when nobody has asked for a while, and when its graph is gone: nothing
    new is taken, what runs is answered, commits in flight are finished, and it ends with 0. A read that lasts
    longer than the time to drain is given up.
"""

import fcntl
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from omnigraph import __version__
from omnigraph.client.warm.link import Link, PeerGone
from omnigraph.client.warm.place import SOCKET_MODE, WarmPlace, require_own_peer
from omnigraph.client.warm.settings import digest_of_settings
from omnigraph.core.environment import number_setting
from omnigraph.core.errors import AlreadyExistsError, BadRequest
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.server.settings import DRAIN_WAIT, ServerLimits
from omnigraph.server.warm.calls import Calls, Warnings
from omnigraph.server.warm.origin import Origin
from omnigraph.storage.control.uri import GraphRoot

CONNECTIONS_MAX = 64  # at once; whoever comes then opens the graph itself
HELLO_WAIT_S = 5.0  # for the first words of a connection
_BACKLOG = 128
_LOOK_S = 0.5  # how often to look whether the last connection has ended, when the time is up
_log = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class WarmSettings:
    """Which graph, where to listen, and how long without being asked."""

    root: GraphRoot
    place: WarmPlace
    idle_s: float


def serve_warm(settings: WarmSettings, ready: Callable[[], object]) -> None:
    """Serve until a signal comes, or until nobody needs it; `ready` is called when it listens.

    Raises:
        AlreadyExistsError: another server has the place.
        BadRequest: there can be no socket at the place, or a setting is malformed.
        OmnigraphError: the graph cannot be opened.
    """
    settings.place.make_folder()
    with held(settings.place):
        server = _WarmServer(settings)
        log = logging.getLogger("omnigraph")
        log.addHandler(warnings := Warnings(server.give_up_settings))
        try:
            with open_graph(settings.root.uri, maintenance="inline") as graph:
                server.require_good_settings()
                origin = Origin(settings.root.uri, is_local=settings.root.is_local)
                with server.ending_on_signals():
                    try:
                        server.run(graph, origin, ready)
                    finally:
                        server.finish_writes()
                        origin.close()
        finally:
            log.removeHandler(warnings)
    if server.is_answering:
        _log.warning("reads that did not end in time are given up")
        logging.shutdown()
        os._exit(0)  # the interpreter would wait for their threads (Z3)


@contextmanager
def held(place: WarmPlace) -> Iterator[None]:
    """Be the only server at a place (Z1).

    Raises:
        AlreadyExistsError: another one is.
    """
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, SOCKET_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise AlreadyExistsError(f"a warm server of {place.root} runs already") from error
    try:
        yield
    finally:
        os.close(descriptor)


class _WarmServer:
    """The connections of one server."""

    def __init__(self, settings: WarmSettings) -> None:
        self._settings = settings
        self._digest = digest_of_settings()
        usual = ServerLimits().drain_wait_s
        self._drain_s = number_setting(DRAIN_WAIT, usual, least=1)
        self._began, self._asked_at = time.time(), time.monotonic()
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, tuple[Link, Calls]] = {}
        self._answered = 0
        self._is_ending = self._has_bad_settings = False
        self._waking, self._woken = socket.socketpair()

    def run(self, graph: Graph, origin: Origin, ready: Callable[[], object]) -> None:
        """Listen until the end (Z3)."""
        path = self._settings.place.socket
        with suppress(FileNotFoundError):
            path.unlink()  # of a server that died (Z1)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            mask = os.umask(0o777 & ~SOCKET_MODE)
            try:
                listener.bind(str(path))  # Z2
            except OSError as error:
                raise BadRequest(f"{path} cannot be listened on: {error.strerror or error}") from error
            finally:
                os.umask(mask)
            listener.listen(_BACKLOG)
            try:
                self._asked_at = time.monotonic()
                ready()
                self._listen(listener, graph, origin)
            finally:
                path.unlink(missing_ok=True)
        self._drain()

    @contextmanager
    def ending_on_signals(self) -> Iterator[None]:
        """Let signals end the server, also a second one while it ends: they cut nothing off (Z3)."""

        def stop(_number: int, _frame: FrameType | None) -> None:
            self.end()

        former = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        # The system may give a signal to a thread of Lance: that alone would not wake the one that listens.
        self._waking.setblocking(False)
        former_waking = signal.set_wakeup_fd(self._waking.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(former_waking)
            for number, handler in former.items():
                signal.signal(number, handler)
            self._waking.close()
            self._woken.close()

    def end(self) -> None:
        """Let the server end; from any thread, and from the handler of a signal."""
        self._is_ending = True
        with suppress(OSError):
            self._waking.send(b"x")

    def give_up_settings(self) -> None:
        """Take no call any more: there is something to warn of in the settings."""
        self._has_bad_settings = True

    def require_good_settings(self) -> None:
        """Make sure that there was nothing to warn of.

        Raises:
            BadRequest: there was.
        """
        if self._has_bad_settings:
            raise BadRequest("a setting in the environment is malformed: a warm server would hide that")

    def finish_writes(self) -> None:
        """Wait until every write that was taken has ended."""
        for thread, (_, calls) in self._connections():
            if calls.is_writing:
                thread.join()

    @property
    def is_answering(self) -> bool:
        """Whether something is still being answered."""
        return bool(self._connections())

    def _listen(self, listener: socket.socket, graph: Graph, origin: Origin) -> None:
        while not self._is_ending:
            left = self._asked_at + self._settings.idle_s - time.monotonic()
            if left <= 0 and not self.is_answering:
                _log.info("nobody has asked for %d s", self._settings.idle_s)
                return
            found, _, _ = select.select([listener, self._woken], [], [], max(left, _LOOK_S))
            if listener in found:
                with suppress(OSError):
                    self._begin(listener.accept()[0], graph, origin)

    def _begin(self, end: socket.socket, graph: Graph, origin: Origin) -> None:
        """Answer one connection, on a thread of its own."""
        link = Link(end)
        try:
            require_own_peer(end)  # Z2
        except OSError:
            link.close()
            return

        def may_begin() -> bool:
            if not origin.is_there():
                _log.info("the graph is no longer there")
                self.end()
            return not (self._is_ending or self._has_bad_settings)

        calls = Calls(graph, link, may_begin)
        thread = threading.Thread(target=self._answer, args=(link, calls), daemon=True)
        with self._lock:
            self._open[thread] = (link, calls)
        thread.start()

    def _answer(self, link: Link, calls: Calls) -> None:
        try:
            link.wait_at_most(HELLO_WAIT_S)
            words = link.hear()
            link.wait_at_most(None)
            match words.get("ask"):
                case "status":
                    link.say(**self._status(words))
                case "stop":
                    link.say(stopping=True)
                    self.end()
                case _:
                    refusal = self._refusal(words)
                    link.say(ready=refusal is None, refusal=refusal)
                    if refusal is None:
                        self._asked_at = time.monotonic()
                        self._answered += 1
                        calls.serve()
                        self._asked_at = time.monotonic()
        except PeerGone:
            return
        finally:
            link.close()
            with self._lock:
                del self._open[threading.current_thread()]

    def _refusal(self, words: dict[str, Any]) -> str | None:
        """Return why the calls of a command are not taken; None if they are."""
        if words.get("version") != __version__:
            return "version"
        if words.get("settings") != self._digest or self._has_bad_settings:
            return "settings"
        if words.get("root") != self._settings.root.uri:
            return "graph"
        return "busy" if len(self._connections()) > CONNECTIONS_MAX or self._is_ending else None

    def _status(self, words: dict[str, Any]) -> dict[str, object]:
        return {
            "version": __version__,
            "root": self._settings.root.uri,
            "began_at": int(self._began * 1_000_000),
            "idle_s": self._settings.idle_s,
            "commands": self._answered,
            "refusal": self._refusal(words),
        }

    def _connections(self) -> list[tuple[threading.Thread, tuple[Link, Calls]]]:
        with self._lock:
            return list(self._open.items())

    def _drain(self) -> None:
        """Let what runs be answered, and cut what takes too long (Z3)."""
        self._is_ending = True
        for _, (link, _) in self._connections():
            link.shut(is_answering=True)
        until = time.monotonic() + self._drain_s
        for thread, _ in self._connections():
            thread.join(max(until - time.monotonic(), 0))
        for _, (link, calls) in self._connections():
            if not calls.is_writing:
                link.shut(is_answering=False)
