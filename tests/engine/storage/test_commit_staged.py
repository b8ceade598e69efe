"""The commit of a staged write: strict, at most once, and honest about what it does not know."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import pytest
from lance import LanceDataset
from lance.commit import CommitConflictError

from omnigraph.core.errors import (
    CommitConflict,
    InvariantViolation,
    RecoveryRequired,
    StaleCommit,
    StorageError,
)
from omnigraph.storage.tables.stage import IndexRequest
from omnigraph.storage.tables.table import TableStore
from tests.support.shapes import ALL_SHAPES, EMPTY_SHAPES, LARGE_UPSERT, SHAPES
from tests.support.tables import SCHEMA, Workbench, rows


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    bench = Workbench(tmp_path)
    bench.append(rows(["a", "b"], 1))
    return bench


@pytest.mark.case("engine", 71)
@pytest.mark.parametrize("second", SHAPES)
@pytest.mark.parametrize("first", SHAPES)
def test_a_stale_write_is_refused(bench: Workbench, first: str, second: str) -> None:
    base = bench.head()
    winner, loser = SHAPES[first](bench.stager, base, "1"), SHAPES[second](bench.stager, base, "2")
    bench.commit(winner)
    content = bench.content()

    with pytest.raises(CommitConflict):
        bench.commit(loser)

    assert bench.store.latest_version(bench.address) == 3
    assert bench.content() == content


@pytest.mark.case("engine", 346)
@pytest.mark.parametrize("other", ALL_SHAPES)
def test_a_large_upsert_is_as_strict(bench: Workbench, other: str) -> None:
    for first, second in [(LARGE_UPSERT, other), (other, LARGE_UPSERT)]:
        base = bench.head()
        winner = ALL_SHAPES[first](bench.stager, base, f"{base.version}-1")
        loser = ALL_SHAPES[second](bench.stager, base, f"{base.version}-2")
        committed = bench.commit(winner)

        with pytest.raises(CommitConflict):
            bench.commit(loser)

        assert bench.store.latest_version(bench.address) == committed.version
        bench.upsert(rows(["a", "b"]))


@pytest.mark.parametrize("second", EMPTY_SHAPES)
@pytest.mark.parametrize("first", EMPTY_SHAPES)
def test_a_stale_write_to_an_empty_table_is_refused(tmp_path: Path, first: str, second: str) -> None:
    bench = Workbench(tmp_path)
    base = bench.head()
    winner, loser = ALL_SHAPES[first](bench.stager, base, "1"), ALL_SHAPES[second](bench.stager, base, "2")
    bench.commit(winner)

    with pytest.raises(CommitConflict):
        bench.commit(loser)

    assert bench.store.latest_version(bench.address) == 2


@pytest.mark.case("engine", 71)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("between", ["index", "config"])
def test_a_write_that_landed_behind_a_foreign_commit_is_never_reported_as_done(
    bench: Workbench, shape: str, between: str
) -> None:
    staged = SHAPES[shape](bench.stager, bench.head(), "1")
    if between == "index":
        bench.index(IndexRequest("id", "btree"))
    else:
        lance.dataset(bench.address.uri).update_config({"some.key": "value"})

    with pytest.raises((StaleCommit, CommitConflict)) as refused:
        bench.commit(staged)

    if isinstance(refused.value, StaleCommit):
        assert (refused.value.expected, refused.value.actual) == (3, 4)
    else:  # an overwrite is refused by its own strictness
        assert shape == "overwrite"
        assert bench.store.latest_version(bench.address) == 3


def test_an_index_commit_behind_another_is_stale(bench: Workbench) -> None:
    base = bench.head()
    first, _ = bench.stager.stage_create_indices(base, [IndexRequest("id", "btree")])
    second, _ = bench.stager.stage_create_indices(base, [IndexRequest("rank", "btree")])
    assert first is not None
    assert second is not None
    bench.commit(first)

    with pytest.raises(StaleCommit):
        bench.commit(second)


def test_what_was_staged_before_an_overwrite_is_refused_for_good(bench: Workbench) -> None:
    base = bench.head()
    index, _ = bench.stager.stage_create_indices(base, [IndexRequest("id", "btree")])
    assert index is not None
    bench.commit(bench.stager.stage_overwrite(base, SCHEMA, None))

    with pytest.raises(CommitConflict):
        bench.commit(index)


@contextmanager
def failing_commit(monkeypatch: pytest.MonkeyPatch, *, lands: bool, error: Exception) -> Iterator[None]:
    """Let the library's commit fail, before or after it has done its work."""
    real = LanceDataset.commit

    def commit(*args: object, **options: object) -> LanceDataset:
        if lands:
            real(*args, **options)  # type: ignore[arg-type]
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(LanceDataset, "commit", staticmethod(commit))
        yield


LOST = OSError("the connection was closed before the answer came")


