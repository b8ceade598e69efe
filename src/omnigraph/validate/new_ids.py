"""ULIDs by the column, for millions of rows in many processes at once."""

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.clock import now_micros
from omnigraph.validate.columns import Column

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)  # Crockford's base 32
_PAIRS = np.stack([np.repeat(_ALPHABET, 32), np.tile(_ALPHABET, 32)], axis=1).copy().view(np.uint16).ravel()
_LENGTH, _HALF_BITS, _STAMP_BITS = 26, 40, 50  # ten characters of time, two halves of eight that count
_LOW_HALF = np.uint64((1 << _HALF_BITS) - 1)


class IdSource:
    """Makes ULIDs one by one or by the column.

    Every source starts counting at a random 79-bit number, so that sources in the same millisecond, such as
    attempts of one task, share no id.
    """

    def __init__(self, clock: Callable[[], int] = now_micros) -> None:
        """Take the clock, in microseconds, that stamps the ids."""
        self._stamp = clock() // 1_000
        self._next = int.from_bytes(os.urandom(10), "big") >> 1

    def __call__(self) -> str:
        """Return one id."""
        made: str = self.column(1)[0].as_py()
        return made

    def column(self, count: int) -> Column:
        """Return this many ids, increasing."""
        low = np.arange(count, dtype=np.uint64) + np.uint64(self._next & int(_LOW_HALF))
        high = np.uint64(self._next >> _HALF_BITS) + (low >> np.uint64(_HALF_BITS))
        self._next += count
        texts = np.empty((count, _LENGTH), dtype=np.uint8)
        texts[:, :10] = _characters(np.array([self._stamp], dtype=np.uint64), _STAMP_BITS)
        is_even = count > 0 and high[0] == high[-1]  # the upper half rises once in a million million ids
        texts[:, 10:18] = _characters(high[:1] if is_even else high, _HALF_BITS)
        texts[:, 18:] = _characters(low & _LOW_HALF, _HALF_BITS)
        offsets = np.arange(count + 1, dtype=np.int32) * np.int32(_LENGTH)
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets.data), pa.py_buffer(texts.data))


def made_ids(make_id: Callable[[], str], count: int) -> Column:
    """Return this many ids from a source of either kind."""
    if isinstance(make_id, IdSource):
        return make_id.column(count)
    return pa.array([make_id() for _ in range(count)], pa.utf8())


def _characters(numbers: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint8]:
    """Return the characters of numbers with this many bits, a multiple of ten, looked up in pairs."""
    shifts = np.arange(bits - 10, -1, -10, dtype=np.uint64)
    digits: npt.NDArray[np.uint64] = (numbers[:, None] >> shifts) & np.uint64(1023)
    return np.take(_PAIRS, digits).view(np.uint8)
