"""Sections that a signal cannot cut in half, and blocks after which held-back signals are delivered.

H1  From the start of a section to the end of the outermost block around it that may remove things, SIGINT,
    SIGTERM and SIGHUP wait: nothing is cleaned up because of a signal that came too late to stop anything.
H2  Then each of them goes once to its previous handler: a Python handler is called, and where there was none
    the system does what it does by default.
H3  What a handler raises carries the remarks of the section as notes: what became of the work.
H4  A forked child is in no section: it handles signals as its parent did before the section, and gets none of
    the signals held back for its parent.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], object] | int


class _Shield:
    """The signals held back; there is one shield, because Python delivers signals only to the main thread."""

    def __init__(self) -> None:
        self.sections = 0
        self.blocks = 0
        self.is_holding = False
        self.former: dict[int, _Handler] = {}
        self.arrived: dict[int, FrameType | None] = {}
        self.remarks: list[str] = []

    def take(self, number: int, frame: FrameType | None) -> None:
        """Keep a signal for later, or pass it on: one may come while the handlers are being restored."""
        if self.is_holding:
            self.arrived.setdefault(number, frame)
        else:
            _hand_on(number, frame, self.former.get(number, signal.SIG_IGN))

    def begin(self) -> None:
        if self.is_holding:
            return
        self.is_holding = True
        former, self.former = self.former, {}
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if handler == self.take:  # a signal interrupted the restoring
                handler = former[number]
            # None was installed outside of Python and could not be restored; an ignored signal stays ignored.
            if handler is not None and handler is not signal.SIG_IGN:
                self.former[number] = handler
                signal.signal(number, self.take)

    def end_if_free(self) -> None:
        """Restore the handlers and deliver, unless a section or a block is still open (H1, H2)."""
        if not self.is_holding or self.sections or self.blocks:
            return
        arrived, remarks = self.arrived, self.remarks
        self.arrived, self.remarks = {}, []
        self.is_holding = False
        for number, handler in self.former.items():
            signal.signal(number, handler)
        raised: BaseException | None = None
        for number, frame in arrived.items():
            try:
                _hand_on(number, frame, self.former[number])
            except BaseException as error:  # noqa: BLE001 - raised below, behind the other signals
                for remark in remarks:  # H3
                    error.add_note(remark)
                raised = error
        if raised is not None:
            raise raised

    def leave(self) -> None:
        """Restore the handlers in a forked child, whose main thread is the thread that forked (H4)."""
        self.is_holding = False
        self.arrived.clear()
        for number, handler in self.former.items():
            if signal.getsignal(number) == self.take:
                signal.signal(number, handler)


_shield = _Shield()


@contextmanager
def shielded() -> Iterator[None]:
    """Hold signals back for a section, and for the rest of the blocks around it (H1)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    shield = _shield  # a child forked in here gets another
    shield.sections += 1
    try:
        shield.begin()
        yield
    finally:
        shield.sections -= 1
        shield.end_if_free()


@contextmanager
def delivering_behind() -> Iterator[None]:
    """Mark a block that may remove things: what a section in it held back is delivered at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    shield = _shield  # a child forked in here gets another
    shield.blocks += 1
    try:
        yield
    finally:
        shield.blocks -= 1
        shield.end_if_free()


def remark(text: str) -> None:
    """Say what became of a section, for the receiver of a signal that was held back (H3)."""
    if threading.current_thread() is threading.main_thread() and _shield.is_holding:
        _shield.remarks.append(text)


@contextmanager
def noting(text: str) -> Iterator[None]:
    """Add a note to an interrupt that cuts off what comes after the work: the work itself is done (H3)."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as interrupt:
        interrupt.add_note(text)
        raise


def _hand_on(number: int, frame: FrameType | None, handler: _Handler) -> None:
    if callable(handler):
        handler(number, frame)
    elif handler == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def _begin_anew_in_child() -> None:
    global _shield  # noqa: PLW0603 - state of the process, as handlers are
    _shield.leave()
    _shield = _Shield()


os.register_at_fork(after_in_child=_begin_anew_in_child)
