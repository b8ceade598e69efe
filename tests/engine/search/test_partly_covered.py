"""What BM25 counts where a text index does not cover every row, or counts rows that have gone."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from omnigraph.exec.search import bm25
from omnigraph.storage.search.search import text_cover
from tests.engine.search.corpus import TEXT_INDEX, Corpus, best_first, names, new_corpus, scores_of

QUERIES = ("river", "Machines GLASS", "river river song", "nowhere", "x1 42 silent")
STEPS: dict[str, Callable[[Corpus], object]] = {
    "loaded": lambda corpus: corpus.append(names("a", 120)),
    "indexed": lambda corpus: corpus.bench.index(TEXT_INDEX),
    "appended": lambda corpus: corpus.append(names("b", 60)),
    "a segment more": lambda corpus: corpus.upkeep(),
    "appended again": lambda corpus: corpus.append(names("c", 60)),
    "deleted": lambda corpus: corpus.delete(corpus.some(40)),
    "replaced": lambda corpus: corpus.upsert(corpus.some(50)),
    "folded": lambda corpus: corpus.upkeep(),
    "merged": lambda corpus: corpus.optimize(),
    "deleted at last": lambda corpus: corpus.delete(corpus.some(20)),
}


class Counted:
    """The words that each segment of the index counts: those of its rows when it was made."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._segments: dict[str, list[tuple[str, ...]]] = {}

    def look(self) -> None:
        """Look at the segments after a step; one that is known goes on counting rows that have gone."""
        dataset, words = self._corpus.head._dataset, self._corpus.words
        described = [item for item in dataset.describe_indices() if item.name.startswith("text")]
        segments = {
            segment.uuid: set(segment.fragment_ids) for item in described for segment in item.segments
        }
        places = self.places()
        self._segments = {
            uuid: self._segments.get(uuid) or [words[key] for key in places if places[key] in fragments]
            for uuid, fragments in segments.items()
        }

    def places(self) -> dict[str, int]:
        """Return the fragment of every row."""
        found = self._corpus.head._dataset.scanner(columns=["id", "_rowaddr"]).to_table()
        return {str(row["id"]): int(row["_rowaddr"]) >> 32 for row in found.to_pylist()}

    def scores(self, query: str) -> dict[str, float]:
        """Return the scores by the rule of the language: covered rows by the index, others by all of both."""
        cover, places = text_cover(self._corpus.head, "text"), self.places()
        covered = frozenset() if cover is None else cover.covered
        inside = {key: words for key, words in self._corpus.words.items() if places[key] in covered}
        outside = {key: words for key, words in self._corpus.words.items() if places[key] not in covered}
        by_index = [words for segment in self._segments.values() for words in segment]
        return scores_of(inside, query, counted=by_index) | scores_of(
            outside, query, counted=[*by_index, *outside.values()]
        )


@pytest.mark.case("engine", 303)
def test_covered_rows_are_scored_by_the_index_and_others_by_both(tmp_path: Path) -> None:
    corpus = new_corpus(tmp_path, seed=1, small_rows=0)
    counted = Counted(corpus)
    for step, take in STEPS.items():
        take(corpus)
        counted.look()
        for query in QUERIES:
            ranked = bm25(corpus.bench.store, corpus.head, "text", query, None, None)

            found, expected = corpus.ids(ranked.row_ids), counted.scores(query)
            assert set(found) == corpus.matching(query), (step, query)
            assert ranked.scores.tolist() == pytest.approx([expected[key] for key in found], rel=1e-5)
            for better, worse in pairwise(found):
                is_tie = expected[better] == expected[worse]
                assert better < worse if is_tie else expected[better] > expected[worse] - 1e-5, (step, query)


@pytest.mark.case("engine", 303)
def test_a_small_table_is_scored_by_what_it_holds(tmp_path: Path) -> None:
    corpus = new_corpus(tmp_path, seed=2, small_rows=10_000)
    for step, take in STEPS.items():
        take(corpus)
        for query in QUERIES:
            ranked = bm25(corpus.bench.store, corpus.head, "text", query, None, None)

            found, expected = corpus.ids(ranked.row_ids), corpus.scores(query)
            assert found == best_first(expected), (step, query)
            assert ranked.scores.tolist() == pytest.approx([expected[key] for key in found], rel=1e-5)
