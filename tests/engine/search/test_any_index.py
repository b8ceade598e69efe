"""Searches find the same rows with no index, a partial one and a full one, whatever happened to the table."""

from pathlib import Path

import numpy as np
import pytest

from omnigraph.exec.search import bm25, fuzzy_matching, matching, nearest
from tests.engine.search.corpus import CLEAN, DIMENSION, STEPS, Corpus, new_corpus

QUERIES = [
    "river",
    "Machines GLASS",
    "the of",
    "",
    "cafes naive",
    "river river song",
    "nowhere",
    "x1 42 silent",
]
INDEXED, ANALYSED = 0, 10_000  # rows below which an index is not used


def check_words(corpus: Corpus, query: str, within: list[str] | None) -> None:
    store, handle = corpus.bench.store, corpus.head
    rows = None if within is None else corpus.row_ids(within)

    found = corpus.ids(matching(store, handle, "text", query, rows))
    assert set(found) == corpus.matching(query, within=within)
    for edits in (0, 1, 2, 3):
        near = corpus.ids(fuzzy_matching(store, handle, "text", query, edits, rows))
        assert set(near) == corpus.matching(query, edits, within), (query, edits)


def check_ranking(corpus: Corpus, query: str, within: list[str] | None, *, is_exact: bool) -> None:
    store, handle = corpus.bench.store, corpus.head
    rows = None if within is None else corpus.row_ids(within)
    ranked = bm25(store, handle, "text", query, rows, None)
    found = corpus.ids(ranked.row_ids)

    assert set(found) == corpus.matching(query, within=within)
    assert (np.diff(ranked.scores) <= 1e-5).all()
    if is_exact:
        assert found == corpus.best(query, within)
        expected = corpus.scores(query)
        assert ranked.scores.tolist() == pytest.approx([expected[row_id] for row_id in found], rel=1e-5)
    for limit in (1, 7, 10**9):
        top = bm25(store, handle, "text", query, rows, limit)
        assert corpus.ids(top.row_ids) == found[:limit]


def check_vectors(corpus: Corpus, query: list[float], within: list[str] | None) -> None:
    store, handle = corpus.bench.store, corpus.head
    rows = None if within is None else corpus.row_ids(within)
    expected = corpus.closest(query, within)
    distances = corpus.distances(query)
    for limit in (1, 10, 10**9, None):
        found = nearest(store, handle, "vector", query, rows, limit, True)
        assert corpus.ids(found.row_ids) == expected[:limit], limit
        assert found.scores.tolist() == pytest.approx([distances[row_id] for row_id in expected[:limit]])
    near = corpus.ids(nearest(store, handle, "vector", query, rows, 10, False).row_ids)
    assert len(near) == min(10, len(expected))
    assert len(set(near) & set(expected[:10])) >= 0.9 * len(near)


@pytest.mark.parametrize("small_rows", [INDEXED, ANALYSED])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_search_is_right_after_every_step(tmp_path: Path, seed: int, small_rows: int) -> None:
    corpus = new_corpus(tmp_path, seed, small_rows=small_rows)
    for step, take in STEPS.items():
        take(corpus)
        is_exact = small_rows == ANALYSED or step in CLEAN
        for within in (None, corpus.some(3), corpus.some(150)):
            for query in corpus.generator.sample(QUERIES, 3):
                check_words(corpus, query, within)
                check_ranking(corpus, query, within, is_exact=is_exact)
            check_vectors(corpus, [float(corpus.generator.randint(-3, 3)) for _ in range(DIMENSION)], within)
