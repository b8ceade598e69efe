"""Rows whose text has the words of a query, or words near them.

M1  The same rows match with no index, a partial one and a full one.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import RowIds
from omnigraph.exec.search.ranked import NO_ROWS
from omnigraph.exec.search.words import TextColumn, is_within
from omnigraph.storage.search.search import (
    FUZZY_EDITS_MAX,
    TOKEN_CHARACTERS_MAX,
    analyse_query,
    search_fuzzy,
    search_text,
    short_words,
)
from omnigraph.storage.search.words import AnalysedRows
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.table import TableStore


def tokens(text: str) -> list[str]:
    """Return the tokens of a query, in order, repeated ones too."""
    return analyse_query(text)


def matching(
    store: TableStore, handle: SnapshotHandle, field: str, query: str, within: RowIds | None = None
) -> RowIds:
    """Return the rows whose text has any token of the query, in no promised order.

    `within` lists the rows to choose from; `None` stands for all.
    """
    wanted = tokens(query)
    if not wanted or _is_empty(handle, within):
        return NO_ROWS
    column = TextColumn(store, handle, field)
    if column.index() is not None:
        return search_text(handle, field, short_words(query), allowed=column.allowed(within), limit=None)[0]
    return _rows_with(column.parts(), wanted, 0, within)


def fuzzy_matching(  # noqa: PLR0917 - called like every search of a column
    store: TableStore,
    handle: SnapshotHandle,
    field: str,
    query: str,
    edits: int,
    within: RowIds | None = None,
) -> RowIds:
    """Return the rows whose text has a token within this many edits of a token of the query.

    Both are analysed first. In no promised order; `within` as in `matching`.
    """
    assert edits >= 0, "the query's checks refuse negative edits"
    if edits == 0:
        return matching(store, handle, field, query, within)
    wanted = sorted(set(tokens(query)))
    if not wanted or _is_empty(handle, within):
        return NO_ROWS
    column = TextColumn(store, handle, field)
    cover = column.index()
    if cover is None or not all(_is_for_index(token, edits) for token in wanted):
        return _rows_with(column.parts(), wanted, edits, within)
    allowed = column.allowed(within)
    found = [search_fuzzy(handle, field, token, edits=edits, allowed=allowed) for token in wanted]
    if cover.uncovered:
        found.append(_rows_with(column.parts(cover.uncovered), wanted, edits, within))
    return np.unique(np.concatenate(found))


def _is_empty(handle: SnapshotHandle, within: RowIds | None) -> bool:
    return handle.row_count == 0 or (within is not None and len(within) == 0)


def _is_for_index(token: str, edits: int) -> bool:
    """Say whether the index finds what is near a token.

    It splits a token at what is neither letter nor digit, and also holds tokens too long to be words.
    """
    return edits <= FUZZY_EDITS_MAX and token.isalnum() and len(token) + edits <= TOKEN_CHARACTERS_MAX


def _rows_with(parts: Iterable[AnalysedRows], wanted: list[str], edits: int, within: RowIds | None) -> RowIds:
    """Return the rows that have a wanted token, or one near it, by an analysis of our own."""
    found = [NO_ROWS]
    for part in parts:
        has_word = np.zeros(len(part.row_ids), np.bool_)
        for word in _near(part, wanted, edits) if edits else wanted:
            has_word[part.postings(word)[0]] = True
        found.append(part.row_ids[has_word])
    row_ids = np.concatenate(found)
    return row_ids[is_within(row_ids, within)]


def _near(part: AnalysedRows, wanted: list[str], edits: int) -> set[str]:
    words = [word for word in part.words if len(word) <= TOKEN_CHARACTERS_MAX]
    return {words[place] for token in wanted for place in near_words(token, words, edits)}


def near_words(token: str, words: Sequence[str], edits: int) -> npt.NDArray[np.int64]:
    """Return the places of the words within this many insertions, deletions and replacements of a token."""
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
