"""Reading tables."""

import shutil
import threading
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset

from omnigraph.core.errors import CommitConflict, StorageError
from omnigraph.storage.files.dataset_file import remove_transactions
from omnigraph.storage.files.transactions import UNREADABLE
from omnigraph.storage.files.version_file import (
    FOOTER,
    LENGTH,
    encode,
    fields,
    manifest_message,
    version_file_name,
)
from omnigraph.storage.tables import rows as lookup
from omnigraph.storage.tables.filter import Compare, FilterValue
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.stage import IndexRequest
from omnigraph.storage.tables.table import HANDLES_MAX, IoStats, TableAddress, TableStore
from omnigraph.storage.tables.undo import TableUndo
from tests.support.seam import patched
from tests.support.tables import Workbench, names, rows, table_schema


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def test_an_address_knows_where_its_ref_lies() -> None:
    assert TableAddress("/graph/nodes/t").open_uri == "/graph/nodes/t"
    assert TableAddress("/graph/nodes/t", "fork").open_uri == "/graph/nodes/t/tree/fork"
    assert TableAddress("/graph/nodes/t", "fork").local_path == Path("/graph/nodes/t/tree/fork")
    assert TableAddress("file:///graph/my%20t").local_path == Path("/graph/my t")
    assert TableAddress("s3://bucket/t").local_path is None


def test_a_version_stays_what_it_was(bench: Workbench) -> None:
    bench.append(rows(["a", "b"]))
    pinned = bench.head()

    bench.append(rows(["c"]))

    assert (pinned.version, pinned.row_count, pinned.fragment_count) == (2, 2, 1)
    assert bench.ids(pinned) == ["a", "b"]
    assert bench.store.open_at(bench.address, 2) is pinned
    assert bench.store.latest_version(bench.address) == 3


def test_the_newest_version_is_looked_up_each_time(bench: Workbench, tmp_path: Path) -> None:
    other = Workbench(tmp_path)
    assert bench.store.latest_version(bench.address) == 1

    other.append(rows(["a"]))

    assert bench.store.latest_version(bench.address) == 2
    assert bench.head().version == 2


def test_what_does_not_exist_is_not_found(bench: Workbench, tmp_path: Path) -> None:
    absent = TableAddress(str(tmp_path / "absent"))

    with pytest.raises(StorageError) as no_table:
        bench.store.open_head(absent)
    with pytest.raises(StorageError) as no_version:
        bench.store.open_at(bench.address, 9)

    assert (no_table.value.kind, no_version.value.kind) == ("not_found", "not_found")
    assert bench.store.exists(bench.address)
    assert not bench.store.exists(absent)


def test_a_hollow_version_is_refused(bench: Workbench) -> None:
    bench.append(rows(["a"]))
    newest = Path(bench.address.uri) / "_versions" / f"{2**64 - 3:020d}.manifest"
    newest.write_bytes(bytes(newest.stat().st_size))

    with pytest.raises(StorageError, match="hollow") as refused:
        TableStore().open_head(bench.address)

    assert refused.value.kind == "permanent"


def test_a_scan_takes_columns_filter_and_limit(bench: Workbench) -> None:
    bench.append(rows(["a", "b"], 1))
    bench.append(rows(["c", "d"], 2))
    head = bench.head()

    found = bench.store.scan(head, columns=["id"], filter=Compare("rank", "ge", 2), with_row_id=True)
    batches = list(bench.store.scan_batches(head, columns=["id"], with_row_address=True))

    assert found.column_names == ["id", "_rowid"]
    assert found["id"].to_pylist() == ["c", "d"]
    assert bench.store.scan(head, limit=3).num_rows == 3
    assert sum(batch.num_rows for batch in batches) == 4
    assert batches[0].schema.names == ["id", "_rowaddr"]
    assert bench.store.count_rows(head) == 4
    assert bench.store.count_rows(head, Compare("rank", "lt", 2)) == 2


