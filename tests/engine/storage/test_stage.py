"""Staged writes: nothing is visible before the commit, and what becomes visible is what was asked for."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation

from omnigraph.core.errors import StorageError
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.storage.tables.stage import IndexRequest, StagedWrite
from omnigraph.storage.tables.table import TableAddress
from tests.support.seam import patched
from tests.support.tables import ROW_COLUMNS, SCHEMA, Workbench, names, rows, table_schema

SEARCHABLE = table_schema(
    pa.field("text", pa.utf8()),
    pa.field("vector", pa.list_(pa.float32(), 2)),
)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    bench = Workbench(tmp_path)
    bench.append(rows(["a", "b", "c"], 1))
    return bench


def searchable(directory: Path) -> Workbench:
    bench = Workbench(directory, SEARCHABLE, name="searchable")
    columns: dict[str, list[object]] = {
        "id": [*names(20)],
        "text": ["a graph of things"] * 20,
        "vector": [[float(number), 1.0] for number in range(20)],
    }
    bench.append(pa.table(columns, schema=SEARCHABLE))
    return bench


STAGES: dict[str, Callable[[Workbench], StagedWrite | None]] = {
    "append": lambda bench: bench.stager.stage_append(bench.head(), rows(["x"])),
    "upsert": lambda bench: bench.stager.stage_upsert(bench.head(), rows(["a", "x"])),
    "large upsert": lambda bench: bench.stager.stage_upsert(bench.head(), rows(["a", *names(1_000)])),
    "overwrite": lambda bench: bench.stager.stage_overwrite(bench.head(), SCHEMA, rows(["x"])),
    "delete": lambda bench: bench.stager.stage_delete(bench.head(), ["a"]),
}
INDEXES = {"btree": "id", "fulltext": "text", "vector": "vector"}


@pytest.mark.case("engine", 66)
@pytest.mark.parametrize("stage", [*STAGES, *INDEXES])
def test_staging_moves_no_head(bench: Workbench, tmp_path: Path, stage: str) -> None:
    if stage in INDEXES:
        bench = searchable(tmp_path)
        staged, _ = bench.stager.stage_create_indices(
            bench.head(),
            [IndexRequest(INDEXES[stage], stage)],  # type: ignore[arg-type]
        )
    else:
        staged = STAGES[stage](bench)

    assert staged is not None
    assert staged.read_version == 2
    assert bench.store.latest_version(bench.address) == 2
    assert staged.files
    assert all(Path(name).is_file() and Path(name).is_absolute() for name in staged.files)
    assert bench.commit(staged).version == 3


@pytest.mark.parametrize("stage", STAGES)
def test_files_name_everything_that_was_written(bench: Workbench, tmp_path: Path, stage: str) -> None:
    def present() -> set[str]:
        return {str(path) for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".txn"}

    before = present()

    staged = STAGES[stage](bench)
    assert staged is not None
    staged_files = present() - before
    committed = bench.commit(staged)

    assert set(staged.files) == staged_files
    assert set(committed.files) == present() - before - staged_files


@pytest.mark.case("engine", 67)
def test_an_overwrite_without_rows_keeps_schema_and_row_ids(bench: Workbench) -> None:
    before = bench.head()

    committed = bench.commit(bench.stager.stage_overwrite(before, SCHEMA, None))

    after = bench.head()
    assert (committed.version, committed.row_count, after.row_count) == (3, 0, 0)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after._dataset.has_stable_row_ids
    bench.append(rows(["d"]))
    assert bench.content()["d"]["_rowid"] == 3


def test_an_overwrite_takes_the_full_schema(bench: Workbench) -> None:
    wider = SCHEMA.append(pa.field("note", pa.utf8(), metadata={"omnigraph.stable_property_id": "7"}))
    table = rows(["x"]).append_column(wider.field("note"), pa.array(["hello"]))

    staged = bench.stager.stage_overwrite(bench.head(), wider, table)
    bench.commit(staged)

    assert (staged.rows_added, staged.rows_removed) == (1, 3)
    assert bench.head().schema.equals(wider, check_metadata=True)
    assert bench.store.scan(bench.head()).to_pylist() == [{"id": "x", "rank": 0, "note": "hello"}]


def removed_fragments(staged: StagedWrite) -> Sequence[int]:
    operation = staged._operation
    assert isinstance(operation, LanceOperation.Delete)
    return list(operation.deleted_fragment_ids)


@pytest.mark.case("engine", 68)
def test_a_delete_stages_what_it_finds(bench: Workbench) -> None:
    bench.append(rows(["d"]))

    nothing = bench.stager.stage_delete(bench.head(), ["absent"])
    part = bench.stager.stage_delete(bench.head(), ["a", "absent"])
    whole = bench.stager.stage_delete(bench.head(), ["d", "b"])

    assert nothing is None
    assert part is not None
    assert whole is not None
    assert (removed_fragments(part), removed_fragments(whole)) == ([], [1])
    assert (part.rows_removed, whole.rows_removed) == (1, 2)
    assert bench.commit(whole).row_count == 2
    assert bench.ids() == ["a", "c"]


def test_a_delete_of_everything_empties_the_table(bench: Workbench) -> None:
    bench.delete(["a", "b", "c"])
    assert bench.head().fragment_count == 0

    bench.upsert(rows(["a"], 5))

    assert bench.content()["a"]["rank"] == 5
    assert bench.store.transaction_info(bench.address, 4).operation == "merge"


def test_an_upsert_replaces_rows_and_keeps_who_they_are(bench: Workbench) -> None:
    staged = bench.stager.stage_upsert(bench.head(), rows(["x", "b"], 9))
    bench.commit(staged)

    assert (staged.rows_added, staged.rows_removed) == (1, 0)
    content = bench.content()
    assert {key: row["rank"] for key, row in content.items()} == {"a": 1, "b": 9, "c": 1, "x": 9}
    assert tuple(content["b"].values()) == ("b", 9, 1, 2, 3)
    assert tuple(content["x"].values()) == ("x", 9, 3, 3, 3)


def test_an_upsert_of_one_id_twice_is_our_mistake(bench: Workbench) -> None:
    with pytest.raises(AssertionError, match="distinct"):
        bench.stager.stage_upsert(bench.head(), rows(["a", "a"]))


@pytest.mark.case("engine", 346)
@pytest.mark.parametrize("indexed", [False, True], ids=["plain", "btree"])
@pytest.mark.parametrize("kind", ["new", "matched", "mixed"])
@pytest.mark.parametrize("count", [1, 1_000, 1_001])
def test_an_upsert_leaves_what_a_merge_of_the_library_leaves(
    tmp_path: Path, count: int, kind: str, indexed: bool
) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(1_200), 1))
    if indexed:
        bench.index(IndexRequest("id", "btree"))
    bench.upsert(rows(names(100, "later"), 2))
    offset = {"new": 5_000, "matched": 100, "mixed": 1_200 - count // 2}[kind]
    ids = [f"n{number:06d}" for number in range(offset, offset + count)]
    source = rows(ids[::-1], 7)
    shutil.copytree(bench.address.uri, tmp_path / "merged")

    staged = bench.stager.stage_upsert(bench.head(), source)
    ours = bench.commit(staged)
    theirs = lance.dataset(tmp_path / "merged")
    builder = theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    counts = builder.execute(source)

    found = {row["id"]: row for row in theirs.to_table(columns=ROW_COLUMNS).to_pylist()}
    assert staged.rows_added == counts["num_inserted_rows"]
    assert ours.version == theirs.version
    assert comparable(bench.content(), ours.version, ids) == comparable(found, ours.version, ids)


def comparable(content: dict[str, dict[str, Any]], version: int, ids: Sequence[str]) -> dict[str, object]:
    """Return the rows; which of the fresh row ids a new row has is nobody's business."""
    fresh = {row["_rowid"] for row in content.values() if row["_row_created_at_version"] == version}
    kept: dict[str, object] = {}
    for key, row in content.items():
        is_new = row["_rowid"] in fresh
        kept[key] = (
            row["rank"],
            "new" if is_new else row["_rowid"],
            row["_row_created_at_version"],
            row["_row_last_updated_at_version"],
        )
    assert len({row["_rowid"] for row in content.values()}) == len(content)
    assert all(content[key]["_row_last_updated_at_version"] == version for key in ids)
    return kept


