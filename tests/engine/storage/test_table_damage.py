"""Reads of a table whose files are gone or hollow name the file."""

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.table import TableStore
from tests.support.hollow import empty

DATASET = "nodes/1-2"
each_damage = pytest.mark.parametrize("damage", [Path.unlink, empty], ids=["removed", "emptied"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / DATASET
    for name in "abc":
        lance.write_dataset(pa.table({"id": [name]}), str(path), mode="append")
    return path


def test_a_hollow_version_is_named(table: Path) -> None:
    """One that is not there may have been cleaned up: that is for whoever asked for it to tell."""
    empty(table / version_file_name(3))

    with pytest.raises(GraphDamaged) as raised:
        TableStore().open_at(TableAddress(str(table)), 3)

    assert raised.value.file == f"{DATASET}/{version_file_name(3)}"
    assert raised.value.versions == (3,)


@each_damage
def test_a_damaged_data_file_is_named_by_whoever_reads_it(
    table: Path, damage: Callable[[Path], None]
) -> None:
    store = TableStore()
    handle = store.open_at(TableAddress(str(table)), 2)
    data = handle._dataset.get_fragments()[0].metadata.files[0].path
    damage(table / "data" / data)

    with pytest.raises(GraphDamaged) as raised:
        store.scan(handle)

    assert raised.value.file == f"{DATASET}/data/{data}"


def test_a_version_that_was_cleaned_up_is_not_damaged(table: Path) -> None:
    for version in (1, 2):
        (table / version_file_name(version)).unlink()

    with pytest.raises(StorageError) as raised:
        TableStore().open_at(TableAddress(str(table)), 2)

    assert raised.value.kind == "not_found"
    assert not isinstance(raised.value, GraphDamaged)