def test_guard_a_scan_that_reads_little_ahead_gives_every_row_in_small_batches(tmp_path: Path) -> None:
    count = 3_000
    wide = pa.table(
        {
            "id": [f"{number:05d}" for number in range(count)],
            "text": [None if number % 7 == 0 else "x" * (number % 900) for number in range(count)],
            "list": [None if number % 5 == 0 else list(range(number % 40)) for number in range(count)],
            "vector": pa.array([[float(number)] * 64 for number in range(count)], pa.list_(pa.float32(), 64)),
        }
    )
    dataset = lance.write_dataset(wide, tmp_path / "t", max_rows_per_file=1_000)
    dataset.delete("id LIKE '%3'")
    store = TableStore()
    head = store.open_head(TableAddress(str(tmp_path / "t")))

    batches = list(store.scan_batches(head, ahead_bytes=400_000))

    assert pa.Table.from_batches(batches) == store.scan(head)
    assert len(batches) > 20
    assert max(batch.nbytes for batch in batches) <= 200_000


def test_an_error_of_a_scan_is_ours(bench: Workbench) -> None:
    bench.append(rows(["a"]))
    for data in Path(bench.address.uri).glob("data/*.lance"):
        data.unlink()

    with pytest.raises(StorageError) as missing:
        bench.store.scan(TableStore().open_head(bench.address))
    with pytest.raises(StorageError):
        list(bench.store.scan_batches(TableStore().open_head(bench.address)))

    assert missing.value.kind == "permanent"


@pytest.mark.parametrize("few_values", [lookup.FEW_VALUES, 0], ids=["by list", "by pass"])
@pytest.mark.parametrize("indexed", [False, True])
def test_rows_are_found_by_id(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, few_values: int, indexed: bool
) -> None:
    bench.append(rows(names(50), 1))
    if indexed:
        bench.index(IndexRequest("id", "btree"))
    bench.upsert(rows(["n000007", "new"], 2))
    patched(monkeypatch, "omnigraph.storage.tables.rows.FEW_VALUES", few_values)
    head = bench.head()
    wanted = ["n000003", "n000007", "absent", "new", "n000003", "it's"]

    found = bench.store.rows_by_id(head, wanted, with_row_id=True, with_row_address=True)

    assert found.column_names == ["id", "rank", "_rowid", "_rowaddr"]
    by_id = {row["id"]: (row["rank"], row["_rowid"]) for row in found.to_pylist()}
    assert by_id == {"n000003": (1, 3), "n000007": (2, 7), "new": (2, 50)}
    assert bench.store.existing_ids(head, wanted) == {"n000003", "n000007", "new"}
    assert bench.store.existing_ids(head, []) == set()
    assert bench.store.rows_by_id(head, wanted, ["rank"]).column_names == ["rank"]


PAIRS = table_schema(
    pa.field("day", pa.date32()),
    pa.field("weight", pa.float32()),
)


@pytest.mark.parametrize("few_values", [lookup.FEW_VALUES, 0], ids=["by list", "by pass"])
def test_tuples_are_found_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_values: int
) -> None:
    bench = Workbench(tmp_path, PAIRS)
    columns: dict[str, list[object]] = {
        "id": list("abcdef"),
        "day": [1, 1, 2, 2, None, 1],
        "weight": [0.1, 0.5, 0.1, 0.5, 0.1, None],
    }
    bench.append(pa.table(columns, schema=PAIRS))
    patched(monkeypatch, "omnigraph.storage.tables.rows.FEW_VALUES", few_values)
    values: list[tuple[FilterValue, ...]] = [(1, 0.1), (2, 0.5), (None, 0.1), (1, None), (7, 0.1)]

    found = bench.store.values_in(bench.head(), ("day", "weight"), values, ["id"])
    single = bench.store.values_in(bench.head(), "day", [2, None, 2.5], ["id"])

    assert sorted(map(str, found["id"].to_pylist())) == ["a", "d"]
    assert sorted(map(str, single["id"].to_pylist())) == ["c", "d"]


def test_long_lists_are_cut(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.append(rows(names(20)))
    patched(monkeypatch, "omnigraph.storage.tables.rows.LIST_VALUES_MAX", 3)

    assert bench.store.existing_ids(bench.head(), names(25)) == set(names(20))


def test_a_transaction_is_known_by_uuid_operation_and_properties(bench: Workbench) -> None:
    committed = bench.append(rows(["a"]))
    bench.append(rows(["b"]))

    created = bench.store.transaction_info(bench.address, 1)
    merged = bench.store.transaction_info(bench.address, 2)
    updated = bench.store.transaction_info(bench.address, 3)

    assert (created.operation, created.read_version) == ("overwrite", 0)
    assert (merged.operation, merged.uuid) == ("merge", committed.transaction_uuid)
    assert (updated.operation, updated.read_version) == ("update", 2)
    assert updated.properties == {
        "omnigraph.operation_id": "OPERATION",
        "omnigraph.writer_kind": "mutation",
    }
    assert bench.head().transaction_uuid == updated.uuid
    with pytest.raises(StorageError) as missing:
        bench.store.transaction_info(bench.address, 4)
    assert missing.value.kind == "not_found"


def compacted(bench: Workbench) -> int:
    """Leave a reserve and a rewrite that remapped an index; return the version of the latter."""
    for key in ["a", "b", "c"]:
        bench.append(rows([key]))
    bench.index(IndexRequest("id", "btree"))
    return InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=100).version


