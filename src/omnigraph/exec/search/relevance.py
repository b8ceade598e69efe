"""BM25: rows by how relevant their text is to a query.

B1  Words and documents are counted over the whole table, never over the restriction. A document is a row with
    at least one word.
B2  A token that the query repeats counts as often as it is repeated, and is looked for once: a score is a sum
    over the tokens, so that of a repeated one is multiplied.
"""

import math

import numpy as np

from omnigraph.core.arrays import Floats, RowIds
from omnigraph.exec.rows import Budget
from omnigraph.exec.search.matching import choice
from omnigraph.exec.search.ranked import NOTHING, Ranked, cuts_a_group, settle
from omnigraph.exec.search.terms import Terms, allow_search, query_terms
from omnigraph.exec.search.words import TextColumn, is_within
from omnigraph.storage.search.search import search_text
from omnigraph.storage.search.words import AnalysedRows
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.table import TableStore

K1, B = 1.2, 0.75
SCORE_TOLERANCE = 1e-6  # an index adds up its scores in single precision, in its own order
MARGIN = 6  # rows asked for beyond the limit, so that most ties are seen whole at once
GROWTH = 8  # of the number asked for when they are not


def bm25(  # noqa: PLR0917 - called like every search of a column
    store: TableStore,
    handle: SnapshotHandle,
    field: str,
    query: str,
    within: RowIds | None = None,
    limit: int | None = None,
    *,
    budget: Budget | None = None,
) -> Ranked:
    """Return the rows with any token of the query by score, greatest first: all of them, or the best.

    `within` lists the rows to choose from; `None` stands for all.

    Raises:
        ResourceLimit: the query has too many words, or the search needs more than the budget has.
    """
    terms, budget = query_terms(query), budget or Budget()
    rows = choice(handle, within)
    if not terms or rows == 0 or limit == 0:
        return NOTHING
    allow_search(budget, terms, rows)
    column = TextColumn(store, handle, field)
    if column.index() is None:
        ranked = _own_scores(list(column.parts()), terms, within, budget)
        return settle(handle, ranked, limit, tolerance=SCORE_TOLERANCE)
    allowed = column.allowed(within)
    if terms.is_one_piece and limit is not None and limit < rows:
        [(words, _)] = terms.pieces()
        return _best_of_index(handle, field, words, allowed, limit)
    ranked = NOTHING
    for words, count in terms.pieces():
        budget.check()
        row_ids, scores = search_text(handle, field, words, allowed=allowed, limit=None)
        ranked = _sum(ranked, Ranked(row_ids, count * scores))
    return settle(handle, _best_first(ranked.row_ids, ranked.scores), limit, tolerance=SCORE_TOLERANCE)


def _sum(first: Ranked, second: Ranked) -> Ranked:
    """Return the rows of either with the sum of their scores, in no promised order (B2)."""
    row_ids, places = np.unique(np.concatenate([first.row_ids, second.row_ids]), return_inverse=True)
    scores = np.bincount(places, np.concatenate([first.scores, second.scores]))
    return Ranked(row_ids, scores.astype(np.float64))


def _best_of_index(handle: SnapshotHandle, field: str, words: str, allowed: bytes, limit: int) -> Ranked:
    """Return the best rows; the rows that tie with the last one are all looked at."""
    asked = limit + MARGIN
    while True:
        row_ids, scores = search_text(handle, field, words, allowed=allowed, limit=asked)
        ranked = _best_first(row_ids, scores)
        if len(row_ids) < asked or not cuts_a_group(ranked.scores, limit, SCORE_TOLERANCE):
            return settle(handle, ranked, limit, tolerance=SCORE_TOLERANCE)
        asked *= GROWTH


def _own_scores(parts: list[AnalysedRows], terms: Terms, within: RowIds | None, budget: Budget) -> Ranked:
    """Return all matches by score, with words counted by an analysis of our own."""
    documents = sum(int(np.count_nonzero(part.lengths)) for part in parts)
    average = sum(int(part.lengths.sum(dtype=np.int64)) for part in parts) / max(documents, 1)
    scores = [np.zeros(len(part.row_ids)) for part in parts]
    for token, count in terms.counts.items():
        budget.check()
        postings = [part.postings(token) for part in parts]
        frequency = sum(len(places) for places, _ in postings)
        weight = count * math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))
        for part, score, (places, counts) in zip(parts, scores, postings, strict=True):
            length = part.lengths[places] / average
            score[places] += weight * counts * (K1 + 1) / (counts + K1 * (1 - B + B * length))
    row_ids = np.concatenate([part.row_ids for part in parts])
    all_scores = np.concatenate(scores)
    chosen = np.flatnonzero(all_scores > 0)  # the weight of a token is never zero
    chosen = chosen[is_within(row_ids[chosen], within)]
    return _best_first(row_ids[chosen], all_scores[chosen])


def _best_first(row_ids: RowIds, scores: Floats) -> Ranked:
    order = np.argsort(-scores, kind="stable")
    return Ranked(row_ids[order], scores[order])
