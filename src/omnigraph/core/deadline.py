"""The time of a caller, for work whose length only its input decides: reading, checking and planning a text.

Whoever has a deadline puts its clock around the work; long loops look at it. Nobody in between hands it on,
and without a deadline a look costs next to nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOOK_EVERY = 1_024  # tokens between two looks: a millisecond of work

_clock: ContextVar[Callable[[], None] | None] = ContextVar("omnigraph_deadline", default=None)


@contextmanager
def deadline(check: Callable[[], None]) -> Iterator[None]:
    """Let work in the block end with what `check` raises, once the time is over."""
    token = _clock.set(check)
    try:
        yield
    finally:
        _clock.reset(token)


def look_at_deadline() -> None:
    """Go on if there is time.

    Raises:
        OmnigraphError: what the owner of the deadline raises.
    """
    check = _clock.get()
    if check is not None:
        check()
