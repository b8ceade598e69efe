"""Analysed words of texts in memory: by word, the rows that have it.

W1  The memory kept is bounded; what does not fit is analysed again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.core.recent import Recent

ANALYSES_BYTES_MAX = 256 * 1024 * 1024  # words of some ten million short texts
# Analysed in less than 0.1 s, once, where texts are short; then searched faster than through an index.
SMALL_ROWS = 4_096

Numbers32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class AnalysedRows:
    """The words of the rows of one fragment: by word, the rows that have it and how often.

    `lengths` counts the words of a row; a row without words is listed with none. The postings of word number
    `n` are those from `starts[n]` to `starts[n + 1]`.
    """

    row_ids: npt.NDArray[np.int64]
    lengths: Numbers32
    words: dict[str, int]
    starts: npt.NDArray[np.int64]
    places: Numbers32  # into row_ids
    counts: Numbers32
    deletions: str  # which rows of the file were deleted when it was read

    def postings(self, word: str) -> tuple[Numbers32, Numbers32]:
        """Return the places of the rows with a word, and how often each has it."""
        number = self.words.get(word)
        if number is None:
            return self.places[:0], self.counts[:0]
        part = slice(self.starts[number], self.starts[number + 1])
        return self.places[part], self.counts[part]

    @cached_property
    def byte_count(self) -> int:
        """About how much memory it takes."""
        arrays = (self.row_ids, self.lengths, self.starts, self.places, self.counts)
        return sum(array.nbytes for array in arrays) + sum(100 + len(word) for word in self.words)


class Kept(Protocol):
    """Something that the cache keeps."""

    @property
    def byte_count(self) -> int:
        """About how much memory it takes."""


class AnalysisCache:
    """What searches have derived from versions and files, which never change.

    The least recently used is dropped first; safe to share between threads.

    Tables up to `small_rows` are meant to be analysed whole, whether or not they have an index.
    """

    def __init__(self, bytes_max: int = ANALYSES_BYTES_MAX, small_rows: int = SMALL_ROWS) -> None:
        """Take how much memory may be kept, and how many rows a small table has."""
        self.small_rows = small_rows
        self._kept: Recent[tuple[str, ...], Kept] = Recent(bytes_max, weigh=lambda kept: kept.byte_count)

    def get(self, key: tuple[str, ...]) -> Kept | None:
        """Return what is kept under a key."""
        return self._kept.get(key)

    def put(self, key: tuple[str, ...], value: Kept) -> None:
        """Keep a value, at the expense of older ones (W1)."""
        self._kept.put(key, value)
