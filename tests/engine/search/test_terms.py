"""The terms of a text: each is looked for once, there is a limit, and a search asks for what it takes."""

from collections import Counter
from collections.abc import Callable

import pytest

from omnigraph.core.errors import QueryMemoryExceeded, QueryTimeout, ResourceLimit
from omnigraph.core.limits import SEARCH_CHARACTERS_MAX, SEARCH_TERMS_MAX
from omnigraph.exec.rows import Budget
from omnigraph.exec.search import bm25, fuzzy_matching, matching, tokens
from omnigraph.exec.search.terms import PIECE_TERMS, query_terms
from tests.engine.search.corpus import VOCABULARY, Corpus, names, new_corpus

REPEATED = "the river " + "Rivers river song " * 500 + " quiet quiet"
MANY = " ".join(f"w{number}" for number in range(SEARCH_TERMS_MAX))


@pytest.fixture(scope="module", params=[0, 10_000], ids=["indexed", "analysed"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A table that is searched with its index, and one that is searched without."""
    made = new_corpus(tmp_path_factory.mktemp("terms"), 5, small_rows=request.param)
    made.append(names("t", 80))
    made.index()
    return made


def searches(corpus: Corpus) -> list[Callable[[str, Budget], object]]:
    store, head = corpus.bench.store, corpus.head
    return [
        lambda text, budget: matching(store, head, "text", text, budget=budget),
        lambda text, budget: fuzzy_matching(store, head, "text", text, 1, budget=budget),
        lambda text, budget: bm25(store, head, "text", text, None, 5, budget=budget),
    ]


@pytest.mark.parametrize("text", [REPEATED, "the " + " ".join(VOCABULARY * 3), "of", "a\0b the b"])
def test_every_term_is_looked_for_once(text: str) -> None:
    pieces = list(query_terms(text).pieces())

    looked_for = [token for words, _ in pieces for token in tokens(words)]
    counted = {token: count for words, count in pieces for token in tokens(words)}
    assert len(looked_for) == len(set(looked_for))
    assert counted == Counter(tokens(text))
    assert all(len(words.split()) <= PIECE_TERMS for words, _ in pieces)


@pytest.mark.case("engine", 830)
def test_a_repeated_word_counts_each_time_and_costs_once(corpus: Corpus) -> None:
    store, head = corpus.bench.store, corpus.head

    for text in (REPEATED, " ".join([*VOCABULARY, *VOCABULARY[::3]])):
        expected = corpus.scores(text)
        ranked = bm25(store, head, "text", text, None, None)
        found = corpus.ids(ranked.row_ids)
        assert found == corpus.best(text)
        assert ranked.scores.tolist() == pytest.approx([expected[row_id] for row_id in found], rel=1e-5)
        assert corpus.ids(bm25(store, head, "text", text, None, 3).row_ids) == found[:3]
        assert set(corpus.ids(matching(store, head, "text", text))) == corpus.matching(text)
        near = fuzzy_matching(store, head, "text", text, 1)
        assert set(corpus.ids(near)) == corpus.matching(text, 1)


@pytest.mark.case("engine", 831)
def test_a_text_of_too_many_words_is_refused(corpus: Corpus) -> None:
    for search in searches(corpus):
        search(MANY, Budget())
        with pytest.raises(
            ResourceLimit, match=rf"different words of a text search: 257 over {SEARCH_TERMS_MAX}"
        ):
            search(MANY + " another", Budget())
        with pytest.raises(ResourceLimit, match="characters of the text of a search: 100002 over 100000"):
            search("glass " * (SEARCH_CHARACTERS_MAX // 6 + 1), Budget())


@pytest.mark.case("engine", 832)
def test_a_search_asks_for_memory_and_looks_at_the_clock_before_it_begins(corpus: Corpus) -> None:
    for search in searches(corpus):
        with pytest.raises(QueryMemoryExceeded):
            search("river glass", Budget(memory_bytes=80 * 64))
        with pytest.raises(QueryTimeout):
            search("river glass", Budget(timeout_ms=-1))
