"""A fence changes nothing, and whatever was staged before it is refused."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.core.errors import CommitConflict, StaleCommit
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.index import IndexRequest
from omnigraph.storage.tables.stage import OPERATION_ID_PROPERTY, TableStager
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.tables.undo import FENCE_PROPERTY, TableUndo

_FIELDS: "list[pa.Field[pa.DataType]]" = [
    pa.field("id", pa.utf8(), nullable=False),
    pa.field("n", pa.int64()),
]
SCHEMA = pa.schema(_FIELDS)
Stage = Callable[[TableStager, SnapshotHandle], StagedWrite | None]
SHAPES: dict[str, Stage] = {
    "append": lambda stager, handle: stager.stage_append(handle, rows("new")),
    "upsert": lambda stager, handle: stager.stage_upsert(handle, rows("a", "new")),
    "overwrite": lambda stager, handle: stager.stage_overwrite(handle, SCHEMA, rows("new")),
    "delete": lambda stager, handle: stager.stage_delete(handle, ["a"]),
}


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "n": [1] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def store() -> TableStore:
    return TableStore({})


def made(store: TableStore, place: Path, *ids: str) -> SnapshotHandle:
    """Return the newest version of a new table with some rows."""
    stager, address = TableStager(store), TableAddress(str(place / "table"))
    stager.commit_staged(stager.stage_create_table(address, SCHEMA), operation_id="1", writer_kind="init")
    if ids:
        staged = stager.stage_append(store.open_head(address), rows(*ids))
        stager.commit_staged(staged, operation_id="2", writer_kind="Load")
    return store.open_head(address)


@pytest.mark.case("engine", 381)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ids", [("a", "b"), ()], ids=["rows", "empty"])
def test_what_was_staged_before_a_fence_is_refused(
    store: TableStore, tmp_path: Path, shape: str, ids: tuple[str, ...]
) -> None:
    stager, base = TableStager(store), made(store, tmp_path, *ids)
    staged = SHAPES[shape](stager, base)
    if staged is None:
        return  # nothing to delete in an empty table
    TableUndo(store).commit_fence(base, operation_id="op", healer="7")

    with pytest.raises(CommitConflict):
        stager.commit_staged(staged, operation_id="3", writer_kind="Mutation")

    assert store.latest_version(base.address) == base.version + 1


@pytest.mark.parametrize("ids", [("a", "b"), ()], ids=["rows", "empty"])
def test_a_fence_changes_nothing_and_says_whose_it_is(
    store: TableStore, tmp_path: Path, ids: tuple[str, ...]
) -> None:
    base = made(store, tmp_path, *ids)

    TableUndo(store).commit_fence(base, operation_id="op", healer="7")

    fenced = store.open_head(base.address)
    assert store.scan(fenced).equals(store.scan(base))
    info = store.transaction_info(base.address, fenced.version)
    assert info.properties == {OPERATION_ID_PROPERTY: "op", FENCE_PROPERTY: "7"}


def test_of_two_fences_on_one_version_one_stands(store: TableStore, tmp_path: Path) -> None:
    base = made(store, tmp_path, "a")
    TableUndo(store).commit_fence(base, operation_id="op", healer="7")

    with pytest.raises(CommitConflict):
        TableUndo(store).commit_fence(base, operation_id="op", healer="8")


def test_an_index_build_fits_behind_a_fence(store: TableStore, tmp_path: Path) -> None:
    """Why layout commits of a writer that was taken for dead are published by the next one."""
    stager, base = TableStager(store), made(store, tmp_path, "a")
    staged, _ = stager.stage_create_indices(base, [IndexRequest("id", "btree")])
    assert staged is not None
    TableUndo(store).commit_fence(base, operation_id="op", healer="7")

    with pytest.raises(StaleCommit):
        stager.commit_staged(staged, operation_id="3", writer_kind="EnsureIndices")
