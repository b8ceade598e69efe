"""One table at a pin: a small value that names one version for good, and one way to open it."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.errors import HistoricalVersionReclaimed, StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.fragments import FragmentWriter, TaskTable, delete_committed
from omnigraph.storage.tables.pinned import PinnedTable, pieces, read_pieces
from omnigraph.storage.tables.table import TableAddress, TableStore
from tests.support.tables import SCHEMA, Workbench, rows


def pinned(bench: Workbench, version: int) -> PinnedTable:
    return PinnedTable(bench.address, version, "node:Person")


def task_table(table: PinnedTable) -> TaskTable:
    schema = SCHEMA.serialize().to_pybytes()
    return TaskTable(table, str(Path(table.address.uri).parent), schema, "append", Durability.PROCESS)


def test_it_stays_at_its_version_and_can_be_sent(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(["a"]))
    table = pinned(bench, 2)
    bench.append(rows(["b"]))

    sent = pickle.loads(pickle.dumps(table))

    assert sent == table
    assert bench.ids(sent.open()) == bench.ids(table.open(bench.store)) == ["a"]
    assert table.open(bench.store) is bench.store.open_at(bench.address, 2)
    assert len(pickle.dumps(table)) < 400


def test_the_place_decides_and_not_the_name(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    table = pinned(bench, 1)

    assert table == replace(table, table_key="node:Human")
    assert len({table, replace(table, table_key="node:Human")}) == 1
    assert table != replace(table, version=2)
    assert table != replace(table, address=TableAddress(table.address.uri, "fork"))


def test_its_rows_are_read_in_pieces(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(["a", "b"]))
    bench.append(rows(["c"]))
    bench.delete(["c"])
    bench.append(rows(["d"]))
    handle = pinned(bench, 5).open(bench.store)

    found = pieces(handle)

    assert [piece.rows for piece in found] == [2, 1]
    batches = list(read_pieces(handle, [piece.number for piece in found], columns=["id"], with_rows=True))
    assert [name for batch in batches for name in batch["id"].to_pylist()] == ["a", "b", "d"]
    assert batches[0].schema.names == ["id", "_rowid", "_rowaddr"]


@pytest.mark.case("engine", 56)
def test_a_version_that_was_cleaned_up_is_told_wherever_it_is_opened(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(["a"]))
    bench.append(rows(["b"]))
    table = pinned(bench, 2)
    (Path(table.address.uri) / version_file_name(2)).unlink()
    openings = (
        table.open,
        lambda: table.open(TableStore()),
        lambda: FragmentWriter(task_table(table)),
        lambda: delete_committed(task_table(table), [0]),
    )

    for opening in openings:
        with pytest.raises(HistoricalVersionReclaimed) as reclaimed:
            opening()
        assert (reclaimed.value.table_key, reclaimed.value.version) == ("node:Person", 2)


def test_a_version_that_cannot_be_read_was_not_cleaned_up(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(["a"]))
    file = Path(bench.address.uri) / version_file_name(2)
    file.write_bytes(bytes(len(file.read_bytes())))

    with pytest.raises(StorageError) as told:
        pinned(bench, 2).open(TableStore())
    assert told.value.kind != "not_found"
