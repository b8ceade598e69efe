"""A table of texts and vectors that goes through all a table goes through, and what a search must find."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.storage.search.search import analyse, analyse_query
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.index import IndexRequest
from omnigraph.storage.tables.residual import InlineCommitResidual
from tests.support.tables import Workbench, table_schema

DIMENSION = 8
SCHEMA = table_schema(
    pa.field("text", pa.utf8()),
    pa.field("vector", pa.list_(pa.float32(), DIMENSION)),
)
TEXT_INDEX, VECTOR_INDEX = IndexRequest("text", "fulltext"), IndexRequest("vector", "vector")
VOCABULARY = [
    *("river", "rivers", "machine", "machines", "machinery", "quiet", "quietly", "song", "songs", "glass"),
    *("glasses", "the", "of", "and", "café", "cafe", "naïve", "running", "ran", "note", "notes", "silent"),
    *("silence", "x1", "42", "database", "databases", "straße"),
]

RowIds = npt.NDArray[np.int64]


@dataclass
class Corpus:
    """A table and a plain copy of its rows, which says what searches must find."""

    bench: Workbench
    generator: random.Random
    texts: dict[str, str | None] = field(default_factory=dict)
    vectors: dict[str, list[float] | None] = field(default_factory=dict)

    @property
    def head(self) -> SnapshotHandle:
        return self.bench.head()

    def rows(self, ids: Sequence[str]) -> pa.Table:
        """Make up rows; they become what the copy says of these ids."""
        for row_id in ids:
            self.texts[row_id] = self.text()
            self.vectors[row_id] = self.vector()
        return pa.table(
            {
                "id": list(ids),
                "text": [self.texts[row_id] for row_id in ids],
                "vector": [self.vectors[row_id] for row_id in ids],
            },
            schema=SCHEMA,
        )

    def text(self) -> str | None:
        kind = self.generator.random()
        if kind < 0.1:
            return None if kind < 0.05 else "the, of!"
        return " ".join(self.generator.choices(VOCABULARY, k=self.generator.randint(1, 9)))

    def vector(self) -> list[float] | None:
        if self.generator.random() < 0.1:
            return None
        return [float(self.generator.randint(-3, 3)) for _ in range(DIMENSION)]

    def append(self, ids: Sequence[str]) -> None:
        self.bench.append(self.rows(ids))

    def upsert(self, ids: Sequence[str]) -> None:
        self.bench.upsert(self.rows(ids))

    def delete(self, ids: Sequence[str]) -> None:
        self.bench.delete(ids)
        for row_id in ids:
            del self.texts[row_id], self.vectors[row_id]

    def index(self) -> None:
        self.bench.index(TEXT_INDEX, VECTOR_INDEX)

    def upkeep(self) -> None:
        """Fold small fragments and index what upkeep indexes."""
        residual = InlineCommitResidual(self.bench.store)
        residual.compact_files(self.bench.address, target_rows=16_384)
        residual.optimize_indices(self.bench.address)

    def optimize(self) -> None:
        """Rewrite deletions and merge the segments of every index."""
        residual = InlineCommitResidual(self.bench.store)
        residual.compact_files(self.bench.address, target_rows=100_000, rewrite_deletions=True)
        residual.optimize_indices(self.bench.address, merge_segments=True)

    def some(self, count: int) -> list[str]:
        return self.generator.sample(sorted(self.texts), count)

    def row_ids(self, ids: Sequence[str]) -> RowIds:
        found = self.bench.store.rows_by_id(self.head, list(ids), columns=["id"], with_row_id=True)
        by_id = dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))
        return np.array([by_id[row_id] for row_id in ids], np.int64)

    def ids(self, row_ids: RowIds) -> list[str]:
        """Return the ids of rows, in order, having checked that none is there twice."""
        found = self.bench.store.scan(self.head, columns=["id"], with_row_id=True)
        by_row = dict(zip(found["_rowid"].to_pylist(), found["id"].to_pylist(), strict=True))
        assert len(set(row_ids.tolist())) == len(row_ids)
        return [str(by_row[row_id]) for row_id in row_ids.tolist()]

    # What must be found

    def matching(self, query: str, edits: int = 0, within: Sequence[str] | None = None) -> set[str]:
        wanted = analyse_query(query)
        return {
            row_id
            for row_id, text in self.texts.items()
            if (within is None or row_id in within)
            and any(distance(a, b) <= edits for a in wanted for b in words_of(text))
        }

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """The words of every row."""
        return {row_id: words_of(text) for row_id, text in self.texts.items()}

    def scores(self, query: str) -> dict[str, float]:
        return scores_of(self.words, query, counted=self.words.values())

    def best(self, query: str, within: Sequence[str] | None = None) -> list[str]:
        """Return ids by score."""
        found = self.scores(query)
        chosen = {row_id: found[row_id] for row_id in found if within is None or row_id in within}
        return best_first(chosen)

    def distances(self, query: Sequence[float]) -> dict[str, float]:
        return {row_id: math.dist(query, vector) for row_id, vector in self.vectors.items() if vector}

    def closest(self, query: Sequence[float], within: Sequence[str] | None = None) -> list[str]:
        found = self.distances(query)
        chosen = [row_id for row_id in found if within is None or row_id in within]
        return sorted(chosen, key=lambda row_id: (found[row_id], row_id))


def scores_of(
    rows: Mapping[str, tuple[str, ...]], query: str, *, counted: Iterable[tuple[str, ...]]
) -> dict[str, float]:
    """Return the BM25 score of each row with a word of the query, with words counted over some texts."""
    documents = [words for words in counted if words]
    average = sum(map(len, documents)) / max(len(documents), 1)
    found: dict[str, float] = {}
    for token in analyse_query(query):
        frequency = sum(token in words for words in documents)
        weight = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        for row_id, words in rows.items():
            if count := words.count(token):
                share = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(words) / average))
                found[row_id] = found.get(row_id, 0.0) + weight * share
    return found


def best_first(scores: Mapping[str, float]) -> list[str]:
    """Return ids by score; scores that differ by less than single precision tells are one."""
    return sorted(scores, key=lambda row_id: (-round(scores[row_id], 5), row_id))


@cache
def words_of(text: str | None) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(analyse(text or ""))


@cache
def distance(left: str, right: str) -> int:
    """Return the single-character edits between two words, the plain way."""
    row = list(range(len(right) + 1))
    for number, a in enumerate(left, start=1):
        above, row = row, [number]
        for place, b in enumerate(right):
            row.append(min(above[place] + (a != b), above[place + 1] + 1, row[place] + 1))
    return row[-1]


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number:03d}" for number in range(count)]


def new_corpus(directory: Path, seed: int, *, small_rows: int) -> Corpus:
    """Return a table without rows; `small_rows` of zero sends every search to an index where there is one."""
    bench = Workbench(directory, SCHEMA)
    bench.store.analyses.small_rows = small_rows
    return Corpus(bench, random.Random(seed))


Step = Callable[[Corpus], None]

# What happens to a table, in order; searches are checked after each step.
STEPS: dict[str, Step] = {
    "loaded": lambda corpus: corpus.append(names("a", 250)),
    "loaded twice": lambda corpus: corpus.append(names("b", 90)),
    "indexed": lambda corpus: corpus.index(),
    "appended": lambda corpus: corpus.append(names("c", 40)),
    "updated": lambda corpus: corpus.upsert(corpus.some(30)),
    "deleted": lambda corpus: corpus.delete(corpus.some(30)),
    "updated again": lambda corpus: corpus.upsert([*corpus.some(20), *names("d", 5)]),
    "upkeep": lambda corpus: corpus.upkeep(),
    "deleted after upkeep": lambda corpus: corpus.delete(corpus.some(25)),
    "updated after upkeep": lambda corpus: corpus.upsert(corpus.some(25)),
    "upkeep again": lambda corpus: corpus.upkeep(),
    "optimized": lambda corpus: corpus.optimize(),
    "deleted at last": lambda corpus: corpus.delete(corpus.some(10)),
    "optimized again": lambda corpus: corpus.optimize(),
}
# Nothing has changed since the index was built. A merge of its segments forgets no words of rows that went
# with a compaction.
CLEAN = {"loaded", "loaded twice", "indexed"}
