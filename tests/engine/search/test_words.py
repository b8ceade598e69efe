"""Words: the analysis is the index's, near words are counted right, and what is kept stays within bounds."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.dataset import serialize_row_addrs

from omnigraph.exec.search import bm25, fuzzy_matching, matching, nearest, tokens
from omnigraph.exec.search.matching import near_words
from omnigraph.storage.search import analysis as search_analysis
from omnigraph.storage.search.analysis import analysed
from omnigraph.storage.search.search import analyse
from omnigraph.storage.search.words import AnalysisCache
from omnigraph.storage.tables.index import IndexRequest
from omnigraph.storage.tables.row_set import serialized
from tests.engine.search.corpus import SCHEMA, distance, names, new_corpus
from tests.support.seam import patched
from tests.support.tables import Workbench

ODD_TEXTS = [
    "Cafés of naïve rivers, 3rd-rate ﬁsh in İstanbul; straße foo_bar don't ½ ² a१b",
    "x" * 39 + " " + "y" * 40 + " " + "z" * 41 + " " + "w" * 200,
    "ж" * 40 + " " + "ж" * 41 + " Ωmega ЁЛКИ naïveté",
    "running runs ran runner generously databases database the THE of And",
    "क्षेत्र हिन्दी 東京タワー 日本語 ไทย e\u0301te\u0301 \u00ad soft\u00adhyphen zero\u200bwidth",
    "a\u0000b tab\tnew\nline \U0001f600 emoji \U0001d54f math",
    "",
    "   ",
]


def test_the_analysis_is_that_of_the_specification() -> None:
    assert tokens("The MACHINES of Café-Rivers") == ["machin", "cafe", "river"]
    assert tokens("z" * 41 + " " + "y" * 40) == ["y" * 39 + "i"]
    assert tokens("ж" * 40 + " " + "ж" * 41) == ["ж" * 40]
    assert tokens("running running") == ["run", "run"]
    assert tokens("résumé resumé resume fiancé fiance") == ["resume", "resume", "resum", "fiance", "fianc"]
    assert tokens("café cafe naïve naive façade facade") == ["cafe"] * 2 + ["naiv"] * 2 + ["facad"] * 2
    assert tokens("ands thé because") == ["the", "becaus"]  # stop words are stems with their accents
    assert tokens("the and of") == tokens("") == tokens("?!") == []


def test_stored_texts_are_analysed_one_by_one_or_together_alike(tmp_path: Path) -> None:
    generator = random.Random(3)
    texts = [*ODD_TEXTS, *(" ".join(generator.choices(ODD_TEXTS, k=3)) for _ in range(40)), None]
    bench = Workbench(tmp_path, SCHEMA)
    ids = names("t", len(texts))
    bench.append(pa.table({"id": ids, "text": texts, "vector": [None] * len(texts)}, schema=SCHEMA))

    [part] = analysed(AnalysisCache(), bench.head(), "text", None)

    found: dict[int, dict[str, int]] = {row_id: {} for row_id in part.row_ids.tolist()}
    for word in part.words:
        places, counts = part.postings(word)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            found[part.row_ids[place]][word] = count
    scanned = bench.store.scan(bench.head(), columns=["text"], with_row_id=True).to_pylist()
    for row in scanned:
        words = analyse(row["text"] or "")
        assert found[row["_rowid"]] == {word: words.count(word) for word in words}
    assert part.lengths.sum() == sum(len(analyse(text or "")) for text in texts)


def test_an_index_finds_each_odd_word_that_we_find(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, SCHEMA)
    ids = names("t", len(ODD_TEXTS))
    bench.append(pa.table({"id": ids, "text": ODD_TEXTS, "vector": [None] * len(ids)}, schema=SCHEMA))
    bench.index(IndexRequest("text", "fulltext"))
    store, handle = bench.store, bench.head()
    words = [word for text in ODD_TEXTS for word in text.split()]

    for edits in (0, 1):
        for word in words:
            answers = []
            for small_rows in (0, 100):
                store.analyses.small_rows = small_rows
                answers.append(set(fuzzy_matching(store, handle, "text", word, edits).tolist()))
            assert answers[0] == answers[1], (word, edits)


@given(st.text("abcd", max_size=6), st.lists(st.text("abcde", min_size=1, max_size=7)), st.integers(0, 7))
def test_near_words_are_those_with_few_edits(token: str, words: list[str], edits: int) -> None:
    found = sorted(near_words(token, words, edits).tolist())

    assert found == [place for place, word in enumerate(words) if distance(token, word) <= edits]


@given(st.lists(st.one_of(st.integers(0, 200_000), st.integers(0, 2**40))), st.integers(0, 9_000))
def test_a_set_of_rows_is_written_as_the_library_writes_it(rows: list[int], run: int) -> None:
    row_ids = np.array([*rows, *range(60_000, 60_000 + run)], np.int64)

    assert serialized(row_ids) == serialize_row_addrs(sorted(set(row_ids.tolist())))


def test_a_later_version_analyses_new_fragments_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = new_corpus(tmp_path, 5, small_rows=10_000)
    corpus.append(names("a", 200))
    matching(corpus.bench.store, corpus.head, "text", "river")
    analysed_texts: list[int] = []
    original = search_analysis._batches

    def counted(texts: list[str | None]) -> Iterator[tuple[int, list[str]]]:
        analysed_texts.append(len(texts))
        return original(texts)

    patched(monkeypatch, "omnigraph.storage.search.analysis._batches", counted)

    corpus.upsert(corpus.some(3))
    corpus.delete(corpus.some(5))

    found = corpus.ids(matching(corpus.bench.store, corpus.head, "text", "river song"))
    assert set(found) == corpus.matching("river song")
    assert analysed_texts == [3]


def test_an_older_version_is_searched_as_it_was(tmp_path: Path) -> None:
    corpus = new_corpus(tmp_path, 6, small_rows=10_000)
    corpus.append(names("a", 50))
    old, expected = corpus.head, corpus.matching("river")
    before = set(matching(corpus.bench.store, old, "text", "river").tolist())

    corpus.delete(corpus.some(30))
    matching(corpus.bench.store, corpus.head, "text", "river")

    assert set(matching(corpus.bench.store, old, "text", "river").tolist()) == before
    assert len(before) == len(expected)


def test_a_cache_without_room_changes_no_answer(tmp_path: Path) -> None:
    corpus = new_corpus(tmp_path, 7, small_rows=10_000)
    corpus.bench.store.analyses = AnalysisCache(bytes_max=10, small_rows=10_000)
    corpus.append(names("a", 60))

    for _ in range(2):
        ranked = bm25(corpus.bench.store, corpus.head, "text", "river song", None, 5)
        assert corpus.ids(ranked.row_ids) == corpus.best("river song")[:5]


def test_ties_beyond_the_limit_are_all_looked_at(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, SCHEMA)
    ids = names("t", 300)[::-1]
    vectors = [[1.0] * 8] * 300
    bench.append(pa.table({"id": ids, "text": ["a river"] * 300, "vector": vectors}, schema=SCHEMA))
    bench.index(IndexRequest("text", "fulltext"), IndexRequest("vector", "vector"))
    found = bench.store.rows_by_id(bench.head(), ids, columns=["id"], with_row_id=True).sort_by("id")
    first = found["_rowid"].to_pylist()[:4]

    for small_rows in (0, 1_000):
        bench.store.analyses.small_rows = small_rows
        ranked = bm25(bench.store, bench.head(), "text", "rivers", None, 4)
        assert ranked.row_ids.tolist() == first
    close = nearest(bench.store, bench.head(), "vector", [0.0] * 8, None, 4, False)
    assert close.row_ids.tolist() == first
