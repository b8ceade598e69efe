"""One value of a table, by the id of its row: parts of it, and files that are not what they were."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.catalog.arrow_schema import PRIMARY_KEY_METADATA, UNCOMPRESSED
from omnigraph.core.errors import InvariantViolation, OmnigraphError
from omnigraph.storage.tables.cell import find_cell
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.table import TableStore
from tests.support.seam import patched

VALUE = bytes(range(256)) * 2_000


@pytest.fixture
def handle(tmp_path: Path) -> SnapshotHandle:
    fields: list[pa.Field[Any]] = [
        pa.field("id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY_METADATA),
        pa.field("data", pa.large_binary(), metadata=UNCOMPRESSED),
    ]
    columns: list[pa.Array[Any]] = [pa.array(["a", "b"]), pa.array([VALUE, None], pa.large_binary())]
    uri = str(tmp_path / "table.lance")
    lance.write_dataset(pa.table(columns, schema=pa.schema(fields)), uri, enable_stable_row_ids=True)
    return TableStore().open_head(TableAddress(uri))


def test_a_value_is_found_by_the_id_of_its_row(handle: SnapshotHandle) -> None:
    found, null = find_cell(handle, "a", "data"), find_cell(handle, "b", "data")

    assert found is not None
    assert null is not None
    assert find_cell(handle, "c", "data") is None
    assert null.cell is None
    assert found.cell is not None
    assert (found.cell.length, found.cell.read(250, 260)) == (len(VALUE), VALUE[250:260])
    assert found.cell.read(7, 7) == b""


def test_a_file_that_ends_early_gives_no_part_of_a_value(handle: SnapshotHandle, tmp_path: Path) -> None:
    found = find_cell(handle, "a", "data")
    assert found is not None
    assert found.cell is not None
    (file,) = (tmp_path / "table.lance" / "data").iterdir()
    os.truncate(file, 100_000)

    assert found.cell.read(0, 10) == VALUE[:10]
    with pytest.raises(OmnigraphError):
        found.cell.read(99_000, 200_000)


def test_a_name_that_leads_out_of_the_table_is_refused(
    handle: SnapshotHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    patched(monkeypatch, "omnigraph.storage.tables.cell.data_file_name", lambda _file: "../../secret")

    with pytest.raises(InvariantViolation, match="not a path inside the graph"):
        find_cell(replace(handle), "a", "data")
