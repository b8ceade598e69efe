"""The two maintenance calls that commit inline, and what searches see through all of it."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from lance.query import MatchQuery

from omnigraph.core.errors import CommitConflict, StorageError
from omnigraph.core.limits import MAX_FRAGMENT_ROWS, SMALL_FRAGMENT_ROWS
from omnigraph.storage.tables.filter import Compare
from omnigraph.storage.tables.layout import COMPACTION_TARGET_ROWS, layout_for_maintenance
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.residual import BTREE_SEGMENTS_MAX, InlineCommitResidual
from omnigraph.storage.tables.stage import IndexRequest
from omnigraph.storage.tables.table import TableAddress
from omnigraph.storage.tables.undo import TableUndo
from tests.support.seam import patched
from tests.support.tables import Workbench, names, rows, table_schema

SEARCHABLE = table_schema(
    pa.field("rank", pa.int64()),
    pa.field("text", pa.utf8()),
    pa.field("vector", pa.list_(pa.field("item", pa.float32(), nullable=True), 2)),
)
INDEXES = [
    IndexRequest("id", "btree"),
    IndexRequest("rank", "btree"),
    IndexRequest("text", "fulltext"),
    IndexRequest("vector", "vector"),
]
WORDS = ["apple", "bridge", "castle", "dragon", "engine"]


def documents(ids: list[str], word: int) -> pa.Table:
    """Return documents that all indexes find under one word, rank and vector."""
    columns: dict[str, list[object]] = {
        "id": [*ids],
        "rank": [word] * len(ids),
        "text": [f"{WORDS[word]} things"] * len(ids),
        "vector": [[float(word), 0.0]] * len(ids),
    }
    return pa.table(columns, schema=SEARCHABLE)


def assert_searches_tell_the_truth(bench: Workbench) -> None:
    """Compare what every index says with a pass over the rows."""
    head = bench.head()
    rows_by_word: dict[int, set[str]] = {number: set() for number in range(len(WORDS))}
    for row in bench.store.scan(head, columns=["id", "rank"]).to_pylist():
        rows_by_word[row["rank"]].add(row["id"])
    for number, expected in rows_by_word.items():
        query = MatchQuery(WORDS[number], "text")
        text = head._dataset.to_table(full_text_query=query, columns=["id", "_score"])
        assert set(text["id"].to_pylist()) == expected, ("text", WORDS[number])
        assert set(bench.ids(head, Compare("rank", "eq", number))) == expected, ("rank", number)
        assert bench.store.existing_ids(head, sorted(expected)) == expected
        if expected:
            target = np.array([number, 0], np.float32)
            query_vector = {"column": "vector", "q": target, "k": len(expected), "metric": "l2"}
            # Without a filter Lance may miss rows, see test_guard_search.
            near = head._dataset.to_table(
                nearest=query_vector, columns=["id", "_distance"], filter="true", prefilter=True
            )
            assert set(near["id"].to_pylist()) == expected, ("vector", number)
            assert set(near["_distance"].to_pylist()) == {0.0}


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    bench = Workbench(tmp_path, SEARCHABLE)
    bench.append(documents(names(40), 0))
    bench.index(*INDEXES)
    return bench


def test_searches_follow_every_shape_of_write(bench: Workbench) -> None:
    pinned = bench.head()
    bench.upsert(documents([*names(3), "new"], 1))
    assert_searches_tell_the_truth(bench)
    bench.append(documents(["appended"], 2))
    assert_searches_tell_the_truth(bench)
    bench.delete(["n000005", "n000001"])
    assert_searches_tell_the_truth(bench)
    bench.upsert(documents([*names(30), *names(1_100, "large")], 3))
    assert_searches_tell_the_truth(bench)

    staged, form = TableUndo(bench.store).stage_rollback(bench.head(), pinned)
    bench.commit(staged)

    assert form == "inverse"
    assert_searches_tell_the_truth(bench)
    assert bench.ids() == names(40)
    bench.delete(names(40))
    bench.upsert(documents(names(5), 4))
    assert_searches_tell_the_truth(bench)


def test_upkeep_covers_what_it_can_and_searches_stay_true(bench: Workbench) -> None:
    residual = InlineCommitResidual(bench.store)

    for step in range(3):
        bench.upsert(documents(names(8)[step:], (step + 1) % 5))
        bench.upsert(documents([f"new{step}", "n000020"], (step + 2) % 5))
        bench.delete([f"n00003{step}"])
        assert_searches_tell_the_truth(bench)
        residual.compact_files(bench.address, target_rows=SMALL_FRAGMENT_ROWS)
        assert_searches_tell_the_truth(bench)
        residual.optimize_indices(bench.address)
        assert_searches_tell_the_truth(bench)
        coverage = bench.store.index_coverage(bench.head())
        waiting = {name for name, found in coverage.items() if found == "degraded"}
        assert waiting == {"text__fts", "vector__vector"}  # replaced rows wait

    residual.optimize_indices(bench.address, merge_segments=True)
    assert set(bench.store.index_coverage(bench.head()).values()) == {"indexed"}
    assert_searches_tell_the_truth(bench)


def test_rolling_back_upkeep_and_what_came_before_it_keeps_searches_true(bench: Workbench) -> None:
    residual = InlineCommitResidual(bench.store)
    pinned = bench.head()
    bench.upsert(documents(names(8), 1))
    residual.compact_files(bench.address, target_rows=SMALL_FRAGMENT_ROWS)
    residual.optimize_indices(bench.address)

    staged, form = TableUndo(bench.store).stage_rollback(bench.head(), pinned)
    bench.commit(staged)

    assert form == "restore"
    assert_searches_tell_the_truth(bench)
    bench.upsert(documents(names(4), 2))
    assert_searches_tell_the_truth(bench)
    residual.optimize_indices(bench.address)
    assert_searches_tell_the_truth(bench)


def test_a_fork_keeps_its_searches_through_upkeep(bench: Workbench) -> None:
    bench.append(documents(["second"], 1))  # more fragments under the source's indexes
    residual = InlineCommitResidual(bench.store)
    residual.optimize_indices(bench.address, merge_segments=True)
    source = bench.head()
    bench.address = RefStore(bench.store).create(bench.address, source.version, "fork-1")

    for step in range(4):
        bench.append(documents([f"new{step}"], step))
        bench.upsert(documents(["n000002"], step))
        residual.compact_files(bench.address, target_rows=SMALL_FRAGMENT_ROWS)
        assert_searches_tell_the_truth(bench)
        residual.optimize_indices(bench.address)
        assert_searches_tell_the_truth(bench)

    residual.optimize_indices(bench.address, merge_segments=True)
    folded = residual.compact_files(bench.address, target_rows=SMALL_FRAGMENT_ROWS)
    assert folded.fragments_added == 1  # now that every index is the fork's own, all of it is folded
    assert_searches_tell_the_truth(bench)
    assert bench.ids(source) == [*names(40), "second"]


def present(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*") if path.is_file() and path.suffix != ".txn"}


def test_small_fragments_are_folded_and_large_ones_stay(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(50)))
    bench.delete(names(20))
    for key in ["x", "y", "z"]:
        bench.append(rows([key]))
    content, before, version = bench.content(), present(tmp_path), bench.head().version

    outcome = InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=25)

    assert (outcome.version, outcome.fragments_removed, outcome.fragments_added) == (version + 3, 3, 1)
    assert [f.count_rows() for f in bench.head()._dataset.get_fragments()] == [30, 3]
    assert bench.content() == content
    assert set(outcome.files) == present(tmp_path) - before
    again = InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=25)
    assert (again.version, again.fragments_removed, again.files) == (outcome.version, 0, ())


def test_deleted_rows_of_large_fragments_are_rewritten_on_request(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(50)))
    bench.delete(names(20))
    content = bench.content()

    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=25, rewrite_deletions=True)

    fragments = [fragment.metadata for fragment in bench.head()._dataset.get_fragments()]
    assert sum(fragment.physical_rows for fragment in fragments) == 30
    assert bench.content() == content


def test_new_rows_are_covered_by_one_segment_for_each_index(bench: Workbench, tmp_path: Path) -> None:
    residual = InlineCommitResidual(bench.store)
    bench.append(documents(["new"], 1))
    before, version = present(tmp_path), bench.head().version

    outcome = residual.optimize_indices(bench.address)

    assert outcome.version == version + 1
    assert set(outcome.files) == present(tmp_path) - before
    assert all(len(item.segments) == 2 for item in bench.head()._dataset.describe_indices())
    again = residual.optimize_indices(bench.address)
    assert (again.version, again.files) == (outcome.version, ())


def test_maintenance_carries_no_operation_of_ours(bench: Workbench) -> None:
    residual = InlineCommitResidual(bench.store)
    for key in ["x", "y"]:
        bench.append(documents([key], 1))
    version = bench.head().version
    residual.compact_files(bench.address, target_rows=SMALL_FRAGMENT_ROWS)
    residual.optimize_indices(bench.address)

    found = [bench.store.transaction_info(bench.address, version + step) for step in (1, 2, 3, 4)]

    assert [info.operation for info in found] == ["config", "reserve", "rewrite", "create_index"]
    assert all(info.properties == {} and info.uuid for info in found)


def test_a_missing_table_is_not_found(bench: Workbench, tmp_path: Path) -> None:
    residual = InlineCommitResidual(bench.store)
    absent = TableAddress(str(tmp_path / "absent"))

    with pytest.raises(StorageError) as missing:
        residual.compact_files(absent, target_rows=10)

    assert missing.value.kind == "not_found"


def test_a_compaction_that_lost_is_a_conflict(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance.dataset import DatasetOptimizer
    from lance.optimize import Compaction

    bench.append(documents(["x"], 1))
    bench.append(documents(["y"], 1))

    def overtaken(self: DatasetOptimizer, **options: object) -> None:
        dataset = self._dataset
        results = [task.execute(dataset) for task in Compaction.plan(dataset, {}).tasks]
        bench.upsert(documents(["x"], 2))
        Compaction.commit(dataset, results)

    monkeypatch.setattr(DatasetOptimizer, "compact_files", overtaken)
    with pytest.raises(CommitConflict):
        InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=100)

    assert_searches_tell_the_truth(bench)


@pytest.mark.parametrize("seed", range(4))
def test_searches_stay_true_through_anything_that_happens_to_a_table(bench: Workbench, seed: int) -> None:
    random = Random(seed)
    residual = InlineCommitResidual(bench.store)
    pinned = bench.head()

    def some(ids: list[str]) -> list[str]:
        return random.sample(ids, min(len(ids), random.randint(1, 6)))

    def roll_back() -> None:
        staged, _ = TableUndo(bench.store).stage_rollback(bench.head(), pinned)
        bench.commit(staged)

    word = partial(random.randrange, len(WORDS))
    steps = [
        lambda: bench.upsert(documents(sorted({*some(bench.ids()), f"u{random.randrange(40)}"}), word())),
        lambda: bench.upsert(documents(sorted({*some(bench.ids()), *names(1_000, "large")}), word())),
        lambda: bench.append(documents([f"a{bench.head().version}"], word())),
        lambda: bench.delete(some(bench.ids())),
        lambda: residual.compact_files(bench.address, target_rows=random.choice([10, 50, 16_384])),
        lambda: residual.compact_files(bench.address, target_rows=50, rewrite_deletions=True),
        lambda: residual.optimize_indices(bench.address),
        lambda: residual.optimize_indices(bench.address, merge_segments=True),
        roll_back,
    ]
    for _ in range(25):
        random.choice(steps)()
        assert_searches_tell_the_truth(bench)


def segments(bench: Workbench, name: str) -> int:
    [described] = [item for item in bench.head()._dataset.describe_indices() if item.name == name]
    return len(described.segments)


def test_segments_and_fragments_do_not_grow_with_the_number_of_inserts(bench: Workbench) -> None:
    residual = InlineCommitResidual(bench.store)

    for step in range(12):
        bench.append(documents([f"first{step}"], step % 5))
        bench.append(documents([f"second{step}"], step % 5))
        residual.compact_files(bench.address, target_rows=10)
        residual.optimize_indices(bench.address)

    assert {segments(bench, request.name) for request in INDEXES} == {2}
    assert bench.head().fragment_count <= 5
    assert_searches_tell_the_truth(bench)


def test_segments_and_fragments_do_not_grow_with_the_number_of_updates(bench: Workbench) -> None:
    residual = InlineCommitResidual(bench.store)

    for step in range(2 * BTREE_SEGMENTS_MAX + 3):
        bench.upsert(documents(names(40)[step : step + 2], step % 5))
        residual.compact_files(bench.address, target_rows=10)
        residual.optimize_indices(bench.address)
        assert segments(bench, "id__btree") <= BTREE_SEGMENTS_MAX

    assert bench.head().fragment_count <= 2 * BTREE_SEGMENTS_MAX
    assert_searches_tell_the_truth(bench)


def test_replaced_vectors_wait_until_they_fill_a_segment(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:

    residual = InlineCommitResidual(bench.store)
    bench.upsert(documents(names(3), 1))
    residual.optimize_indices(bench.address)
    waiting = segments(bench, "vector__vector")
    patched(monkeypatch, "omnigraph.storage.tables.residual.SMALL_FRAGMENT_ROWS", 3)

    residual.optimize_indices(bench.address)

    assert (waiting, segments(bench, "vector__vector")) == (1, 2)
    assert_searches_tell_the_truth(bench)


def test_threads_share_one_handle_for_everything(bench: Workbench) -> None:
    """Some calls of the library borrow a dataset exclusively; none of ours may do so with a shared one."""
    head, stager, store = bench.head(), bench.stager, bench.store
    calls: list[Callable[[], object]] = [
        lambda: bench.ids(head, Compare("rank", "eq", 0)),
        lambda: store.count_rows(head, Compare("rank", "ge", 0)),
        lambda: store.latest_version(bench.address),
        lambda: store.index_coverage(head),
        lambda: store.transaction_info(bench.address, head.version),
        lambda: store.existing_ids(head, names(3)),
        lambda: store.list_refs(bench.address),
        store.io_stats,
        lambda: stager.stage_append(head, documents(["x"], 1)),
        lambda: stager.stage_upsert(head, documents(["x", *names(2)], 1)),
        lambda: stager.stage_upsert(head, documents(names(1_001), 1)),
        lambda: stager.stage_delete(head, names(2)),
        lambda: stager.stage_overwrite(head, SEARCHABLE, documents(["x"], 1)),
        lambda: stager.stage_create_indices(head, [IndexRequest("text", "btree")]),
    ]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        random = Random(seed)
        try:
            for _ in range(40):
                random.choice(calls)()
        except BaseException as error:  # noqa: BLE001 - a panic of the library is one of these
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []


def test_a_full_compaction_makes_no_fragment_above_the_limit(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    for number in range(5):
        bench.append(rows(names(50_000, f"p{number}")))

    InlineCommitResidual(bench.store).compact_files(
        bench.address, target_rows=COMPACTION_TARGET_ROWS, rewrite_deletions=True
    )

    sizes = [part.count_rows() for part in bench.head()._dataset.get_fragments()]
    assert sum(sizes) == 250_000
    assert len(sizes) < 5
    assert max(sizes) <= MAX_FRAGMENT_ROWS


@pytest.mark.case("engine", 491)
def test_row_ids_rise_within_every_fragment(tmp_path: Path) -> None:
    """Otherwise each lookup by an index would look through the sequences of the whole table."""
    bench = Workbench(tmp_path)
    bench.append(rows(names(300)))
    bench.index(IndexRequest("id", "btree"))
    for number in range(10):
        bench.upsert(rows([f"n{number:06d}", f"new{number}"], number))
    bench.delete(names(100)[50:])

    InlineCommitResidual(bench.store).optimize_indices(bench.address, merge_segments=True)
    InlineCommitResidual(bench.store).compact_files(
        bench.address, target_rows=COMPACTION_TARGET_ROWS, rewrite_deletions=True
    )

    found = bench.store.scan(bench.head(), columns=["_rowid"])["_rowid"].to_numpy().astype(np.int64)
    falls = int((np.diff(found) < 0).sum())
    assert falls <= 10, "a fall for each fragment of rows that replaced others, and no more"


@pytest.mark.case("engine", 263)
def test_what_would_remove_versions_is_unset_by_a_commit_of_ours(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(3)))
    bench.store.open_unshared(bench.address).update_config(
        {"lance.auto_cleanup.interval": "20", "lance.auto_cleanup.older_than": "1h", "other": "stays"}
    )
    keys = layout_for_maintenance(bench.head()).auto_cleanup
    assert sorted(keys) == ["lance.auto_cleanup.interval", "lance.auto_cleanup.older_than"]

    made = bench.commit(bench.stager.stage_unset(bench.head(), keys))

    assert bench.head()._dataset.config() == {"other": "stays"}
    assert layout_for_maintenance(bench.head()).auto_cleanup == ()
    assert bench.store.transaction_info(bench.address, made.version).operation == "config"