@pytest.mark.case("engine", 78)
def test_what_the_library_cannot_show_is_read_from_the_version_file(bench: Workbench) -> None:
    version = compacted(bench)
    shutil.rmtree(Path(bench.address.uri) / "_transactions")

    reserve = bench.store.transaction_info(bench.address, version - 1)
    rewrite = bench.store.transaction_info(bench.address, version)

    assert (reserve.operation, reserve.read_version) == ("reserve", version - 2)
    assert (rewrite.operation, rewrite.properties) == ("rewrite", {})
    assert rewrite.uuid is not None


def without_transaction(path: Path) -> None:
    """Make a version file of the form that earlier builds of the library wrote."""
    data = memoryview(path.read_bytes())
    position, *rest = FOOTER.unpack(data[len(data) - FOOTER.size :])
    message = encode([(number, value) for number, value in fields(manifest_message(data)) if number != 23])
    head = bytes(data[:position]) + LENGTH.pack(len(message)) + message
    path.write_bytes(head + FOOTER.pack(position, *rest))


def test_a_transaction_that_is_only_beside_the_version_is_read_there(bench: Workbench) -> None:
    version = compacted(bench)
    known = bench.store.transaction_info(bench.address, version)
    without_transaction(Path(bench.address.uri) / version_file_name(version))

    assert TableStore().transaction_info(bench.address, version) == known


@pytest.mark.parametrize("damage", ["cut", "emptied", "garbled"])
def test_a_transaction_that_nobody_can_read_is_unreadable(bench: Workbench, damage: str) -> None:
    version = compacted(bench)
    known = bench.store.transaction_info(bench.address, version)
    without_transaction(Path(bench.address.uri) / version_file_name(version))
    path = Path(bench.address.uri) / "_transactions" / f"{known.read_version}-{known.uuid}.txn"
    match damage:
        case "cut":
            path.write_bytes(path.read_bytes()[:30])
        case "emptied":
            path.write_bytes(b"")
        case _:
            path.write_bytes(bytes([0xFF]) * 64)

    found = TableStore().transaction_info(bench.address, version)

    assert (found.operation, found.uuid) == (UNREADABLE, None)


@pytest.mark.case("engine", 455)
def test_a_table_works_without_the_copies_of_its_transactions(bench: Workbench) -> None:
    """Commits, collisions, changes, folds, indexes and forks read the transactions of version files."""
    bench.append(rows(names(20)))
    stale = bench.stager.stage_upsert(bench.head(), rows(["n000001"], 1))
    bench.upsert(rows(["n000002"], 2))
    bench.index(IndexRequest("id", "btree"))
    before = bench.head()
    operations = [bench.store.transaction_info(bench.address, number).operation for number in (2, 3, 4)]
    shutil.rmtree(Path(bench.address.uri) / "_transactions")

    with pytest.raises(CommitConflict):
        bench.commit(stale)
    bench.delete(["n000003"])
    fresh = TableStore()
    assert [fresh.transaction_info(bench.address, number).operation for number in (2, 3, 4)] == operations
    delta = bench.head()._dataset.delta(compared_against=before.version)
    assert delta.get_deleted_row_ids().read_all()["_rowid"].to_pylist() == [3]
    InlineCommitResidual(bench.store).compact_files(bench.address, target_rows=100)
    InlineCommitResidual(bench.store).optimize_indices(bench.address)
    fork = bench.head()._dataset.create_branch("fork")
    assert fork.count_rows() == bench.head().row_count == 19
    undo, _ = TableUndo(bench.store).stage_rollback(bench.head(), before)
    bench.commit(undo)
    assert sorted(bench.ids()) == names(20)