def test_an_upsert_above_the_size_of_a_fragment_writes_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    bench = Workbench(tmp_path)
    bench.append(rows(names(30), 1))
    patched(monkeypatch, "omnigraph.storage.tables.shapes.MAX_FRAGMENT_ROWS", 8)

    bench.upsert(rows(names(40)[10:], 2))

    content = bench.content()
    assert [content[key]["_rowid"] for key in names(30)] == list(range(30))
    assert {content[key]["_row_created_at_version"] for key in names(30)} == {2}
    assert {content[key]["_row_created_at_version"] for key in names(40)[30:]} == {3}
    sizes = [fragment.count_rows() for fragment in bench.head()._dataset.get_fragments()]
    assert sizes == [10, 8, 8, 8, 6]


def test_no_fragment_is_larger_than_allowed(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    many = rows(names(MAX_FRAGMENT_ROWS + 5))

    bench.append(many)
    bench.commit(bench.stager.stage_overwrite(bench.head(), SCHEMA, many))

    sizes = [fragment.count_rows() for fragment in bench.head()._dataset.get_fragments()]
    assert sizes == [MAX_FRAGMENT_ROWS, 5]


def test_fragments_written_elsewhere_are_added(bench: Workbench) -> None:
    from tests.support.raw_lance import fragments_of

    elsewhere = [
        fragment.to_json()
        for part in (rows(["x"]), rows(["y"]))
        for fragment in fragments_of(bench.head()._dataset, part)
    ]

    staged = bench.stager.stage_fragments(bench.head(), elsewhere)
    bench.commit(staged)

    assert (staged.rows_added, staged.files) == (2, ())
    assert bench.ids() == ["a", "b", "c", "x", "y"]


@pytest.mark.case("engine", 651)
def test_fragments_written_elsewhere_that_are_gone_are_not_committed(bench: Workbench) -> None:
    from tests.support.raw_lance import fragments_of

    (fragment,) = fragments_of(bench.head()._dataset, rows(["x"]))
    staged = bench.stager.stage_fragments(bench.head(), [fragment.to_json()])
    (file,) = staged.others_files
    Path(file).unlink()

    with pytest.raises(StorageError, match="is missing"):
        bench.commit(staged)

    assert bench.ids() == ["a", "b", "c"]


@pytest.mark.case("engine", 650)
def test_fragments_written_elsewhere_that_are_cut_off_are_not_staged(bench: Workbench) -> None:
    from tests.support.raw_lance import fragments_of

    (fragment,) = fragments_of(bench.head()._dataset, rows(["x"]))
    root = bench.head().address.local_path
    assert root is not None
    file = root / "data" / fragment.files[0].path
    file.write_bytes(file.read_bytes()[:100] + b"LANC")

    with pytest.raises(StorageError, match="has 104 of"):
        bench.stager.stage_fragments(bench.head(), [fragment.to_json()])


def test_a_column_of_another_order_or_without_metadata_is_conformed(bench: Workbench) -> None:
    loose = pa.table({"rank": [4], "id": ["x"]})

    bench.append(loose)

    assert bench.content()["x"]["rank"] == 4


def test_a_fork_keeps_its_files_below_itself(bench: Workbench) -> None:
    bench.head()._dataset.create_branch("fork")
    fork = TableAddress(bench.address.uri, "fork")
    handle = bench.store.open_head(fork)

    staged = bench.stager.stage_upsert(handle, rows(["a", "x"], 8))
    committed = bench.commit(staged)

    below = str(fork.local_path)
    assert committed.version == 3
    assert len(staged.files) == 2
    assert all(name.startswith(below) for name in (*staged.files, *committed.files))
    assert sorted(bench.ids(bench.store.open_head(fork))) == ["a", "b", "c", "x"]
    assert bench.ids() == ["a", "b", "c"]
