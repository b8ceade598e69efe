"""A section that Ctrl-C cannot cut in half: the interrupt is delivered when it ends."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def shielded_from_interrupt() -> Iterator[None]:
    """Hold back SIGINT until the block ends; Python delivers signals to the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held and callable(before):
            before(*held[0])
