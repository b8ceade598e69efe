"""Cancelling a call from outside of its thread: until it begins to have effects, and not afterwards.

Y1  A call that is cancelled before its effects begin has none: it ends with `CallCancelled`, at the next
    place that looks, and everything it made goes, as after an interrupt.
Y2  Once effects have begun, the call goes on to its end, whatever is asked; who asked learns the outcome.
Y3  Which of the two holds is decided at one place, under one lock: asking and beginning cannot both succeed.
Y4  A call may begin several times, one work behind the other. What is taken back is the last beginning: that
    work had no effect, and what the call did before it still had.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CallCancelled(BaseException):
    """What a cancelled call ends with, on its thread; like an interrupt, it is no error that is handled."""


class Cancellation:
    """Whether one call is to be cancelled, and whether it still can be."""

    def __init__(self) -> None:
        """Begin with neither."""
        self._lock = threading.RLock()
        self._wakers: list[Callable[[], object]] = []
        self._is_asked = False
        self._begun = 0

    @property
    def has_begun(self) -> bool:
        """Whether the call may have had effects."""
        return self._begun > 0

    def ask(self) -> bool:
        """Ask for the end of the call; return whether that came in time (Y3). Who waits is woken."""
        with self._lock:
            self._is_asked = True
            if self.has_begun:
                return False
            for wake in self._wakers:
                wake()
            return True

    def check(self) -> None:
        """End the call if that was asked for in time.

        Raises:
            CallCancelled: it was.
        """
        if self._is_asked and not self.has_begun:
            raise CallCancelled

    def begin(self) -> None:
        """Say that effects begin (Y2).

        Raises:
            CallCancelled: the call was cancelled before.
        """
        with self._lock:
            self.check()
            self._begun += 1

    def take_back(self) -> None:
        """Say that what began last had no effect: unless more has begun, the call can be cancelled (Y4)."""
        with self._lock:
            self._begun -= 1

    @contextmanager
    def waking(self, wake: Callable[[], object]) -> Iterator[None]:
        """Call `wake` if the call is cancelled while the block waits, or was before."""
        with self._lock:
            self._wakers.append(wake)
            if self._is_asked and not self.has_begun:
                wake()
        try:
            yield
        finally:
            with self._lock:
                self._wakers.remove(wake)


class _Current(threading.local):
    cancellation: Cancellation | None = None


_current = _Current()


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """Let a block on this thread be cancelled."""
    former, _current.cancellation = _current.cancellation, cancellation
    try:
        yield
    finally:
        _current.cancellation = former


def check_cancelled() -> None:
    """End this thread's call if it was cancelled in time (Y1)."""
    if _current.cancellation is not None:
        _current.cancellation.check()


def begin_effects() -> None:
    """Say that the effects of this thread's call begin, unless it was cancelled."""
    if _current.cancellation is not None:
        _current.cancellation.begin()


def take_back_effects() -> None:
    """Say that what this thread's call began last had no effect."""
    if _current.cancellation is not None:
        _current.cancellation.take_back()


@contextmanager
def woken(wake: Callable[[], object]) -> Iterator[None]:
    """Call `wake` if this thread's call is cancelled while the block waits."""
    if _current.cancellation is None:
        yield
        return
    with _current.cancellation.waking(wake):
        yield


def pause(seconds: float) -> None:
    """Wait, unless this thread's call is cancelled.

    Raises:
        CallCancelled: it was.
    """
    over = threading.Event()
    with woken(over.set):
        over.wait(max(0.0, seconds))
    check_cancelled()
