"""Roaring bitmaps in their portable format, which deletion files hold.

The library writes lists and bitmaps of 65,536 bits. Runs are part of the format too: it reads them, so a
file that has some is whole, whatever wrote it.
"""

import struct

import numpy as np

from omnigraph.core.arrays import Positions

_COOKIE, _COOKIE_WITH_RUNS = 12346, 12347
_ARRAY_MAX = 4096  # values of a container that are listed; more are a bitmap of 65,536 bits
_BITMAP_BYTES = 8192
_CONTAINERS_MAX = 65_536  # one for each high half of a value
_OFFSETS_FROM = 4  # containers from which a bitmap with runs also lists where each begins


def bitmap_values(data: bytes) -> Positions:
    """Return the values of a bitmap, ascending.

    Raises:
        ValueError: these are not the bytes of one whole bitmap and nothing else.
    """
    try:
        parts, end = _containers(data)
    except struct.error as error:
        raise ValueError("the bitmap is cut off") from error
    if end != len(data):
        raise ValueError("the bitmap does not end where its file does")
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _containers(data: bytes) -> tuple[list[Positions], int]:
    """Return the values container by container, and where the last one ends."""
    (head,) = struct.unpack_from("<I", data)
    if head & 0xFFFF == _COOKIE_WITH_RUNS:
        count, at = (head >> 16) + 1, 4
        flags = np.unpackbits(np.frombuffer(data, np.uint8, (count + 7) // 8, at), bitorder="little")
        at += (count + 7) // 8
    elif head == _COOKIE:
        (count,), at = struct.unpack_from("<I", data, 4), 8
        if count > _CONTAINERS_MAX:
            raise ValueError("not a bitmap")
        flags = np.zeros(count, np.uint8)
    else:
        raise ValueError("not a bitmap")
    heads = np.frombuffer(data, "<u2", 2 * count, at).astype(np.int64).reshape(-1, 2)
    at += 4 * count
    if head == _COOKIE or count >= _OFFSETS_FROM:
        at += 4 * count
    parts = []
    for (high, last), is_run in zip(heads.tolist(), flags.tolist(), strict=False):
        values, at = _container(data, at, cardinality=last + 1, is_run=bool(is_run))
        parts.append((high << 16) + values)
    return parts, at


def _container(data: bytes, at: int, *, cardinality: int, is_run: bool) -> tuple[Positions, int]:
    if is_run:
        (count,) = struct.unpack_from("<H", data, at)
        runs = np.frombuffer(data, "<u2", 2 * count, at + 2).astype(np.int64).reshape(-1, 2)
        values = np.concatenate([np.arange(start, start + length + 1) for start, length in runs.tolist()])
        return values, at + 2 + 4 * count
    if cardinality <= _ARRAY_MAX:
        listed = np.frombuffer(data, "<u2", cardinality, at).astype(np.int64)
        return listed, at + 2 * cardinality
    bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, at), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), at + _BITMAP_BYTES