@pytest.mark.case("engine", 73)
@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_commit_whose_answer_was_lost_is_recognised_by_its_uuid(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    staged = ALL_SHAPES[shape](bench.stager, bench.head(), "1")

    with failing_commit(monkeypatch, lands=True, error=LOST):
        committed = bench.commit(staged)

    assert (committed.version, committed.transaction_uuid) == (3, staged.transaction_uuid)
    assert committed.row_count == bench.head().row_count
    assert all(Path(name).is_file() for name in committed.files)


@pytest.mark.case("engine", 73)
def test_a_creation_whose_answer_was_lost_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Workbench
) -> None:
    address = type(bench.address)(str(tmp_path / "another"))
    staged = bench.stager.stage_create_table(address, SCHEMA)

    with failing_commit(monkeypatch, lands=True, error=LOST):
        committed = bench.commit(staged)

    assert (committed.version, committed.row_count) == (1, 0)


def test_a_commit_that_failed_and_did_not_land_says_so(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = bench.stager.stage_append(bench.head(), rows(["x"]))

    with failing_commit(monkeypatch, lands=False, error=LOST), pytest.raises(StorageError) as failed:
        bench.commit(staged)

    assert "append" in str(failed.value)
    assert bench.ids() == ["a", "b"]


def test_an_answer_lost_behind_a_foreign_commit_is_stale(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = bench.stager.stage_append(bench.head(), rows(["x"]))
    bench.index(IndexRequest("id", "btree"))

    with failing_commit(monkeypatch, lands=True, error=LOST), pytest.raises(StaleCommit) as stale:
        bench.commit(staged)

    assert stale.value.actual == 4


def test_when_nobody_can_tell_the_outcome_is_unknown(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = bench.stager.stage_append(bench.head(), rows(["x"]))
    versions = Path(bench.address.uri) / "_versions"

    def destroy(*args: object, **options: object) -> LanceDataset:
        for path in versions.iterdir():
            path.write_bytes(b"")
        raise LOST

    monkeypatch.setattr(LanceDataset, "commit", staticmethod(destroy))
    with pytest.raises(RecoveryRequired) as unknown:
        bench.commit(staged)

    assert unknown.value.operation_id == "OPERATION"
    assert unknown.value.__cause__ is LOST


def test_a_conflict_with_our_own_repeated_write_is_success(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = bench.stager.stage_append(bench.head(), rows(["x"]))
    conflict = CommitConflictError("Retryable commit conflict for version 3", retryable=True)

    with failing_commit(monkeypatch, lands=True, error=conflict):
        committed = bench.commit(staged)

    assert committed.version == 3


def test_a_commit_that_cannot_be_read_back_is_of_unknown_outcome(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = bench.stager.stage_append(bench.head(), rows(["x"]))
    real = LanceDataset.commit

    def commit(*args: object, **options: object) -> LanceDataset:
        landed = real(*args, **options)  # type: ignore[arg-type]
        (Path(bench.address.uri) / "_versions" / f"{2**64 - 4:020d}.manifest").unlink()
        return landed

    monkeypatch.setattr(LanceDataset, "commit", staticmethod(commit))

    with pytest.raises(RecoveryRequired, match="unknown"):
        bench.commit(staged)


@pytest.mark.case("engine", 74)
@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_write_is_committed_once(bench: Workbench, shape: str) -> None:
    staged = ALL_SHAPES[shape](bench.stager, bench.head(), "1")
    bench.commit(staged)

    with pytest.raises(InvariantViolation, match="already"):
        bench.commit(staged)

    assert bench.store.latest_version(bench.address) == 3


@pytest.mark.case("engine", 74)
def test_a_refused_write_is_not_tried_again(bench: Workbench) -> None:
    base = bench.head()
    staged = bench.stager.stage_append(base, rows(["x"]))
    bench.append(rows(["y"]))
    with pytest.raises(CommitConflict):
        bench.commit(staged)

    with pytest.raises(InvariantViolation):
        bench.commit(staged)


def test_two_creations_of_one_table_have_one_winner(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    address = type(bench.address)(str(tmp_path / "another"))
    first, second = (bench.stager.stage_create_table(address, SCHEMA) for _ in range(2))
    bench.commit(first)

    with pytest.raises(CommitConflict, match="exists"):
        bench.commit(second)

    created = TableStore().open_head(address)
    assert (created.version, created.transaction_uuid) == (1, first.transaction_uuid)


def test_a_table_is_created_by_the_physical_rules(tmp_path: Path) -> None:
    dataset = Workbench(tmp_path).head()._dataset

    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"
    assert dataset.config() == {}
    assert dataset.schema.equals(SCHEMA, check_metadata=True)


def test_the_expected_version_of_somebody_else_is_not_taken_for_ours(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library hands back the right version with another transaction: it must not be published."""
    staged = bench.stager.stage_append(bench.head(), rows(["c"], 2))
    foreign = bench.stager.stage_append(bench.head(), rows(["d"], 3))
    version = bench.commit(foreign).version
    assert version == staged.read_version + 1
    other = lance.dataset(bench.address.open_uri)
    monkeypatch.setattr(bench.stager, "_commit", lambda _staged, _transaction: other)

    with pytest.raises(StaleCommit):
        bench.commit(staged)
