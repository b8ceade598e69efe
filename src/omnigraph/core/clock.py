"""The only place that reads time, and the deadline of a caller.

A deadline is for work whose length depends on its input: reading, checking and planning a text. A caller puts
it around the work, and long loops look at it. No code in between passes it on, and without a deadline a look
costs next to nothing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOOK_EVERY = 1_024  # tokens between two looks: a millisecond of work
_clock: ContextVar[Callable[[], None] | None] = ContextVar("omnigraph_deadline", default=None)


def now_micros() -> int:
    """Return microseconds since the Unix epoch; every `created_at` comes from here."""
    micros = time.time_ns() // 1_000
    assert micros > 0, "the clock is set before the Unix epoch"
    return micros


def boot_clock() -> float:
    """Return seconds since the machine started, including time asleep; ages are measured with it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@contextmanager
def deadline(check: Callable[[], None]) -> Iterator[None]:
    """End the work in the block with what `check` raises once time is up."""
    token = _clock.set(check)
    try:
        yield
    finally:
        _clock.reset(token)


def look_at_deadline() -> None:
    """Return if there is time left.

    Raises:
        OmnigraphError: what the owner of the deadline raises.
    """
    check = _clock.get()
    if check is not None:
        check()
