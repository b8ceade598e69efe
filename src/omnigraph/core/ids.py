"""ULIDs: 26 characters, sortable by the millisecond they were made in.

I1  Ids from one source are strictly increasing, even within a millisecond and when the clock steps back.
I2  After `fork` the child continues with its own entropy: parent and child never make the same id, whatever
    the clock shows, and the ids of both are greater than those made before the fork.
"""

import os
import threading
import weakref
from collections.abc import Callable

from omnigraph.core.clock import now_micros

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U
_RANDOM_BITS = 80
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)  # two characters per step
_SHIFTS = tuple(range(120, -1, -10))


class UlidSource:
    """Makes ULIDs; safe to share between threads."""

    def __init__(self, clock: Callable[[], int] = now_micros) -> None:
        """Take the clock, in microseconds, that stamps the ids."""
        self._clock = clock
        self._lock = threading.Lock()
        self._millisecond = 0
        self._random = 0
        _sources.add(self)

    def __call__(self) -> str:
        """Return a ULID greater than all that this source has returned (I1)."""
        with self._lock:
            now = self._clock() // 1_000
            if now > self._millisecond:
                self._millisecond = now
                self._random = _entropy()
            else:
                self._random += 1
            value = self._millisecond << _RANDOM_BITS | self._random
        return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])

    def restart_in_child(self) -> None:
        """Leave the ids of this millisecond to the parent (I2), and the lock to its threads."""
        self._lock = threading.Lock()
        self._millisecond += 1
        self._random = _entropy()


def _entropy() -> int:
    # The top bit stays clear: it leaves room to count up within the millisecond.
    return int.from_bytes(os.urandom(_RANDOM_BITS // 8), "big") >> 1


def ulid_millis(text: str) -> int | None:
    """Return the millisecond that a ULID was made in, or `None` if the text is not a ULID."""
    if len(text) != 26 or any(character not in _ALPHABET for character in text):
        return None
    value = 0
    for character in text[:10]:
        value = value << 5 | _ALPHABET.index(character)
    return value


# Process state, like its entropy: the hook below must find every source in the process.
_sources: weakref.WeakSet[UlidSource] = weakref.WeakSet()


def _restart_all_in_child() -> None:
    for source in tuple(_sources):
        source.restart_in_child()


os.register_at_fork(after_in_child=_restart_all_in_child)

new_ulid = UlidSource()
