"""The audit dataset: created with its first rows, appended to ever after."""

import resource
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.errors import StorageError
from omnigraph.storage.tables.audit_table import AuditTable
from omnigraph.storage.tables.table import TableAddress, TableStore
from tests.support.seam import patched

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("operation_id", pa.utf8()),
    pa.field("created_at", pa.timestamp("us")),
]
SCHEMA = pa.schema(FIELDS)


def row(operation_id: str) -> pa.Table:
    return pa.table({"operation_id": [operation_id], "created_at": [1_700_000_000_000_000]}, schema=SCHEMA)


@pytest.fixture
def address(tmp_path: Path) -> TableAddress:
    return TableAddress(str(tmp_path / "_graph_commit_recoveries.lance"))


def operations(address: TableAddress) -> list[str]:
    found = AuditTable(TableStore()).scan(address)
    return [] if found is None else sorted(map(str, found["operation_id"].to_pylist()))


def test_nothing_was_audited_before_the_first_row(address: TableAddress) -> None:
    audit = AuditTable(TableStore())
    assert audit.scan(address) is None

    audit.append(address, row("first"))
    audit.append(address, row("second"))

    assert operations(address) == ["first", "second"]
    dataset = TableStore().open_head(address)._dataset
    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"


def test_creators_that_race_all_leave_their_row(address: TableAddress) -> None:
    barrier = threading.Barrier(4)

    def append(number: int) -> None:
        audit = AuditTable(TableStore())
        barrier.wait()
        audit.append(address, row(f"writer-{number}"))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert operations(address) == [f"writer-{number}" for number in range(4)]


def test_a_creator_that_comes_second_appends(address: TableAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    late = AuditTable(TableStore())
    AuditTable(TableStore()).append(address, row("first"))
    patched(
        monkeypatch, "omnigraph.storage.tables.table.TableStore.exists", lambda self, address: False
    )  # it looked before the other wrote

    late.append(address, row("second"))

    monkeypatch.undo()
    assert operations(address) == ["first", "second"]


def test_an_unreadable_audit_is_an_error_and_not_an_empty_one(address: TableAddress) -> None:
    AuditTable(TableStore()).append(address, row("first"))
    for path in Path(address.uri).glob("data/*.lance"):
        path.unlink()

    with pytest.raises(StorageError):
        operations(address)


@pytest.mark.case("engine", 650)
def test_a_row_whose_file_is_cut_off_is_not_added(address: TableAddress) -> None:
    audit = AuditTable(TableStore())
    audit.append(address, row("first"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        with pytest.raises(StorageError, match="has 200 of"):
            audit.append(address, row("second"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert operations(address) == ["first"]
    audit.append(address, row("third"))
    assert operations(address) == ["first", "third"]
