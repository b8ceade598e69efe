"""Several processes that serve the same graphs behind one address.

W1  The first worker opens the graphs alone, which settles what dead writers left; then the others start.
    The address is told when all of them answer. If one cannot start, none of them serves. Which graphs are
    quarantined is decided by the first: all others open all others, so that all workers serve the same.
W2  A worker that ends by itself is replaced. What it had acknowledged is durable, and what it was doing is
    settled by the next open or by the other workers, as after any crash.
W3  A signal to stop is passed on; every worker finishes what it has begun, and then this process ends.
W4  Workers end with this process, however it ends: each of them holds a pipe that ends with it.

This process opens no graph: Lance must not be forked, and nothing that fails in a worker can end it.
"""

import logging
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from omnigraph.core.errors import BadRequest
from omnigraph.server.access import decide_access
from omnigraph.server.metrics import SHARED_FOLDER
from omnigraph.server.serve import bound, tell_address
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import TOKEN_SOURCES

READY, READY_END = b"r", b"\0"  # between them the graphs that the worker has quarantined, one on a line
RESTART_WAIT_S = 1.0  # before a worker that could not start is tried again; doubled each time, up to
RESTART_WAIT_MAX_S = 30.0
_log = logging.getLogger("omnigraph.server")


def serve_by_workers(settings: ServerSettings, count: int) -> None:
    """Serve by several processes until a signal says to stop.

    Raises:
        BadRequest: the settings do not go together, the address cannot be listened on, or a worker could
            not start; its own line says why.
    """
    decide_access(settings)
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="omnigraph-metrics-"))
        listener = held.enter_context(bound(settings.bind))
        crew = held.enter_context(_crew(settings, listener, folder))
        crew.run(count)


@dataclass(slots=True)
class _Worker:
    number: int
    process: subprocess.Popen[bytes]
    is_ready: bool = False
    said: bytes = b""


@contextmanager
def _crew(settings: ServerSettings, listener: socket.socket, folder: str) -> Iterator["_Crew"]:
    with selectors.DefaultSelector() as selector:
        crew = _Crew(settings, listener, folder, selector)
        try:
            yield crew
        finally:
            crew.end()


@dataclass(slots=True)
class _Crew:
    """The workers, and what happens to them."""

    settings: ServerSettings
    listener: socket.socket
    folder: str
    selector: selectors.BaseSelector
    workers: dict[int, _Worker] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)  # when to start a worker again, by number
    failures: dict[int, int] = field(default_factory=dict)
    is_stopping: bool = False
    has_served: bool = False

    def run(self, count: int) -> None:
        """Start the workers, replace those that end, and return when all have ended after a signal."""
        with self._signals():
            self._start(0)
            while self.workers or (self.due and not self.is_stopping):
                for key, _ in self.selector.select(self._wait_s()):
                    if key.data is None:
                        self._stop(os.read(key.fd, 64))
                    else:
                        self._hear(key.data, count)
                for number in [number for number, at in self.due.items() if at <= time.monotonic()]:
                    if not self.is_stopping:
                        del self.due[number]
                        self._start(number)

    def end(self) -> None:
        """End what still runs: after an error here, or in the first start of a worker."""
        for worker in self.workers.values():
            worker.process.terminate()
        for worker in self.workers.values():
            worker.process.wait()
            self._close(worker)

    def _hear(self, worker: _Worker, count: int) -> None:
        assert worker.process.stdout is not None
        said = os.read(worker.process.stdout.fileno(), 4_096)
        if said:
            worker.said += said
            if not worker.said.endswith(READY_END):
                return
            worker.is_ready = True
            self.failures.pop(worker.number, None)
            if not self.has_served:
                self._has_started(count)
            return
        code = worker.process.wait()
        self._close(worker)
        del self.workers[worker.number]
        if self.is_stopping:
            return
        if not self.has_served:
            raise BadRequest(f"worker {worker.number} could not start; the log has its reason")
        _log.warning("worker ended with %d and is replaced", code, extra={"worker": worker.number})
        failures = 0 if worker.is_ready else self.failures.get(worker.number, 0) + 1
        self.failures[worker.number] = failures
        wait_s = 0.0 if not failures else min(RESTART_WAIT_S * 2 ** (failures - 1), RESTART_WAIT_MAX_S)
        self.due[worker.number] = time.monotonic() + wait_s

    def _has_started(self, count: int) -> None:
        """Go on after the first worker answers, and when all of them do (W1)."""
        if len(self.workers) == 1:
            found = self.workers[0].said.removeprefix(READY).removesuffix(READY_END).decode()
            self.settings = replace(
                self.settings, quarantined=frozenset(found.split()), requires_all_graphs=True
            )
            for number in range(1, count):
                self._start(number)
        if all(worker.is_ready for worker in self.workers.values()):
            self.has_served = True
            tell_address(self.listener)

    def _start(self, number: int) -> None:
        handle = self.listener.fileno()
        without = {name: value for name, value in os.environ.items() if name not in TOKEN_SOURCES}
        process = subprocess.Popen(  # noqa: S603 - this interpreter, and numbers
            [sys.executable, "-m", "omnigraph.server.worker", str(number), str(handle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[handle],
            env={**without, SHARED_FOLDER: self.folder},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        worker = _Worker(number, process)
        self.workers[number] = worker
        self.selector.register(process.stdout, selectors.EVENT_READ, worker)
        try:
            process.stdin.write(pickle.dumps(self.settings))
            process.stdin.flush()  # and kept open: its end tells the worker that this process is gone (W4)
        except BrokenPipeError:
            pass  # it has ended already, which is heard as any end

    def _close(self, worker: _Worker) -> None:
        from prometheus_client.multiprocess import mark_process_dead

        assert worker.process.stdin is not None
        assert worker.process.stdout is not None
        self.selector.unregister(worker.process.stdout)
        worker.process.stdin.close()
        worker.process.stdout.close()
        mark_process_dead(worker.process.pid, self.folder)  # type: ignore[no-untyped-call]  # no types there

    def _stop(self, _signals: bytes) -> None:
        self.is_stopping = True
        for worker in self.workers.values():
            worker.process.terminate()

    def _wait_s(self) -> float | None:
        if not self.due or self.is_stopping:
            return None
        return max(0.0, min(self.due.values()) - time.monotonic())

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Hear the signals that stop a server as bytes of a pipe, beside what workers say."""
        reader, writer = socket.socketpair()
        with reader, writer:
            reader.setblocking(False)
            writer.setblocking(False)
            self.selector.register(reader, selectors.EVENT_READ, None)
            former_fd = signal.set_wakeup_fd(writer.fileno())
            numbers = (signal.SIGINT, signal.SIGTERM)
            former = {number: signal.signal(number, lambda *_: None) for number in numbers}
            try:
                yield
            finally:
                for number, handler in former.items():
                    signal.signal(number, handler)
                signal.set_wakeup_fd(former_fd)
                self.selector.unregister(reader)
