"""Which words are a few single-character edits away from another."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def near_words(token: str, words: Sequence[str], edits: int) -> npt.NDArray[np.int64]:
    """Return the places of the words at most so many insertions, deletions and replacements from a token."""
    lengths = np.fromiter((len(word) for word in words), np.int64, len(words))
    near: list[npt.NDArray[np.int64]] = []
    for length in np.unique(lengths[np.abs(lengths - len(token)) <= edits]):
        places = np.flatnonzero(lengths == length)
        if max(int(length), len(token)) > edits:
            places = places[_distances(token, [words[int(place)] for place in places], int(length)) <= edits]
        near.append(places)
    return np.concatenate(near) if near else np.empty(0, np.int64)


def _distances(token: str, words: list[str], length: int) -> npt.NDArray[np.int64]:
    """Return how many edits lead from a token to each of some words of one length.

    The usual table of two words, one row at a time, for all words together.
    """
    characters = np.array(words, dtype=f"<U{length}").view(np.uint32).reshape(len(words), length)
    row = np.tile(np.arange(length + 1), (len(words), 1))
    for number, character in enumerate(token, start=1):
        above, row = row, np.empty_like(row)
        row[:, 0] = number
        replaced = above[:, :-1] + (characters != ord(character))
        best = np.minimum(replaced, above[:, 1:] + 1)
        for place in range(length):
            row[:, place + 1] = np.minimum(best[:, place], row[:, place] + 1)
    return row[:, -1]
