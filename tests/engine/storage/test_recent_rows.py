"""Rows in memory stand for small fragments: the same answers, and nothing of their files is read."""

import base64
import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from omnigraph.core.errors import InvariantViolation
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.recent_rows import (
    BYTES_MAX,
    FEW_ROWS,
    FILES_MAX,
    ROWS_MAX,
    as_written,
    from_document,
    refreshed,
    to_document,
)
from omnigraph.storage.tables.rows import read_rows, row_addresses, take_rows
from omnigraph.storage.tables.table import TableStore

SMALL = 5  # fragments of one row each, behind one that is too large to be kept


def rows(*numbers: int, size: int = 1) -> pa.Table:
    """Return rows by number."""
    return pa.table({"id": [f"k{number}" for number in numbers], "text": ["x" * size for _ in numbers]})


def append(address: TableAddress, *numbers: int, size: int = 1) -> None:
    lance.write_dataset(rows(*numbers, size=size), address.uri, mode="append")


@pytest.fixture
def address(tmp_path: Path) -> TableAddress:
    path = str(tmp_path / "table")
    lance.write_dataset(rows(*range(1_000, 1_000 + ROWS_MAX + 1)), path, enable_stable_row_ids=True)
    for number in range(SMALL):
        append(TableAddress(path), number)
    return TableAddress(path)


def remembering(address: TableAddress) -> SnapshotHandle:
    """Return the newest version with what can be kept of it in memory."""
    store = TableStore()
    store.keep_recent(address, refreshed(lance.dataset(address.uri), {}))
    return store.open_head(address)


def without_files(handle: SnapshotHandle) -> None:
    """Remove the data files whose rows are in memory: whoever reads one fails."""
    for path in handle._recent_files:
        Path(handle.address.uri, "data", path).unlink()


