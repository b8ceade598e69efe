"""Clocks that go on, and hearts that beat, when a test says so."""

import threading
from collections.abc import Callable

START_MICROS = 1_800_000_000_000_000


class FakeTime:
    """The clocks of one host: they go on only while somebody waits."""

    def __init__(self, micros: int = START_MICROS) -> None:
        self.micros = micros
        self.boot_s = 100.0
        self.while_waiting: Callable[[], None] = lambda: None
        self.waited_s = 0.0

    def clock(self) -> int:
        return self.micros

    def boot_clock(self) -> float:
        return self.boot_s

    def pass_by(self, seconds: float) -> None:
        self.micros += int(seconds * 1_000_000)
        self.boot_s += seconds

    def wait(self, seconds: float) -> None:
        self.pass_by(seconds)
        self.waited_s += seconds
        self.while_waiting()


class Pulse:
    """Lets hearts beat when a test says so, and never by themselves."""

    def __init__(self) -> None:
        self.rests: list[float] = []
        self._due = threading.Semaphore(0)
        self._resting = threading.Semaphore(0)

    def rest(self, closed: threading.Event, seconds: float) -> bool:
        self.rests.append(seconds)
        self._resting.release()
        while not closed.is_set():
            if self._due.acquire(timeout=0.01):
                return False
        return True

    def beat(self) -> None:
        """Let the one heart beat once, and wait until it has."""
        assert self._resting.acquire(timeout=60)
        self._due.release()
        assert self._resting.acquire(timeout=60)
        self._resting.release()  # it rests again

    def end(self) -> None:
        """Let the one heart beat once more, the last time."""
        assert self._resting.acquire(timeout=60)
        self._due.release()
        for thread in threading.enumerate():
            if thread.name == "omnigraph-writer":
                thread.join(timeout=60)
