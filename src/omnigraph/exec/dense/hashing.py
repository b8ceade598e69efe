"""Hashes of strings, eight bytes at a time, for whole Arrow arrays and for single keys alike.

The hash orders the id index; equality is always decided by the strings themselves.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.arrays import Positions
from omnigraph.exec.dense.arrays import words

Hashes: TypeAlias = npt.NDArray[np.uint64]

_BLOCK = 65_536  # strings hashed at a time: their intermediate arrays stay in the processor's cache
_SEED, _STEP, _FINAL = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_MASK = 2**64 - 1
_TAILS = np.array([(1 << 8 * length) - 1 for length in range(8)], np.uint64)  # by how many bytes a word has


def hash_text(text: str) -> int:
    """Return the hash of one string."""
    data = text.encode()
    value = (_SEED ^ len(data)) & _MASK
    for start in range(0, len(data), 8):
        value = (value ^ int.from_bytes(data[start : start + 8], "little")) * _STEP & _MASK
        value ^= value >> 29
    value = value * _FINAL & _MASK
    return value ^ value >> 32


def hash_strings(strings: "pa.Array[Any]") -> Hashes:
    """Return the hashes of strings without nulls."""
    is_large = pa.types.is_large_string(strings.type)
    _, offset_buffer, data_buffer = strings.buffers()
    hashes = np.empty(len(strings), np.uint64)
    if not len(strings):
        return hashes
    dtype = np.dtype(np.int64 if is_large else np.int32)
    offsets = words(offset_buffer, dtype)[strings.offset : strings.offset + len(strings) + 1]
    content = words(data_buffer, np.dtype(np.uint8))
    for start in range(0, len(strings), _BLOCK):
        part = offsets[start : start + _BLOCK + 1].astype(np.int64)
        first, last = int(part[0]), int(part[-1])
        data = np.zeros(last - first + 8, np.uint8)  # words may reach beyond the last byte
        data[: last - first] = content[first:last]
        hashes[start : start + _BLOCK] = _hash_block(part[:-1] - first, np.diff(part), data)
    return hashes


def _hash_block(starts: Positions, lengths: Positions, data: npt.NDArray[np.uint8]) -> Hashes:
    at_byte = np.ndarray((len(data) - 7,), np.dtype("<u8"), buffer=data.data, strides=(1,))
    values = lengths.astype(np.uint64) ^ np.uint64(_SEED)
    active = np.arange(len(starts))
    for done in range(0, int(lengths.max(initial=0)), 8):
        if done:
            active = active[lengths[active] > done]
        elif (lengths == 0).any():
            active = np.flatnonzero(lengths)
        is_whole = len(active) == len(starts)
        begin = starts if is_whole else starts[active]
        left = (lengths if is_whole else lengths[active]) - done
        word = at_byte[begin + done]
        is_tail = left < 8
        if is_tail.any():
            word[is_tail] &= _TAILS[left[is_tail]]
        mixed = ((values if is_whole else values[active]) ^ word) * np.uint64(_STEP)
        mixed ^= mixed >> np.uint64(29)
        if is_whole:
            values = mixed
        else:
            values[active] = mixed
    values = values * np.uint64(_FINAL)
    return values ^ (values >> np.uint64(32))
