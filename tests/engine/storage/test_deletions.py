"""Deletion files are read as the library reads them, in both of their forms and on a fork."""

import random
from pathlib import Path

import numpy as np
import pytest

from omnigraph.core.errors import StorageError
from omnigraph.storage.files.deletions import deleted_places
from omnigraph.storage.files.roaring import bitmap_values
from omnigraph.storage.files.version_file import HollowContent, NamedFile, check_file
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.row_set import serialized
from omnigraph.storage.tables.table import TableStore
from tests.support.tables import Workbench, names, rows


def shown(handle: SnapshotHandle) -> list[int]:
    """Return the places that the library shows."""
    scanned = handle._dataset.scanner(columns=[], with_row_address=True).to_table()
    return sorted(scanned["_rowaddr"].to_numpy().tolist())


@pytest.mark.parametrize(("count", "deleted"), [(50, 1), (5_000, 4_999), (140_000, 70_001)])
def test_places_are_those_that_the_library_does_not_show(tmp_path: Path, count: int, deleted: int) -> None:
    bench = Workbench(tmp_path)
    ids = names(count)
    bench.append(rows(ids))
    bench.delete(random.Random(1).sample(ids, deleted))
    handle = bench.head()

    places = [
        (part.fragment_id << 32) + place
        for part in handle._dataset.get_fragments()
        for place in deleted_places(handle, part.metadata).tolist()
    ]

    whole = [
        (part.fragment_id << 32) + place
        for part in handle._dataset.get_fragments()
        for place in range(part.metadata.physical_rows)
    ]
    assert sorted({*whole} - {*places}) == shown(handle)
    assert len(places) == len(set(places))


def test_a_fork_reads_the_deletions_of_its_parent_where_they_lie(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(20)))
    bench.delete(names(3))
    fork = RefStore(bench.store).create(bench.address, bench.head().version, "fork")

    handle = TableStore().open_head(fork)
    (fragment,) = handle._dataset.get_fragments()

    assert fragment.metadata.deletion_file is not None
    assert fragment.metadata.deletion_file.base_id is not None
    assert deleted_places(handle, fragment.metadata).tolist() == [0, 1, 2]


def test_a_fragment_without_deletions_has_none(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(3)))
    handle = bench.head()

    assert deleted_places(handle, handle._dataset.get_fragments()[0].metadata).tolist() == []


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_a_damaged_deletion_file_is_loud(tmp_path: Path, damage: str) -> None:
    bench = Workbench(tmp_path)
    bench.append(rows(names(20)))
    bench.delete(names(3))
    handle = bench.head()
    (file,) = (tmp_path / "table" / "_deletions").iterdir()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:40] if damage == "cut" else b"x" * 400)

    with pytest.raises(StorageError, match="is missing" if damage == "missing" else "does not decode"):
        deleted_places(handle, handle._dataset.get_fragments()[0].metadata)


@pytest.mark.parametrize("count", [1, 4_096, 4_097, 60_000])
def test_bitmaps_of_lists_and_of_bits_are_decoded(count: int) -> None:
    values = np.sort(np.random.default_rng(count).choice(400_000, count, replace=False)).astype(np.int64)
    bitmap = serialized(values)[12:]  # behind the count of high halves, the half and the length

    assert bitmap_values(bitmap).tolist() == values.tolist()


# Two containers, the first of runs: 5 to 8 and 100; the second a list: 65,536 + 7.
WITH_RUNS = (
    (12_347 | (1 << 16)).to_bytes(4, "little")
    + bytes([0b01])
    + b"".join(number.to_bytes(2, "little") for number in (0, 4, 1, 0))
    + b"".join(number.to_bytes(2, "little") for number in (2, 5, 3, 100, 0))
    + (7).to_bytes(2, "little")
)


def test_bitmaps_of_runs_are_decoded() -> None:
    assert bitmap_values(WITH_RUNS).tolist() == [5, 6, 7, 8, 100, 65_543]


@pytest.mark.parametrize("data", [b"\x00" * 16, b"\x3a\x30\x00\x00" + b"\xff" * 12], ids=["zeros", "lying"])
def test_what_is_no_bitmap_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a bitmap"):
        bitmap_values(data)


@pytest.mark.parametrize("data", [WITH_RUNS[:-1], WITH_RUNS[:3], WITH_RUNS + b"\x00", b""])
def test_a_bitmap_ends_where_its_file_does(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - numpy has a text of its own for some of them
        bitmap_values(data)


@pytest.mark.parametrize("data", [serialized(np.arange(70_000))[12:], WITH_RUNS], ids=["plain", "runs"])
def test_a_bitmap_is_whole_for_both_of_its_readers(data: bytes, tmp_path: Path) -> None:
    file = NamedFile("0-1-2.bin", None)
    (tmp_path / file.path).write_bytes(data)

    check_file(tmp_path, file)

    (tmp_path / file.path).write_bytes(data[:-1])
    with pytest.raises(HollowContent, match="was not written to its end"):
        check_file(tmp_path, file)


def test_guard_the_library_reads_runs_although_it_writes_none(tmp_path: Path) -> None:
    """So a bitmap with runs is whole, and taking it for a torn file would be an error of ours."""
    bench = Workbench(tmp_path)
    ids = names(70_000)
    bench.append(rows(ids))
    bench.delete(ids[:60_000])
    (file,) = (tmp_path / "table" / "_deletions").glob("*.bin")
    assert file.read_bytes()[:2] == (12_346).to_bytes(2, "little")
    head = (12_347).to_bytes(4, "little") + bytes([1])
    runs = b"".join(number.to_bytes(2, "little") for number in (0, 59_999, 1, 0, 59_999))
    assert bitmap_values(head + runs).tolist() == bitmap_values(file.read_bytes()).tolist()

    file.write_bytes(head + runs)

    assert shown(Workbench(tmp_path).head()) == list(range(60_000, 70_000))
