"""The threads of reads: as few awake as are needed.

D1  One thread takes reads one after the other as long as it gets on with them. Threads that run Python take
    turns, and short reads on many threads mostly wait for a turn.
D2  Another is woken when none of those awake has taken a read for a moment, as when they wait for a disk or
    a store, or run long; and when the read that has waited longest has waited for several moments.
D3  A read whose caller goes before it has begun never begins.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

MOMENT_S = 0.002  # several short reads; a read that takes longer hardly notices to have waited so long
PATIENCE_S = 0.01  # what the oldest of many reads waits before it gets a second thread
Worked = TypeVar("Worked")


@dataclass(slots=True, eq=False)
class _Read:
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    waiter: "asyncio.Future[Any]"
    since: float
    is_given_up: bool = False


class ReadThreads:
    """Threads that are started when there is work for them, and woken when it does not get on without."""

    def __init__(self, threads_max: int) -> None:
        """Start none yet."""
        self._threads_max = threads_max
        self._lock = threading.Lock()
        self._waiting: deque[_Read] = deque()
        self._asleep: list[threading.Lock] = []  # what wakes each; the last to fall asleep is woken first
        self._started = self._awake = self._busy = self._taken = 0
        self._watched: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether a read runs, or waits to."""
        return bool(self._waiting) or self._busy > 0

    async def run(self, work: Callable[[], Worked]) -> Worked:
        """Run a read and return what it made."""
        read = self.begin(work)
        try:
            made: Worked = await read.waiter
        except asyncio.CancelledError:
            read.is_given_up = True
            raise
        return made

    def begin(self, work: Callable[[], object]) -> _Read:
        """Line up a read, whether or not anybody waits for it."""
        loop = asyncio.get_running_loop()
        read = _Read(work, loop, loop.create_future(), loop.time())
        with self._lock:
            assert not self._is_closed, "requests have ended before threads are closed"
            self._waiting.append(read)
            if not self._awake:
                self._wake()
            elif self._watched is not loop:
                self._watched = loop
                loop.call_later(MOMENT_S, self._look, loop, self._taken)
        return read

    def close(self) -> None:
        """End the threads that wait for work; nobody waits for the others."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
            while self._asleep:
                self._asleep.pop().release()

    def _wake(self) -> None:
        if self._asleep:
            self._awake += 1
            self._asleep.pop().release()
        elif self._started < self._threads_max:
            self._awake += 1
            self._started += 1
            name = f"omnigraph-read_{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _look(self, loop: asyncio.AbstractEventLoop, taken: int) -> None:
        """Wake another thread if those awake do not get on, and look again as long as reads wait (D2)."""
        with self._lock:
            if not self._waiting:
                self._watched = None
                return
            if taken == self._taken or loop.time() - self._waiting[0].since > PATIENCE_S:
                self._wake()
            loop.call_later(MOMENT_S, self._look, loop, self._taken)

    def _serve(self) -> None:
        alarm = threading.Lock()
        alarm.acquire()
        while True:
            with self._lock:
                read = self._waiting.popleft() if self._waiting else None
                if read is not None:
                    self._taken += 1
                    self._busy += 1
                elif self._is_closed:
                    return
                else:
                    self._awake -= 1
                    self._asleep.append(alarm)
            if read is None:
                alarm.acquire()
                continue
            outcome = None if read.is_given_up else _carry_out(read)
            with self._lock:
                self._busy -= 1  # before anybody is told: whoever looks then finds it done
            if outcome is not None:
                with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                    read.loop.call_soon_threadsafe(_tell, read.waiter, *outcome)
            del read, outcome  # what it made is the caller's alone


def _carry_out(read: _Read) -> tuple[object, BaseException | None]:
    try:
        return read.work(), None
    except BaseException as error:  # noqa: BLE001 - it is the caller's
        return None, error


def _tell(waiter: "asyncio.Future[Any]", made: object, failure: BaseException | None) -> None:
    if waiter.done():
        return  # its caller has gone
    if failure is None:
        waiter.set_result(made)
    else:
        waiter.set_exception(failure)
