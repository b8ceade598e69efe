"""Indexes of a table, staged together."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance.query import MatchQuery, PhraseQuery

from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.storage.tables.filter import Compare
from omnigraph.storage.tables.index_build import IndexPart, build_part, check_finished, due_indexes
from omnigraph.storage.tables.stage import IndexRequest, PendingColumn
from tests.support.tables import Workbench, names, table_schema

SCHEMA = table_schema(
    pa.field("rank", pa.int64()),
    pa.field("text", pa.utf8()),
    pa.field("vector", pa.list_(pa.field("item", pa.float32(), nullable=True), 3)),
)
ALL = [
    IndexRequest("id", "btree"),
    IndexRequest("rank", "btree"),
    IndexRequest("text", "fulltext"),
    IndexRequest("text", "btree"),
    IndexRequest("vector", "vector"),
]


TEXT = "The Cafés of running cities"


def documents(count: int, *, text: str | None = TEXT, vectors: bool = True) -> pa.Table:
    positions: list[list[float] | None] = [[float(number), 0.0, 1.0] for number in range(count)]
    columns: dict[str, list[object]] = {
        "id": [*names(count)],
        "rank": [*range(count)],
        "text": [text] * count,
        "vector": [*positions] if vectors else [None] * count,
    }
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path, SCHEMA)


@pytest.mark.case("engine", 69)
def test_a_mixed_build_is_one_version_and_every_index_answers(bench: Workbench) -> None:
    bench.append(documents(100))

    committed = bench.index(*ALL)

    head = bench.head()
    dataset = head._dataset
    assert committed.version == head.version == 3
    assert bench.store.index_coverage(head) == dict.fromkeys(
        ["id__btree", "rank__btree", "text__fts", "text__btree", "vector__vector"], "indexed"
    )
    plan = dataset.scanner(filter="`rank` = 7").explain_plan(True)
    assert "rank__btree" in plan
    assert bench.ids(head, Compare("rank", "eq", 7)) == ["n000007"]
    text = dataset.to_table(full_text_query=MatchQuery("cafe", "text"), columns=["id", "_score"])
    assert text.num_rows == 100
    nearest = {"column": "vector", "q": np.array([42, 0, 1], np.float32), "k": 1, "metric": "l2"}
    assert dataset.to_table(nearest=nearest, columns=["id", "_distance"])["id"].to_pylist() == ["n000042"]
    assert "ANNIvf" in dataset.scanner(nearest=nearest).explain_plan(True)


def matches(bench: Workbench, word: str) -> int:
    query = MatchQuery(word, "text")
    return bench.head()._dataset.to_table(full_text_query=query, columns=["id", "_score"]).num_rows


@pytest.mark.parametrize("word", ["CITY", "cafe", "café", "run", "runs"])
def test_text_is_lowered_folded_and_stemmed(bench: Workbench, word: str) -> None:
    bench.append(documents(2))
    bench.index(IndexRequest("text", "fulltext"))

    assert matches(bench, word) == 2


LONG = {"latin": "x" * 40, "accents": "é" * 40, "cyrillic": "ж" * 40, "four bytes": "𐐀" * 40}


@pytest.mark.parametrize("token", LONG.values(), ids=LONG)
def test_tokens_of_forty_characters_are_kept(bench: Workbench, token: str) -> None:
    bench.append(documents(1, text=token))
    bench.index(IndexRequest("text", "fulltext"))

    assert matches(bench, token) == 1


@pytest.mark.parametrize(("token", "is_found"), [("the", False), ("graph", True), ("x" * 161, False)])
def test_stop_words_and_very_long_tokens_are_dropped(bench: Workbench, token: str, is_found: bool) -> None:
    bench.append(documents(1, text=f"the graph {'x' * 161}"))
    bench.index(IndexRequest("text", "fulltext"))

    assert matches(bench, token) == is_found


def test_words_have_positions(bench: Workbench) -> None:
    bench.append(documents(1, text="graph database"))
    bench.index(IndexRequest("text", "fulltext"))
    dataset = bench.head()._dataset

    phrases = [PhraseQuery(words, "text") for words in ("graph database", "database graph")]

    found = [dataset.to_table(full_text_query=query, columns=["id", "_score"]).num_rows for query in phrases]
    assert found == [1, 0]


@pytest.mark.case("engine", 70)
def test_an_unfinished_text_index_is_not_staged(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.append(documents(3))
    head = bench.head()
    (due,), _ = due_indexes(head, [IndexRequest("text", "fulltext")])
    raw = build_part(head, IndexPart(due, due.fragments))
    finished = head._dataset.merge_existing_index_segments([raw])

    with pytest.raises(InvariantViolation, match="unfinished"):
        check_finished(raw)

    assert check_finished(finished) is finished
    monkeypatch.setattr(LanceDataset, "merge_existing_index_segments", lambda self, segments: segments[0])
    with pytest.raises(InvariantViolation, match="unfinished"):
        bench.stager.stage_create_indices(head, [IndexRequest("text", "fulltext")])


def test_a_column_without_vectors_is_pending(bench: Workbench) -> None:
    bench.append(documents(5, vectors=False))

    staged, pending = bench.stager.stage_create_indices(
        bench.head(), [IndexRequest("vector", "vector"), IndexRequest("id", "btree")]
    )

    assert staged is not None
    assert pending == (PendingColumn("vector", "vector", "no vector to train on"),)
    bench.commit(staged)
    assert bench.stager.stage_create_indices(bench.head(), [IndexRequest("vector", "vector")]) == (
        None,
        pending,
    )


@pytest.mark.parametrize("count", [1, 2, 300])
def test_any_number_of_vectors_trains_an_index(bench: Workbench, count: int) -> None:
    some = pa.concat_tables([documents(count), documents(count, vectors=False)])
    unique = some.set_column(0, SCHEMA.field("id"), pa.array(names(2 * count)))
    bench.append(unique)

    bench.index(IndexRequest("vector", "vector"))

    nearest = {"column": "vector", "q": np.array([0, 0, 1], np.float32), "k": 1, "metric": "l2"}
    found = bench.head()._dataset.to_table(nearest=nearest, columns=["id", "_distance"])
    assert found["id"].to_pylist() == ["n000000"]


def test_columns_of_nulls_are_indexed(bench: Workbench) -> None:
    bench.append(documents(3, text=None))

    bench.index(IndexRequest("text", "fulltext"), IndexRequest("text", "btree"))

    assert bench.store.index_coverage(bench.head()) == {"text__fts": "indexed", "text__btree": "indexed"}


def test_what_exists_is_left_alone_and_an_empty_table_has_nothing_to_index(bench: Workbench) -> None:
    assert bench.stager.stage_create_indices(bench.head(), ALL) == (None, ())
    bench.append(documents(3))
    bench.index(*ALL[:2])

    again = bench.stager.stage_create_indices(bench.head(), ALL[:2])

    assert again == (None, ())


def test_a_build_error_is_an_error(bench: Workbench) -> None:
    bench.append(documents(3))

    with pytest.raises(StorageError):
        bench.stager.stage_create_indices(bench.head(), [IndexRequest("vector", "fulltext")])


def test_rows_written_later_are_found_beside_the_index(bench: Workbench) -> None:
    bench.append(documents(50))
    bench.index(*ALL)
    changed = documents(2, text="different words")
    bench.upsert(changed)
    head = bench.head()

    found = head._dataset.to_table(full_text_query=MatchQuery("word", "text"), columns=["id", "_score"])

    assert sorted(map(str, found["id"].to_pylist())) == names(2)
    assert bench.store.existing_ids(head, names(50)) == set(names(50))
    assert bench.store.index_coverage(head)["text__fts"] == "degraded"
