"""What Lance does with indexes and searches: the build and the search rules rest on it."""

from pathlib import Path
from typing import Any, cast

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.query import MatchQuery, PhraseQuery

from omnigraph.storage.tables import index
from tests.support.raw_lance import reopened
from tests.support.tables import table_schema

pytestmark = pytest.mark.case("engine", 78)

DIMENSION = 4
TEXT_ANALYSIS = cast("dict[str, Any]", index.TEXT_ANALYSIS)
SCHEMA = table_schema(
    pa.field("text", pa.utf8()),
    pa.field("vector", pa.list_(pa.float32(), DIMENSION)),
)
TEXTS = ["the graph databases", "a graph of cities", "databases of a city", "nothing here"]


def documents(count: int, *, offset: int = 0) -> pa.Table:
    """Return documents whose texts repeat and whose vectors are their numbers, four times."""
    numbers = range(offset, offset + count)
    return pa.table(
        {
            "id": [f"d{number}" for number in numbers],
            "text": [TEXTS[number % len(TEXTS)] for number in numbers],
            "vector": [[float(number)] * DIMENSION for number in numbers],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return lance.write_dataset(documents(40), str(tmp_path / "search"), enable_stable_row_ids=True)


def commit_index(dataset: LanceDataset, *kinds: str) -> LanceDataset:
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    built = []
    for kind in kinds:
        if kind == "INVERTED":
            raw = dataset.create_index_uncommitted(
                "text", kind, name="text__fts", fragment_ids=fragments, **TEXT_ANALYSIS
            )
            built.append(dataset.merge_existing_index_segments([raw]))
        elif kind == "BTREE":
            built.append(
                dataset.create_index_uncommitted("text", kind, name="text__btree", fragment_ids=fragments)
            )
        else:
            built.append(
                dataset.create_index_uncommitted(
                    "vector", kind, fragment_ids=fragments, num_partitions=2, metric="L2"
                )
            )
    operation = LanceOperation.CreateIndex(built, [])
    return LanceDataset.commit(dataset, operation, read_version=dataset.version, max_retries=0)


def add(dataset: LanceDataset, table: pa.Table) -> LanceDataset:
    from tests.support.raw_lance import fragments_of

    operation = LanceOperation.Append(fragments_of(dataset, table))
    return LanceDataset.commit(dataset, operation, read_version=dataset.version)


def scores(dataset: LanceDataset, query: MatchQuery | PhraseQuery) -> dict[str, float]:
    found = dataset.to_table(full_text_query=query, columns=["id", "_score"])
    return {row["id"]: row["_score"] for row in found.to_pylist()}


def test_one_column_takes_a_btree_and_a_text_index(dataset: LanceDataset) -> None:
    indexed = commit_index(dataset, "BTREE", "INVERTED")

    plan = indexed.scanner(filter="text = 'nothing here'").explain_plan(True)

    assert "text__btree" in plan
    assert len(scores(indexed, MatchQuery("graph", "text"))) == 20


def test_a_text_index_committed_unfinished_breaks_every_search(dataset: LanceDataset) -> None:
    raw = dataset.create_index_uncommitted("text", "INVERTED", fragment_ids=[0], with_position=True)
    LanceDataset.commit(dataset, LanceOperation.CreateIndex([raw], []), read_version=1)

    with pytest.raises((OSError, ValueError, RuntimeError), match="Not found"):
        scores(reopened(dataset), MatchQuery("graph", "text"))


@pytest.mark.parametrize("query", [MatchQuery("nothing", "text"), PhraseQuery("nothing here", "text")])
def test_match_and_phrase_find_rows_that_no_index_covers(
    dataset: LanceDataset, query: MatchQuery | PhraseQuery
) -> None:
    partly = add(commit_index(dataset, "INVERTED"), documents(8, offset=40))

    found = scores(partly, query)

    assert set(found) == {f"d{number}" for number in range(3, 48, 4)}


def test_uncovered_rows_are_analysed_like_the_index(dataset: LanceDataset) -> None:
    partly = add(commit_index(dataset, "INVERTED"), documents(8, offset=40))

    stemmed, stop_word = (scores(partly, MatchQuery(word, "text")) for word in ["cities", "the"])

    assert set(stemmed) == {f"d{number}" for number in range(48) if number % 4 in {1, 2}}
    assert stop_word == {}


def test_without_any_index_nothing_is_stemmed_folded_or_left_out(dataset: LanceDataset) -> None:
    """Match and phrase then split words and lower them, and do nothing else of the analysis we promise."""
    exact, stemmed, stop_word = (
        scores(dataset, MatchQuery(word, "text")) for word in ["cities", "city", "the"]
    )

    assert {name: int(name[1:]) % 4 for name in exact} == dict.fromkeys(exact, 1)
    assert {name: int(name[1:]) % 4 for name in stemmed} == dict.fromkeys(stemmed, 2)
    assert len(stop_word) == 10


def test_scores_count_the_rows_that_the_index_covers(dataset: LanceDataset) -> None:
    indexed = commit_index(dataset, "INVERTED")
    before = scores(indexed, MatchQuery("graph", "text"))

    after = scores(add(indexed, documents(8, offset=40)), MatchQuery("graph", "text"))

    assert {name: after[name] for name in before} == before


def test_fuzzy_sees_indexed_rows_only_and_stems_no_term(dataset: LanceDataset) -> None:
    assert scores(dataset, MatchQuery("grahp", "text", fuzziness=2)) == {}
    indexed = commit_index(dataset, "INVERTED")

    partly = add(indexed, documents(8, offset=40))

    found = scores(partly, MatchQuery("grapx", "text", fuzziness=1))
    assert found
    assert {int(name[1:]) for name in found} <= set(range(40))
    # The index holds the stem `databas`: one edit from `databases` is two from it, and more.
    assert scores(partly, MatchQuery("databasex", "text", fuzziness=1)) == {}
    assert scores(partly, MatchQuery("databasx", "text", fuzziness=1))


def nearest(dataset: LanceDataset, **options: object) -> list[tuple[str, float]]:
    query = {"column": "vector", "q": np.full(DIMENSION, 3.0, np.float32), "k": 3} | options
    found = dataset.to_table(nearest=query, columns=["id", "_distance"])
    return [(row["id"], row["_distance"]) for row in found.to_pylist()]


def test_an_exact_search_needs_no_index_and_its_distance_is_squared(dataset: LanceDataset) -> None:
    found = nearest(dataset, metric="l2")

    assert found[0] == ("d3", 0.0)
    assert {distance for _, distance in found[1:]} == {4.0}


def test_without_a_metric_an_index_decides_and_an_exact_search_is_l2(dataset: LanceDataset) -> None:
    segment = dataset.create_index_uncommitted(
        "vector", "IVF_FLAT", fragment_ids=[0], num_partitions=1, metric="cosine"
    )
    assert nearest(dataset)[1][1] == 4.0

    LanceDataset.commit(dataset, LanceOperation.CreateIndex([segment], []), read_version=1)

    indexed = reopened(dataset)
    assert max(distance for _, distance in nearest(indexed)) == pytest.approx(0.0, abs=1e-6)
    assert nearest(indexed, metric="l2")[1][1] == 4.0


def test_uncovered_vectors_are_found(dataset: LanceDataset) -> None:
    partly = add(commit_index(dataset, "IVF_FLAT"), documents(3, offset=1_000))
    query = {"column": "vector", "q": np.full(DIMENSION, 1_001.0, np.float32), "k": 1, "metric": "l2"}

    found = partly.to_table(nearest=query, columns=["id", "_distance"])

    assert found["id"].to_pylist() == ["d1001"]


@pytest.mark.parametrize(("prefilter", "expected"), [(False, 0), (True, 3)])
def test_a_filter_applies_after_the_limit_unless_told_otherwise(
    dataset: LanceDataset, prefilter: bool, expected: int
) -> None:
    query = {"column": "vector", "q": np.full(DIMENSION, 3.0, np.float32), "k": 3, "metric": "l2"}

    found = dataset.to_table(nearest=query, filter="id IN ('d30', 'd31', 'd32')", prefilter=prefilter)

    assert found.num_rows == expected
    text = dataset.to_table(
        full_text_query=MatchQuery("graph", "text"),
        filter="id IN ('d33', 'd37')",
        prefilter=prefilter,
        limit=2,
    )
    assert text.num_rows == (2 if prefilter else 0)


def test_nprobes_caps_the_partitions_that_are_searched(dataset: LanceDataset) -> None:
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    segment = dataset.create_index_uncommitted(
        "vector", "IVF_FLAT", fragment_ids=fragments, num_partitions=8, metric="L2"
    )
    LanceDataset.commit(dataset, LanceOperation.CreateIndex([segment], []), read_version=1)
    indexed = reopened(dataset)

    capped = nearest(indexed, k=40, nprobes=1, metric="l2")
    at_least = nearest(indexed, k=40, minimum_nprobes=1, metric="l2")

    assert len(capped) < 40
    assert len(at_least) == 40


def test_a_vector_column_without_vectors_cannot_be_trained(tmp_path: Path) -> None:
    empty = documents(3).set_column(2, SCHEMA.field("vector"), pa.nulls(3, SCHEMA.field("vector").type))
    dataset = lance.write_dataset(empty, str(tmp_path / "nulls"), enable_stable_row_ids=True)

    with pytest.raises((RuntimeError, OSError, ValueError), match="KMeans"):
        dataset.create_index_uncommitted(
            "vector", "IVF_FLAT", fragment_ids=[0], num_partitions=1, metric="L2"
        )


def replace_first(
    dataset: LanceDataset, text: str, *, fields: list[int], vector: list[float] | None = None
) -> LanceDataset:
    """Replace the first document's text, and its vector, by hand, its row id carried over."""
    from lance.fragment import RowIdSequence

    from tests.support.raw_lance import fragments_of

    changed = documents(1).set_column(1, SCHEMA.field("text"), pa.array([text]))
    if vector is not None:
        changed = changed.set_column(
            2, SCHEMA.field("vector"), pa.array([vector], SCHEMA.field("vector").type)
        )
    [fragment] = fragments_of(dataset, changed)
    fragment.row_id_meta = RowIdSequence([0]).to_inline_metadata()
    emptied = dataset.get_fragments()[0].delete_rows([0])
    assert emptied is not None
    operation = LanceOperation.Update(
        [], [emptied], [fragment], fields_for_preserving_frag_bitmap=fields, update_mode="rewrite_rows"
    )
    return LanceDataset.commit(dataset, operation, read_version=dataset.version, max_retries=0)


def covered(dataset: LanceDataset, name: str) -> list[int]:
    [described] = [item for item in dataset.describe_indices() if item.name == name]
    return sorted(number for segment in described.segments for number in segment.fragment_ids)


def test_an_update_that_names_no_fields_counts_as_indexed_and_hides_its_rows(dataset: LanceDataset) -> None:
    indexed = commit_index(dataset, "BTREE", "INVERTED", "IVF_FLAT")

    wrong = replace_first(indexed, "entirely different", fields=[])

    assert covered(wrong, "text__btree") == [0]
    assert covered(wrong, "text__fts") == covered(wrong, "vector_idx") == [0, 1]
    assert scores(wrong, MatchQuery("different", "text")) == {}


def test_an_update_that_names_its_fields_is_uncovered_and_found(dataset: LanceDataset) -> None:
    indexed = commit_index(dataset, "BTREE", "INVERTED", "IVF_FLAT")

    right = replace_first(indexed, "entirely different", fields=[0, 1, 2])

    assert covered(right, "text__fts") == covered(right, "vector_idx") == [0]
    assert set(scores(right, MatchQuery("different", "text"))) == {"d0"}
    assert "d0" not in scores(right, MatchQuery("graph", "text"))


@pytest.mark.parametrize(("merged_segments", "is_found_again"), [(0, True), (1, False)])
def test_a_new_text_segment_brings_back_the_old_words_of_replaced_rows(
    dataset: LanceDataset, merged_segments: int, is_found_again: bool
) -> None:
    changed = replace_first(commit_index(dataset, "INVERTED"), "entirely different", fields=[0, 1, 2])

    changed.optimize.optimize_indices(num_indices_to_merge=merged_segments)

    assert covered(changed, "text__fts") == [0, 1]
    assert set(scores(changed, MatchQuery("different", "text"))) == {"d0"}
    assert ("d0" in scores(changed, MatchQuery("graph", "text"))) is is_found_again


@pytest.mark.parametrize("merged_segments", [0, 1])
def test_new_btree_and_vector_segments_bring_nothing_back(
    dataset: LanceDataset, merged_segments: int
) -> None:
    indexed = commit_index(dataset, "BTREE", "IVF_FLAT")
    changed = replace_first(indexed, "entirely different", fields=[0, 1, 2], vector=[99.0] * DIMENSION)

    changed.optimize.optimize_indices(num_indices_to_merge=merged_segments)

    assert covered(changed, "text__btree") == covered(changed, "vector_idx") == [0, 1]
    same = changed.to_table(columns=["id"], filter=f"text = '{TEXTS[0]}'")["id"].to_pylist()
    assert set(same) == {f"d{number}" for number in range(4, 40, 4)}
    query = {"column": "vector", "q": np.zeros(DIMENSION, np.float32), "k": 1, "metric": "l2"}
    [nearest] = changed.to_table(nearest=query, columns=["id"], filter="true", prefilter=True).to_pylist()
    assert nearest["id"] == "d1"


@pytest.mark.parametrize(("text_filter", "missing"), [(None, 3), ("true", 0)])
def test_a_vector_search_without_a_filter_misses_rows_after_a_compaction(
    tmp_path: Path, text_filter: str | None, missing: int
) -> None:
    """The library takes the stable row ids of a compacted fragment for positions in it."""
    dataset = lance.write_dataset(
        documents(30), str(tmp_path / "compacted"), enable_stable_row_ids=True, max_rows_per_file=10
    )
    indexed = commit_index(dataset, "IVF_FLAT")
    indexed.delete("id IN ('d0', 'd3', 'd7')")
    indexed.optimize.compact_files()
    query = {"column": "vector", "q": np.zeros(DIMENSION, np.float32), "k": 27, "metric": "l2"}

    found = reopened(dataset).to_table(
        nearest=query, columns=["id", "_distance"], filter=text_filter, prefilter=text_filter is not None
    )

    assert found.num_rows == 27 - missing


@pytest.mark.parametrize(("token", "is_found"), [("x" * 39, True), ("x" * 40, False), ("ж" * 20, False)])
def test_the_longest_token_is_counted_in_bytes_and_left_out(
    tmp_path: Path, token: str, is_found: bool
) -> None:
    one = documents(1).set_column(1, SCHEMA.field("text"), pa.array([token]))
    dataset = lance.write_dataset(one, str(tmp_path / "long"), enable_stable_row_ids=True)
    options = TEXT_ANALYSIS | {"max_token_length": 40}
    raw = dataset.create_index_uncommitted("text", "INVERTED", fragment_ids=[0], **options)
    finished = dataset.merge_existing_index_segments([raw])
    LanceDataset.commit(dataset, LanceOperation.CreateIndex([finished], []), read_version=1)

    found = scores(reopened(dataset), MatchQuery(token, "text"))

    assert bool(found) is is_found
