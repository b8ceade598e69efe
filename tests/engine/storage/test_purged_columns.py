"""A column that is dropped for good, in tables whose row ids are kept in files: copied with the rest."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables.column_work import ColumnSource
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.reshape import plan_reshape, rows_beside, stage_reshape, stage_reshape_fragments
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.table import TableAddress
from tests.support.tables import SCHEMA, Workbench, names, rows

MANY = 4_000
DROPPED = "rank"
KEPT = pa.schema([field for field in SCHEMA if field.name != DROPPED])
SOURCES = {name: ColumnSource(name) for name in KEPT.names}


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """Return a table with a file of row ids, and one where a compaction put them beside the rows."""
    bench = Workbench(tmp_path)
    bench.append(rows(names(MANY), 1))
    for seed in (1, 2):
        bench.upsert(rows(Random(seed).sample(names(MANY), 400), seed))
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=1_000)
    bench.upsert(rows(Random(3).sample(names(MANY), 400), 3))
    deletion = bench.stager.stage_delete(bench.head(), Random(4).sample(names(MANY), 300))
    assert deletion is not None
    bench.commit(deletion)
    return bench


def fields(handle: SnapshotHandle) -> list[list[list[int]]]:
    """Return the field ids of each file of each fragment."""
    parts = [part.metadata for part in handle._dataset.get_fragments()]
    return [[list(file.fields) for file in part.files] for part in parts]


def marks(bench: Workbench, handle: SnapshotHandle) -> dict[str, tuple[int, int]]:
    """Return the row id of each row, and the version that created it."""
    found = bench.store.scan(handle, columns=["id", "_rowid", "_row_created_at_version"])
    return {row["id"]: (row["_rowid"], row["_row_created_at_version"]) for row in found.to_pylist()}


@pytest.mark.case("engine", 746)
@pytest.mark.parametrize("on_fork", [False, True], ids=["main", "fork"])
def test_row_ids_in_files_are_copied_with_what_stays(bench: Workbench, on_fork: bool) -> None:
    address = bench.address
    if on_fork:
        bench.head()._dataset.create_branch("fork")
        address = TableAddress(bench.address.uri, "fork")
    handle = bench.store.open_head(address)
    before = marks(bench, handle)
    layouts = fields(handle)
    assert any(-3 in file and len(file) > 1 for part in layouts for file in part)
    assert any([-3] in part for part in layouts)

    assert rows_beside(handle, DROPPED) == handle.row_count
    planned = plan_reshape(handle, KEPT, SOURCES, purges=True)
    staged = stage_reshape(handle, planned)
    bench.commit(staged)

    after = bench.store.open_head(address)
    gone = handle._dataset.lance_schema.field(DROPPED)
    assert gone is not None
    assert all(gone.id() not in file for part in fields(after) for file in part)
    assert marks(bench, after) == before
    assert all(name.startswith(str(address.local_path)) for name in staged.files)
    assert (planned.rows, planned.size > 0) == (handle.row_count, True)
    assert after.row_count == handle.row_count


def test_fragments_of_others_must_all_be_there(bench: Workbench) -> None:
    handle = bench.head()
    planned = plan_reshape(handle, KEPT, SOURCES, purges=True)

    with pytest.raises(InvariantViolation, match="not every fragment was written"):
        stage_reshape_fragments(handle, planned, {}, ())
