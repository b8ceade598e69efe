"""The terms of a text search: its different words, how often each is repeated, and what a search may cost.

T1  The library looks for every word that it is given, a repeated one again, with all rows that have it in
    memory: words times rows. So a term is looked for once, however often a text repeats it.
T2  Terms are looked for a piece at a time. One piece is what the memory limit is asked for, and the clock is
    looked at before each.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.core.errors import ResourceLimit
from omnigraph.core.limits import SEARCH_CHARACTERS_MAX, SEARCH_TERMS_MAX
from omnigraph.exec.rows import Budget
from omnigraph.storage.search.search import analyse_words

PIECE_TERMS = (
    16  # that one call of the library looks for: the answers of a few calls are put together quickly
)
TERM_ROW_BYTES = 8  # that the library takes for a term in a row, measured
ROW_BYTES = 64  # of a row that was found: its id and score, once more while they are sorted


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one search: how often the text has each, by token, and a word that each is made of."""

    counts: dict[str, int]
    words: dict[str, str]

    def __bool__(self) -> bool:
        """Say whether there is anything to look for."""
        return bool(self.counts)

    @property
    def is_one_piece(self) -> bool:
        """Whether one call of the library finds and scores all of them."""
        return len(self.counts) <= PIECE_TERMS and all(count == 1 for count in self.counts.values())

    def pieces(self) -> Iterator[tuple[str, int]]:
        """Yield texts to look for, each with how often the query has every word of it (T2)."""
        for count in dict.fromkeys(self.counts.values()):
            alike = [self.words[token] for token, found in self.counts.items() if found == count]
            for start in range(0, len(alike), PIECE_TERMS):
                yield " ".join(alike[start : start + PIECE_TERMS]), count


def query_terms(query: str) -> Terms:
    """Return the terms of a text to search for (T1).

    Raises:
        ResourceLimit: it is too long, or has too many different words.
    """
    _bound("characters of the text of a search", SEARCH_CHARACTERS_MAX, len(query))
    found = analyse_words(query)
    counts = Counter(token for token, _ in found)
    _bound("different words of a text search", SEARCH_TERMS_MAX, len(counts))
    return Terms(dict(counts), dict(found))


def allow_search(budget: Budget, terms: Terms, rows: int) -> None:
    """Ask for what a search of so many rows may take (T2).

    Raises:
        QueryMemoryExceeded: it is more than the limit.
        QueryTimeout: the query has taken longer than it may.
    """
    budget.allow(rows * (ROW_BYTES + min(len(terms.counts), PIECE_TERMS) * TERM_ROW_BYTES))
    budget.check()


def _bound(resource: str, limit: int, actual: int) -> None:
    if actual > limit:
        raise ResourceLimit(resource=resource, limit=limit, actual=actual)
