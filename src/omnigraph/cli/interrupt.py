"""What Ctrl-C leaves behind, in one line.

The engine notes on an interrupt what became of a write: that it landed, as which commit, or that the next
open finishes it (`core.shield`). An interrupt without a note came before anything could become visible.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unless_noted(text: str) -> Iterator[None]:
    """Say what an interrupt means that nobody noted anything on: the write had not begun to land."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not notes_of(interrupt):
            interrupt.add_note(text)
        raise


def notes_of(error: BaseException | None) -> list[str]:
    """Return what was noted on an interrupt, each thing once; of click's own exception it is the cause."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return list(dict.fromkeys(getattr(error, "__notes__", ())))
