"""Rows whose text has the words of a query, or words near them.

M1  The same rows match with no index, a partial one and a full one.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import RowIds
from omnigraph.exec.rows import Budget
from omnigraph.exec.search.ranked import NO_ROWS
from omnigraph.exec.search.terms import allow_search, query_terms
from omnigraph.exec.search.words import TextColumn, is_within
from omnigraph.storage.search.search import (
    FUZZY_EDITS_MAX,
    TOKEN_CHARACTERS_MAX,
    analyse_query,
    search_fuzzy,
    search_text,
)
from omnigraph.storage.search.words import AnalysedRows
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.table import TableStore


def tokens(text: str) -> list[str]:
    """Return the tokens of a query, in order, repeated ones too."""
    return analyse_query(text)


def matching(
    store: TableStore,
    handle: SnapshotHandle,
    field: str,
    query: str,
    within: RowIds | None = None,
    *,
    budget: Budget | None = None,
) -> RowIds:
    """Return the rows whose text has any token of the query, in no promised order.

    `within` lists the rows to choose from; `None` stands for all.

    Raises:
        ResourceLimit: the query has too many words, or the search needs more than the budget has.
    """
    terms, budget = query_terms(query), budget or Budget()
    if not terms or _is_empty(handle, within):
        return NO_ROWS
    allow_search(budget, terms, choice(handle, within))
    column = TextColumn(store, handle, field)
    if column.index() is None:
        return _rows_with(column.parts(), terms.counts, 0, within, budget)
    allowed, found = column.allowed(within), NO_ROWS
    for words, _ in terms.pieces():
        budget.check()
        found = np.union1d(found, search_text(handle, field, words, allowed=allowed, limit=None)[0])
    return found


def fuzzy_matching(  # noqa: PLR0917 - called like every search of a column
    store: TableStore,
    handle: SnapshotHandle,
    field: str,
    query: str,
    edits: int,
    within: RowIds | None = None,
    *,
    budget: Budget | None = None,
) -> RowIds:
    """Return the rows whose text has a token within this many edits of a token of the query.

    Both are analysed first. In no promised order; `within` as in `matching`.

    Raises:
        ResourceLimit: as `matching` does.
    """
    assert edits >= 0, "the query's checks refuse negative edits"
    if edits == 0:
        return matching(store, handle, field, query, within, budget=budget)
    terms, budget = query_terms(query), budget or Budget()
    if not terms or _is_empty(handle, within):
        return NO_ROWS
    allow_search(budget, terms, choice(handle, within))
    wanted = sorted(terms.counts)
    column = TextColumn(store, handle, field)
    cover = column.index()
    if cover is None or not all(_is_for_index(token, edits) for token in wanted):
        return _rows_with(column.parts(), wanted, edits, within, budget)
    allowed, found = column.allowed(within), NO_ROWS
    for token in wanted:
        budget.check()
        found = np.union1d(found, search_fuzzy(handle, field, token, edits=edits, allowed=allowed))
    if cover.uncovered:
        found = np.union1d(found, _rows_with(column.parts(cover.uncovered), wanted, edits, within, budget))
    return found


def choice(handle: SnapshotHandle, within: RowIds | None) -> int:
    """Return how many rows a search chooses from."""
    return handle.row_count if within is None else len(within)


def _is_empty(handle: SnapshotHandle, within: RowIds | None) -> bool:
    return handle.row_count == 0 or choice(handle, within) == 0


def _is_for_index(token: str, edits: int) -> bool:
    """Say whether the index finds what is near a token.

    It splits a token at what is neither letter nor digit, and also holds tokens too long to be words.
    """
    return edits <= FUZZY_EDITS_MAX and token.isalnum() and len(token) + edits <= TOKEN_CHARACTERS_MAX


def _rows_with(
    parts: Iterable[AnalysedRows], wanted: Iterable[str], edits: int, within: RowIds | None, budget: Budget
) -> RowIds:
    """Return the rows that have a wanted token, or one near it, by an analysis of our own."""
    found = [NO_ROWS]
    for part in parts:
        budget.check()
        has_word = np.zeros(len(part.row_ids), np.bool_)
        for word in _near(part, wanted, edits, budget) if edits else wanted:
            has_word[part.postings(word)[0]] = True
        found.append(part.row_ids[has_word])
    row_ids = np.concatenate(found)
    return row_ids[is_within(row_ids, within)]


def _near(part: AnalysedRows, wanted: Iterable[str], edits: int, budget: Budget) -> set[str]:
    words = [word for word in part.words if len(word) <= TOKEN_CHARACTERS_MAX]
    near: set[str] = set()
    for token in wanted:
        budget.check()
        near.update(words[place] for place in near_words(token, words, edits))
    return near


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
