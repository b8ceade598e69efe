"""Indexes that are built in parts answer as those that are built as a whole."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance.query import MatchQuery, PhraseQuery

from omnigraph.storage.tables.filter import Compare
from omnigraph.storage.tables.index import IndexRequest
from omnigraph.storage.tables.index_build import build_part, build_whole, cut, due_indexes, put_together
from tests.support.tables import Workbench, names, table_schema

WIDTH = 8
SCHEMA = table_schema(
    pa.field("rank", pa.int64()),
    pa.field("text", pa.utf8()),
    pa.field("vector", pa.list_(pa.field("item", pa.float32(), nullable=True), WIDTH)),
)
WORDS = ("graph", "table", "nodes", "edges", "Café", "branches", "merged", "commit", "running", "the")
REQUESTS = [
    IndexRequest("id", "btree"),
    IndexRequest("rank", "btree"),
    IndexRequest("text", "fulltext"),
    IndexRequest("vector", "vector"),
]
PROBES = 8  # of some twenty partitions: an index that is worse than another one would show


def rows(draw: random.Random, start: int, count: int) -> pa.Table:
    texts = [
        None if draw.random() < 0.1 else " ".join(draw.choices(WORDS, k=draw.randint(0, 8)))
        for _ in range(count)
    ]
    vectors = [
        None if draw.random() < 0.1 else [draw.gauss(0, 1) for _ in range(WIDTH)] for _ in range(count)
    ]
    ranks = [None if draw.random() < 0.1 else draw.randrange(20) for _ in range(count)]
    columns: dict[str, list[Any]] = {
        "id": names(start + count)[start:],
        "rank": ranks,
        "text": texts,
        "vector": vectors,
    }
    return pa.table(columns, schema=SCHEMA)


def table_of(folder: Path, seed: int) -> Workbench:
    """Return a table of several fragments, some of which have lost rows."""
    draw, bench, count = random.Random(seed), Workbench(folder, SCHEMA), 0
    for _ in range(draw.randint(2, 6)):
        added = draw.randint(1, 200)
        bench.append(rows(draw, count, added))
        count += added
    gone = draw.sample(names(count), count // 10)
    staged = bench.stager.stage_delete(bench.head(), gone)
    if staged is not None:
        bench.commit(staged)
    return bench


def build(bench: Workbench, parts: int) -> None:
    """Build all indexes, each in so many parts at most, as other processes would: from descriptions alone."""
    head = bench.head()
    due, pending = due_indexes(head, REQUESTS)
    assert pending == ()
    if parts == 1:
        built = [build_whole(head, index) for index in due]
    else:
        built = [
            put_together(head, index, [build_part(bench.head(), part) for part in cut(head, index, parts)])
            for index in due
        ]
    bench.commit(bench.stager.stage_indexes(head, due, built))


def answers(bench: Workbench) -> dict[str, Any]:
    """Return what lookups and searches find through the indexes."""
    head = bench.head()
    dataset = head._dataset
    found: dict[str, Any] = {"coverage": bench.store.index_coverage(head)}
    found["segments"] = {item.name: len(item.segments) for item in dataset.describe_indices()}
    for rank in range(20):
        found[f"rank {rank}"] = sorted(bench.ids(head, Compare("rank", "eq", rank)))
    for number in range(0, 200, 7):
        found[f"id {number}"] = bench.ids(head, Compare("id", "eq", names(number + 1)[number]))
    queries = {word: MatchQuery(word, "text") for word in WORDS}
    for words, query in [*queries.items(), ("graph table", PhraseQuery("graph table", "text"))]:
        scored = dataset.to_table(full_text_query=query, columns=["id", "_score"]).to_pylist()
        found[words] = {row["id"]: pytest.approx(row["_score"], rel=1e-5) for row in scored}
    return found


def nearest(bench: Workbench, asked: Sequence[float], *, exact: bool) -> set[str]:
    query = {"column": "vector", "q": np.array(asked, np.float32), "k": 10, "metric": "l2"}
    query |= {"use_index": False} if exact else {"nprobes": PROBES}
    table = bench.head()._dataset.to_table(nearest=query, columns=["id", "_distance"])
    return set(map(str, table["id"].to_pylist()))


def recall(bench: Workbench) -> float:
    draw, hits, total = random.Random(1), 0, 0
    for _ in range(40):
        asked = [draw.gauss(0, 1) for _ in range(WIDTH)]
        wanted = nearest(bench, asked, exact=True)
        hits += len(wanted & nearest(bench, asked, exact=False))
        total += len(wanted)
    return hits / total


@pytest.mark.case("engine", 900)
@pytest.mark.parametrize("seed", range(6))
def test_parts_put_together_answer_as_the_whole(tmp_path: Path, seed: int) -> None:
    whole, apart = table_of(tmp_path / "whole", seed), table_of(tmp_path / "apart", seed)

    build(whole, 1)
    build(apart, 1 + random.Random(seed).randint(1, 6))

    assert answers(apart) == answers(whole)
    assert set(answers(apart)["segments"].values()) == {1}


@pytest.mark.case("engine", 901)
def test_vectors_are_found_through_parts_as_well_as_through_the_whole(tmp_path: Path) -> None:
    found = []
    for parts in (1, 4):
        bench = Workbench(tmp_path / f"{parts}", SCHEMA)
        draw = random.Random(7)
        for number in range(4):
            bench.append(rows(draw, number * 250, 250))
        build(bench, parts)
        found.append(recall(bench))

    assert found[0] > 0.5, "the indexes were used, and looked at a part of the vectors"
    assert found[1] >= found[0] - 0.01


def test_an_index_is_never_cut_finer_than_its_fragments(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, SCHEMA)
    bench.append(rows(random.Random(1), 0, 5))
    bench.append(rows(random.Random(2), 5, 5))
    head = bench.head()
    (due,), _ = due_indexes(head, [IndexRequest("id", "btree")])

    assert [part.fragments for part in cut(head, due, 7)] == [(0,), (1,)]
    assert [part.fragments for part in cut(head, due, 1)] == [(0, 1)]
