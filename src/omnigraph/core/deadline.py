"""A caller's deadline, for work whose length depends on its input: reading, checking and planning a text.

A caller with a deadline puts it around the work, and long loops look at it. No code in between passes it on,
and without a deadline a look costs next to nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOOK_EVERY = 1_024  # tokens between two looks: a millisecond of work

_clock: ContextVar[Callable[[], None] | None] = ContextVar("omnigraph_deadline", default=None)


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