@pytest.mark.case("engine", 455)
def test_only_old_copies_of_transactions_are_removed(bench: Workbench) -> None:
    for key in ["a", "b", "c"]:
        bench.append(rows([key]))
    folder = Path(bench.address.uri) / "_transactions"
    (folder / "not-one-of-them.txn").touch()

    remove_transactions(bench.head(), below=2)

    left = sorted(path.name.partition("-")[0] for path in folder.iterdir())
    assert left == ["2", "3", "not"]


def test_coverage_tells_full_partial_and_no_index(bench: Workbench) -> None:
    bench.append(rows(["a", "b"]))
    assert bench.store.index_coverage(bench.head()) == {}
    bench.index(IndexRequest("id", "btree"))
    full = bench.store.index_coverage(bench.head())
    bench.append(rows(["c"]))
    partial = bench.store.index_coverage(bench.head())
    bench.delete(["a", "b"])

    none = bench.store.index_coverage(bench.head())

    assert (full, partial) == ({"id__btree": "indexed"}, {"id__btree": "degraded"})
    assert none == {"id__btree": "degraded"}  # it is there, and covers none of the rows


def test_refs_are_listed_with_where_they_start(bench: Workbench) -> None:
    bench.append(rows(["a"]))
    bench.head()._dataset.create_branch("second")
    bench.head()._dataset.create_branch("first", 1)

    refs = bench.store.list_refs(bench.address)

    assert [(ref.name, ref.parent, ref.parent_version) for ref in refs] == [
        ("first", None, 1),
        ("second", None, 2),
    ]
    assert len({ref.identifier for ref in refs}) == 2
    fork = TableAddress(bench.address.uri, "second")
    assert bench.ids(bench.store.open_head(fork)) == ["a"]
    assert bench.store.list_refs(fork) == refs


def test_requests_are_counted_also_of_closed_handles(bench: Workbench) -> None:
    bench.append(rows(["a"]))
    before = bench.store.io_stats()

    bench.store.scan(bench.head())
    bench.store._handles.clear()
    bench.store._probes.clear()

    after = bench.store.io_stats()
    assert after.reads > before.reads > 0
    assert after.read_bytes > before.read_bytes
    assert (before.writes, before.written_bytes) == (after.writes, after.written_bytes)
    assert IoStats(1, 2, 3, 4) + IoStats(1, 1, 1, 1) == IoStats(2, 3, 4, 5)


def test_the_store_keeps_a_bounded_number_of_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.storage.tables.table.HANDLES_MAX", 2)
    bench = Workbench(tmp_path)
    for key in ["a", "b", "c"]:
        bench.append(rows([key]))

    assert len(bench.store._handles) == 2
    assert bench.ids(bench.store.open_at(bench.address, 2)) == ["a"]
    assert HANDLES_MAX > 2


def test_threads_share_a_store(bench: Workbench) -> None:
    bench.append(rows(names(200)))
    bench.index(IndexRequest("id", "btree"))
    found: list[set[str]] = []

    def read(start: int) -> None:
        for number in range(start, start + 5):
            handle = bench.store.open_at(bench.address, 2 + number % 2)
            found.append(bench.store.existing_ids(handle, [f"n{number:06d}"]))

    threads = [threading.Thread(target=read, args=(10 * worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(sorted, found)) == sorted(
        [f"n{10 * worker + step:06d}"] for worker in range(8) for step in range(5)
    )


@pytest.mark.case("engine", 77)
def test_handles_show_no_dataset_and_no_transaction(bench: Workbench) -> None:
    bench.append(rows(["a"]))
    head = bench.head()
    staged = bench.stager.stage_append(head, rows(["b"]))
    manifest = manifest_handle(bench)

    for opaque in (head, staged, bench.commit(staged), manifest):
        shown = {name: getattr(opaque, name) for name in dir(opaque) if not name.startswith("_")}
        assert shown
        owners = {type(value).__module__.partition(".")[0] for value in shown.values()}
        assert "lance" not in owners
        assert "LanceDataset" not in repr(opaque)
        assert not any(isinstance(value, LanceDataset) for value in shown.values())


def manifest_handle(bench: Workbench) -> object:
    from omnigraph.storage.tables.manifest_table import ManifestTable

    return ManifestTable(bench.store).open_fresh(bench.address)
