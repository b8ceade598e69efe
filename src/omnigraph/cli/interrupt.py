"""What Ctrl-C leaves behind, in one line.

The engine adds a note to an interrupt that says what became of a write: that it landed, as which commit, or
that the next open finishes it (`core.shield`); a client, that a write was sent and not answered
(`client/http.py`). One without a note came before anything could be visible.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unless_noted(text: str) -> Iterator[None]:
    """Say what an interrupt without a note means: the write had not begun to land."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not notes_of(interrupt):
            interrupt.add_note(text)
        raise


def notes_of(error: BaseException | None) -> list[str]:
    """Return the notes of an interrupt, each once; for click's own exception, those of its cause."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return list(dict.fromkeys(getattr(error, "__notes__", ())))