def by_row_id(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by("_rowid").to_pylist()


@pytest.mark.case("engine", 445)
@pytest.mark.parametrize("fragments", [None, [0, 2, 3], [4], [0], []])
def test_scans_are_the_same_and_read_no_small_file(
    address: TableAddress, fragments: list[int] | None
) -> None:
    plain, handle = TableStore().open_head(address), remembering(address)
    expected = by_row_id(read_rows(plain, ["text", "id"], fragments=fragments))
    without_files(handle)

    assert len(handle.recent) == SMALL
    assert by_row_id(read_rows(handle, ["text", "id"], fragments=fragments)) == expected


@pytest.mark.case("engine", 445)
@pytest.mark.parametrize("ids", [["k1"], ["k1", "k1003", "k4", "nobody"], ["k1003"], ["nobody"]])
def test_lookups_are_the_same(address: TableAddress, ids: list[str]) -> None:
    store = TableStore()
    plain, handle = store.open_head(address), remembering(address)
    expected = store.rows_by_id(plain, ids, with_row_id=True, with_row_address=True)
    without_files(handle)

    found = store.rows_by_id(handle, ids, with_row_id=True, with_row_address=True)
    assert by_row_id(found) == by_row_id(expected)


@pytest.mark.case("engine", 445)
def test_rows_are_taken_in_the_order_asked_for(address: TableAddress) -> None:
    plain, handle = TableStore().open_head(address), remembering(address)
    ids = read_rows(plain, ["id"]).sort_by("_rowid")["_rowid"].to_numpy().astype(np.int64)
    mixed = ids[[2, -1, 0, -3, -1, 2]]
    expected = take_rows(plain, mixed, ["text", "id"])
    addresses = row_addresses(plain, mixed)
    without_files(handle)

    assert take_rows(handle, mixed, ["text", "id"]).to_pylist() == expected.to_pylist()
    assert take_rows(handle, ids[-2:], ["id"])["id"].to_pylist() == ["k3", "k4"]
    assert row_addresses(handle, mixed).tolist() == addresses.tolist()
    with pytest.raises(InvariantViolation, match="has 1 of 2 rows"):
        take_rows(handle, np.array([ids[-1], 9_999]), ["id"])


@pytest.mark.case("engine", 445)
def test_a_fragment_with_deletions_is_read(address: TableAddress) -> None:
    kept = refreshed(lance.dataset(address.uri), {})
    append(address, 10, 11)
    kept |= refreshed(lance.dataset(address.uri), kept)
    lance.dataset(address.uri).delete("id = 'k10'")
    store = TableStore()
    store.keep_recent(address, kept)
    handle = store.open_head(address)

    assert len(handle.recent) == SMALL
    assert store.existing_ids(handle, ["k10", "k11", "k3"]) == {"k11", "k3"}


@pytest.fixture
def thinned(address: TableAddress) -> TableAddress:
    """The same table, with a fragment of which two rows are deleted, the latter between two commits."""
    append(address, 10, 11, 12, 13)
    lance.dataset(address.uri).delete("id = 'k10'")
    append(address, 20)
    lance.dataset(address.uri).delete("id = 'k12'")
    return address


def remove_all_but_the_large_one(address: TableAddress, handle: SnapshotHandle) -> None:
    for path in handle._recent_files:
        Path(address.uri, "data", path.partition("@")[0]).unlink()
    for file in Path(address.uri, "_deletions").iterdir():
        file.unlink()


@pytest.mark.case("engine", 855)
def test_what_is_left_of_a_fragment_with_deletions_is_in_memory(thinned: TableAddress) -> None:
    plain, store = TableStore().open_head(thinned), TableStore()
    document = json.loads(json.dumps(to_document(refreshed(lance.dataset(thinned.uri), {}))))
    store.keep_recent(thinned, from_document(document))
    handle = store.open_head(thinned)
    expected = by_row_id(read_rows(plain, ["text", "id"]))
    wanted = plain._dataset.to_table(columns=["id"], with_row_id=True, filter="id IN ('k11', 'k20', 'k3')")
    ids = wanted["_rowid"].to_numpy().astype(np.int64)
    addresses = row_addresses(plain, ids).tolist()
    remove_all_but_the_large_one(thinned, handle)

    assert len(handle.recent) == SMALL + 2
    assert by_row_id(read_rows(handle, ["text", "id"])) == expected
    assert set(take_rows(handle, ids, ["id"])["id"].to_pylist()) == {"k11", "k20", "k3"}
    assert row_addresses(handle, ids).tolist() == addresses
    assert store.existing_ids(handle, ["k10", "k11", "k12", "k13", "k20"]) == {"k11", "k13", "k20"}


@pytest.mark.case("engine", 858)
@pytest.mark.parametrize(
    "column",
    [pa.array([None], pa.uint32()), pa.array(["0"]), pa.array([-1]), pa.array([0.5]), pa.array([[0]])],
    ids=["none", "a text", "signed", "a fraction", "a list"],
)
def test_places_of_another_kind_are_no_rows(column: "pa.Array[Any]") -> None:
    document = to_document({"a@1-1": rows(1).append_column("@offset", pa.array([0], pa.uint32()))})
    assert from_document(document)

    document = written(rows(1).append_column("@offset", column))

    with pytest.raises(ValueError, match="places of rows"):
        from_document(document)


@pytest.mark.case("engine", 858)
def test_a_column_that_is_there_twice_is_no_row() -> None:
    with pytest.raises(ValueError, match="twice"):
        from_document(written(rows(1).append_column("id", pa.array(["k2"]))))


def written(table: pa.Table) -> dict[str, object]:
    """Return rows of one file as somebody else may have written them."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content = base64.b64encode(sink.getvalue().to_pybytes()).decode()
    return {"files": [["a@1-1", table.num_rows]], "rows": content}


@pytest.mark.case("engine", 855)
def test_a_fragment_that_loses_rows_is_read_once_more(
    address: TableAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(address, 10, 11)
    append(address, 20)  # newer, and known as well
    kept = refreshed(lance.dataset(address.uri), {})
    lance.dataset(address.uri).delete("id = 'k10'")

    kept = refreshed(lance.dataset(address.uri), kept)

    store = TableStore()
    store.keep_recent(address, kept)
    assert len(store.open_head(address).recent) == SMALL + 2
    monkeypatch.setattr(lance.LanceDataset, "scanner", None)  # nothing is read again
    assert refreshed(lance.dataset(address.uri), kept).keys() == kept.keys()


@pytest.mark.case("engine", 855)
@pytest.mark.parametrize("places", [[1, 9], [3, 1], [1, 1]])
def test_places_that_a_file_has_not_are_not_used(thinned: TableAddress, places: list[int]) -> None:
    kept = refreshed(lance.dataset(thinned.uri), {})
    path = next(path for path in kept if "@" in path)
    column = kept[path].column_names.index("@offset")
    kept[path] = kept[path].set_column(column, "@offset", pa.array(places, pa.uint32()))
    store = TableStore()
    store.keep_recent(thinned, kept)
    handle = store.open_head(thinned)

    assert len(handle.recent) == SMALL + 1
    assert store.existing_ids(handle, ["k10", "k11", "k12", "k13"]) == {"k11", "k13"}


@pytest.mark.case("engine", 855)
def test_hundreds_of_rows_are_kept_if_their_file_is_small(tmp_path: Path) -> None:
    address = TableAddress(str(tmp_path / "table"))
    lance.write_dataset(rows(0), address.uri, enable_stable_row_ids=True)
    append(address, *range(1, FEW_ROWS + 2))
    noise = [base64.b64encode(np.random.default_rng(n).bytes(600)).decode() for n in range(FEW_ROWS + 1)]
    ids = [f"n{n}" for n in range(FEW_ROWS + 1)]
    lance.write_dataset(pa.table({"id": ids, "text": noise}), address.uri, mode="append")

    sizes = [item.num_rows for item in refreshed(lance.dataset(address.uri), {}).values()]

    assert sizes == [1, FEW_ROWS + 1]


@pytest.mark.case("engine", 445)
def test_columns_that_are_not_kept_are_read(address: TableAddress) -> None:
    plain, handle = TableStore().open_head(address), remembering(address)
    columns = ["id", "_row_created_at_version"]

    assert by_row_id(read_rows(handle, columns)) == by_row_id(read_rows(plain, columns))


def test_only_what_is_newer_is_read_again(address: TableAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = refreshed(lance.dataset(address.uri), {})
    first = next(iter(kept))
    del kept[first]  # had no room
    append(address, 10)
    dataset = lance.dataset(address.uri)
    asked: list[int] = []
    scanner = lance.LanceDataset.scanner

    def counted(dataset: lance.LanceDataset, **options: object) -> object:
        asked.append(len(options["fragments"]))  # type: ignore[arg-type]
        return scanner(dataset, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(lance.LanceDataset, "scanner", counted)
    again = refreshed(dataset, kept)

    assert asked == [1]
    assert first not in again
    assert len(again) == SMALL


@pytest.mark.case("engine", 857)
def test_rows_of_a_column_that_was_made_again_are_those_of_the_new_one(address: TableAddress) -> None:
    kept = refreshed(lance.dataset(address.uri), {})
    lance.dataset(address.uri).drop_columns(["text"])
    lance.dataset(address.uri).add_columns(pa.field("text", pa.string()))
    dataset = lance.dataset(address.uri)
    assert dataset.schema == next(iter(kept.values())).schema  # by names and types nothing has changed
    store = TableStore()

    store.keep_recent(address, kept)
    found = read_rows(store.open_head(address), ["id", "text"])

    assert found["text"].null_count == found.num_rows
    assert store.open_head(address).recent == {}
    assert {table["text"].null_count for table in refreshed(dataset, kept).values()} <= {1}


def append_ours(store: TableStore, address: TableAddress, *numbers: int, size: int = 1) -> None:
    """Append rows as a stager does that writes to a store."""
    written = lance.fragment.write_fragments(rows(*numbers, size=size), address.uri)
    store.keep_written(address, as_written(lance.dataset(address.uri), written, rows(*numbers, size=size)))
    version = lance.dataset(address.uri).version
    lance.LanceDataset.commit(address.uri, lance.LanceOperation.Append(written), read_version=version)


@pytest.mark.case("engine", 449)
def test_what_was_just_written_is_not_read(address: TableAddress) -> None:
    store = TableStore()
    append_ours(store, address, 10)
    append_ours(store, address, *range(2_000, 2_000 + ROWS_MAX + 1))
    handle = store.open_head(address)
    expected = by_row_id(read_rows(TableStore().open_head(address), ["text", "id"]))
    without_files(handle)

    assert [table["id"].to_pylist() for table in handle.recent.values()] == [["k10"]]
    assert by_row_id(read_rows(handle, ["text", "id"])) == expected


@pytest.mark.case("engine", 449)
def test_what_others_wrote_between_own_writes_is_kept_as_well(address: TableAddress) -> None:
    store = TableStore()
    store.recent_files(address, store.open_head(address).version)
    append(address, 10)
    append_ours(store, address, 11)
    without_files(store.open_head(address))  # that of the other is not among them

    kept = store.recent_files(address, store.open_head(address).version)

    assert [table["id"].to_pylist() for table in kept.values()][-2:] == [["k10"], ["k11"]]
    assert len(kept) == SMALL + 2


def test_what_was_just_written_is_bounded_and_the_newest(address: TableAddress) -> None:
    store = TableStore()
    for number in range(10, 14):
        append_ours(store, address, number, size=BYTES_MAX // 3)
    assert [table["id"].to_pylist() for table in store.open_head(address).recent.values()] == [
        ["k12"],
        ["k13"],
    ]

    for number in range(20, 20 + FILES_MAX + 3):
        append_ours(store, address, number)
    assert len(store.open_head(address).recent) == FILES_MAX


def test_a_few_rows_of_many_hold_no_memory_of_the_others(address: TableAddress) -> None:
    many = rows(*range(ROWS_MAX), size=10_000)
    written = lance.fragment.write_fragments(many.slice(3, 2), address.uri)

    (kept,) = as_written(lance.dataset(address.uri), written, many.slice(3, 2)).values()

    assert kept["id"].to_pylist() == ["k3", "k4"]
    assert kept.get_total_buffer_size() < 50_000


def test_what_is_kept_is_bounded_and_the_newest(address: TableAddress) -> None:
    for number in range(10, 14):
        append(address, number, size=BYTES_MAX // 3)
    kept = refreshed(lance.dataset(address.uri), {})

    assert [table["id"].to_pylist() for table in kept.values()] == [["k12"], ["k13"]]


def test_of_very_many_fragments_the_newest_are_read(tmp_path: Path) -> None:
    address = TableAddress(str(tmp_path / "table"))
    for number in range(FILES_MAX + 3):
        lance.write_dataset(
            rows(number), address.uri, mode="append" if number else "create", enable_stable_row_ids=True
        )

    assert len(refreshed(lance.dataset(address.uri), {})) == FILES_MAX


def test_a_document_keeps_rows_and_files(address: TableAddress) -> None:
    kept = refreshed(lance.dataset(address.uri), {})

    document = json.loads(json.dumps(to_document(kept)))

    assert from_document(document) == kept
    with pytest.raises(ValueError, match="do not go together"):
        from_document(document | {"files": document["files"][1:]})
    with pytest.raises(ValueError, match="are damaged"):
        from_document(document | {"rows": document["rows"][:-40]})


def test_rows_of_another_schema_are_not_used(address: TableAddress) -> None:
    path = next(iter(refreshed(lance.dataset(address.uri), {})))
    store = TableStore()
    store.keep_recent(address, {path: pa.table({"id": ["forged"], "text": [7]})})

    assert store.open_head(address).recent == {}


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_packed_rows_are_refused(compression: str) -> None:
    table, sink = rows(1, size=1_000_000), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)  # type: ignore[arg-type]
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    packed = base64.b64encode(sink.getvalue()).decode()

    with pytest.raises(ValueError, match="packed"):
        from_document({"files": [["a.lance", 1]], "rows": packed})


@pytest.mark.parametrize("counts", [[-1, 2], [True, 0], [1.0, 0], [2**70, 1 - 2**70]])
def test_a_document_with_other_counts_is_refused(counts: list[object]) -> None:
    document = to_document({"a.lance": rows(1)})

    with pytest.raises(ValueError, match="another number of rows"):
        from_document(document | {"files": [["a.lance", counts[0]], ["b.lance", counts[1]]]})
