"""Row ids that new fragments carry: where they are kept, and what a version costs."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import lance
import numpy as np
import pytest
from lance import LanceDataset, LanceOperation

from omnigraph.core.limits import INLINE_ROW_IDS_BYTES_MAX
from omnigraph.storage.files.version_file import decode_version, version_file_name
from omnigraph.storage.tables import carried
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.rows import ReplacedRows
from omnigraph.storage.tables.stage import IndexRequest
from omnigraph.storage.tables.table import TableAddress
from omnigraph.storage.tables.undo import TableUndo
from tests.support.raw_lance import anchored, new_dataset
from tests.support.seam import patched
from tests.support.tables import SCHEMA, Workbench, names, rows

MANY = 4_000
SPARSE = 400  # updated at a time: too few for a bitmap, too many to be kept in a version


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    bench = Workbench(tmp_path)
    bench.append(rows(names(MANY), 1))
    return bench


def some(seed: int, count: int = SPARSE) -> list[str]:
    """Return ids that lie anywhere, in no order."""
    return Random(seed).sample(names(MANY), count)


def version_bytes(bench: Workbench, address: TableAddress | None = None) -> int:
    """Return the size of the newest version file."""
    handle = bench.store.open_head(address or bench.address)
    root = handle.address.local_path
    assert root is not None
    return (root / version_file_name(handle.version)).stat().st_size


def fragments(bench: Workbench) -> list[Any]:
    """Return what the newest version says of its fragments."""
    return [part.metadata for part in bench.head()._dataset.get_fragments()]


def is_in_file(fragment: lance.fragment.FragmentMetadata) -> bool:
    """Say whether a fragment keeps its row ids outside of the version."""
    return bool(fragment.to_json()["row_id_meta"] == "Column")


def assert_small(bench: Workbench, updated: int) -> None:
    """A version takes no more than its fragments and half a byte for each row that was ever updated."""
    assert version_bytes(bench) <= 400 * len(fragments(bench)) + updated // 2


def expected(updates: Sequence[tuple[int, Sequence[str]]]) -> dict[str, tuple[int, int, int]]:
    """Return row id, creating and last version of every row after updates, each in one version."""
    last = dict.fromkeys(names(MANY), 2)
    for version, ids in updates:
        last |= dict.fromkeys(ids, version)
    return {name: (number, 2, last[name]) for number, name in enumerate(names(MANY))}


def found(bench: Workbench) -> dict[str, tuple[int, int, int]]:
    """Return the same as the table has it."""
    hidden = ("_rowid", "_row_created_at_version", "_row_last_updated_at_version")
    return {
        key: cast("tuple[int, int, int]", tuple(row[name] for name in hidden))
        for key, row in bench.content().items()
    }


@pytest.mark.case("engine", 450)
def test_rows_that_replace_others_are_written_in_the_order_of_row_ids(bench: Workbench) -> None:
    few, many = some(1, 20), some(2)
    bench.upsert(rows(few, 5))
    bench.upsert(rows([*many, "new"], 6))

    numbers = {name: number for number, name in enumerate(names(MANY))}
    _, short, long, _fresh = bench.head()._dataset.get_fragments()
    for part, ids in ((short, set(few) - set(many)), (long, many)):
        assert part.to_table(columns=["id"])["id"].to_pylist() == sorted(ids, key=numbers.__getitem__)


@pytest.mark.case("engine", 450)
def test_a_known_replacement_is_brought_into_the_order_of_row_ids(bench: Workbench) -> None:
    ids = some(3)
    row_ids = np.array([int(name[1:]) for name in ids])

    staged = bench.stager.stage_upsert_chunks(bench.head(), [(rows(ids, 7), ReplacedRows(row_ids))])
    bench.commit(staged)

    assert found(bench) == expected([(3, ids)])
    assert [part.to_json()["row_id_meta"] for part in fragments(bench)][1:] == ["Column"]
    *_, newest = bench.head()._dataset.get_fragments()
    assert newest.to_table(columns=["id"])["id"].to_pylist() == sorted(ids)


@pytest.mark.case("engine", 451)
def test_versions_stay_small_whatever_is_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.storage.tables.shapes.MAX_FRAGMENT_ROWS", 500)
    bench = Workbench(tmp_path)
    bench.append(rows(names(MANY), 1))
    bench.index(IndexRequest("id", "btree"))
    updates = []
    for seed in range(12):
        ids = some(seed)
        updates.append((bench.upsert(rows(ids, seed)).version, ids))
        assert_small(bench, SPARSE * len(updates))

    assert found(bench) == expected(updates)
    assert bench.store.existing_ids(bench.head(), ["n000007", "x"]) == {"n000007"}


@pytest.mark.case("engine", 451)
def test_an_upsert_keeps_long_row_ids_in_a_file_and_short_ones_in_the_version(bench: Workbench) -> None:
    neighbours = names(MANY)[100:900]
    for ids in (some(1, 20), neighbours, some(2)):
        bench.upsert(rows(ids, 5))

    assert [is_in_file(part) for part in fragments(bench)] == [False, False, False, True]


@pytest.mark.case("engine", 451)
def test_rows_that_are_new_get_row_ids_of_their_own(bench: Workbench) -> None:
    ids = some(1)

    staged = bench.stager.stage_upsert(bench.head(), rows([*names(300, "m"), *ids], 5))
    bench.commit(staged)

    assert staged.rows_added == 300
    assert [part.physical_rows for part in fragments(bench)] == [MANY, SPARSE, 300]
    content = found(bench)
    assert {key: content[key] for key in names(MANY)} == expected([(3, ids)])
    assert {content[key] for key in names(300, "m")} == {(MANY + at, 3, 3) for at in range(300)}


@pytest.mark.case("engine", 451)
def test_the_file_is_one_of_the_files_of_the_write_and_of_the_version(bench: Workbench) -> None:
    staged = bench.stager.stage_upsert(bench.head(), rows(some(1), 5))
    bench.commit(staged)

    root = Path(bench.address.uri)
    decoded = decode_version((root / version_file_name(bench.head().version)).read_bytes())
    named = {str(root / file.path) for file in decoded.files}
    data = [path for path in staged.files if "/data/" in path]
    assert len(data) == 2
    assert set(data) <= named
    assert all(file.size for file in decoded.files if file.path.startswith("data/"))


@pytest.mark.case("engine", 452)
def test_created_versions_are_runs_and_survive_further_updates(tmp_path: Path) -> None:
    """Rows of many versions, so that runs do not fit; replaced, replaced again, and folded."""
    bench = Workbench(tmp_path)
    for batch in range(40):
        bench.append(rows(names(200, f"b{batch:02d}-"), 1))
    created = {key: row[1] for key, row in found(bench).items()}
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=10_000)
    every_other = sorted(created)[::2]

    for rank in (5, 6):
        bench.upsert(rows(every_other[rank:], rank))
        assert {key: row[1] for key, row in found(bench).items()} == created
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=10_000)

    assert {key: row[1] for key, row in found(bench).items()} == created
    assert {key: row[0] for key, row in found(bench).items()} == {
        key: number for number, key in enumerate(sorted(created))
    }


@pytest.mark.case("engine", 452)
@pytest.mark.parametrize("deleted", [0, 100], ids=["all", "some deleted"])
def test_created_versions_of_a_few_folded_loads_are_read_from_the_version(
    tmp_path: Path, deleted: int
) -> None:
    bench = Workbench(tmp_path)
    for batch in "abc":
        bench.append(rows(names(1_000, batch), 1))
    if deleted:
        bench.delete(Random(1).sample(names(1_000, "b"), deleted))
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=10_000)
    created = {key: row[1] for key, row in found(bench).items()}
    (folded,) = fragments(bench)
    assert "inline" in folded.to_json()["created_at_version_meta"]

    bench.upsert(rows(sorted(created)[::2], 5))

    assert {key: row[1] for key, row in found(bench).items()} == created


@pytest.mark.case("engine", 452)
def test_created_versions_of_many_runs_are_in_the_file_too(tmp_path: Path) -> None:
    """Rows of forty versions: their runs would fill the version."""
    bench = Workbench(tmp_path)
    for batch in range(40):
        bench.append(rows(names(200, f"b{batch:02d}-"), 1))
    created = {key: row[1] for key, row in found(bench).items()}

    bench.upsert(rows(sorted(created)[::4], 5))
    bench.upsert(rows(sorted(created)[::2], 6))

    *_, newest = fragments(bench)
    assert newest.to_json()["created_at_version_meta"] == {"column": {}}
    assert {key: row[1] for key, row in found(bench).items()} == created


@pytest.mark.case("engine", 452)
def test_a_fold_keeps_row_ids_and_versions_in_files(bench: Workbench) -> None:
    updates = []
    for seed in range(10):
        ids = some(seed, 60)
        updates.append((bench.upsert(rows(ids, seed)).version, ids))

    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=1_000)

    assert [is_in_file(part) for part in fragments(bench)] == [False, True]
    assert found(bench) == expected(updates)
    version = bench.head().version
    bench.upsert(rows(some(11, 60), 11))
    bench.upsert(rows(some(12, 60), 12))
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=1_000)
    assert bench.head().version == version + 4  # the table is told once where to keep them


def test_a_table_with_nothing_to_fold_is_left_alone(bench: Workbench) -> None:
    version = bench.head().version

    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=1_000)

    assert bench.head().version == version


@pytest.mark.case("engine", 452)
@pytest.mark.parametrize("how", ["fork", "overwrite"])
def test_a_table_keeps_them_in_files_when_it_is_forked_or_overwritten(bench: Workbench, how: str) -> None:
    bench.upsert(rows(some(1, 60), 1))
    bench.upsert(rows(some(2, 60), 1))
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=1_000)
    before = bench.head()._dataset.config()

    if how == "fork":
        after = bench.head()._dataset.create_branch("fork").config()
    else:
        bench.commit(bench.stager.stage_overwrite(bench.head(), SCHEMA, rows(["a"])))
        after = bench.head()._dataset.config()

    assert before["lance.row_lineage.spill"] == "true"
    assert after == before


@pytest.mark.case("engine", 453)
def test_a_fork_reads_what_it_inherits_and_writes_below_itself(bench: Workbench) -> None:
    inherited, own = some(1), some(2)
    bench.upsert(rows(inherited, 5))
    bench.head()._dataset.create_branch("fork")
    fork = TableAddress(bench.address.uri, "fork")
    handle = bench.store.open_head(fork)

    staged = bench.stager.stage_upsert(handle, rows(own, 6))
    bench.commit(staged)

    assert all(name.startswith(str(fork.local_path)) for name in staged.files)
    content = bench.content(bench.store.open_head(fork))
    assert {key: row["_rowid"] for key, row in content.items()} == {
        key: number for number, key in enumerate(names(MANY))
    }
    assert {key for key, row in content.items() if row["rank"] == 6} == set(own)
    assert found(bench) == expected([(3, inherited)])


@pytest.mark.case("engine", 453)
def test_such_a_write_is_undone_by_its_inverse(bench: Workbench) -> None:
    bench.upsert(rows(some(1), 5))
    base, before = bench.head(), bench.content()
    bench.upsert(rows(some(2), 6))

    undo, form = TableUndo(bench.store).stage_rollback(bench.head(), base)
    bench.commit(undo)

    assert form == "inverse"
    assert bench.content() == before


def test_the_estimate_is_near_what_the_library_writes() -> None:
    random = np.random.default_rng(1)
    for span, count in ((1_000, 1_000), (5_000, 4_990), (3_000_000, 500), (60_000, 500), (60_000, 30_000)):
        ids = np.sort(random.choice(span, count, replace=False)).astype(np.uint64)
        written = len(lance.fragment.RowIdSequence(ids.tolist()).to_inline_metadata().asdict()["Inline"])  # type: ignore[attr-defined]

        assert abs(carried.inline_bytes(ids) - written) <= 40 + written // 10, (span, count)
    assert carried.inline_bytes(np.empty(0, np.uint64)) == 0


def test_the_limit_decides(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.storage.tables.carried.INLINE_ROW_IDS_BYTES_MAX", 1 << 20)

    bench.upsert(rows(some(1), 5))

    assert not any(map(is_in_file, fragments(bench)))
    assert version_bytes(bench) > INLINE_ROW_IDS_BYTES_MAX


# What the library does; an upgrade that changes it fails here first.


@pytest.mark.case("engine", 78)
def test_row_ids_in_a_file_need_the_created_versions(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    transaction = anchored(dataset, ["a"])
    operation = transaction.operation
    assert isinstance(operation, LanceOperation.Update)
    (fragment,) = operation.new_fragments
    carried.RowIdFile(dataset.uri, None).write(fragment, np.array([0], np.uint64), np.array([1], np.uint64))
    fragment.created_at_version_meta = None

    with pytest.raises(OSError, match="created-at"):
        LanceDataset.commit(dataset, transaction, max_retries=0)


@pytest.mark.case("engine", 78)
def test_a_fold_without_the_setting_brings_row_ids_back_into_the_version(bench: Workbench) -> None:
    for seed in (1, 2):
        bench.upsert(rows(some(seed), seed))
    dataset = bench.store.open_unshared(bench.address)

    dataset.optimize.compact_files(target_rows_per_fragment=1_000, materialize_deletions=False)

    assert not any(map(is_in_file, fragments(bench)))
    assert sorted(row[0] for row in found(bench).values()) == list(range(MANY))
