"""The newest version without a listing: the same answer as the library's, whoever commits."""

import json
import os
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.files.version_file import VERSIONS_DIR, version_file_name
from omnigraph.storage.tables.table import TableAddress, TableStore
from omnigraph.storage.versions.newest import HINT, TRUSTED_S, NewestVersions
from tests.support.seam import patched

SECOND_NS = 1_000_000_000


@pytest.fixture
def address(tmp_path: Path) -> TableAddress:
    path = str(tmp_path / "table")
    for number in range(3):
        lance.write_dataset(pa.table({"x": [number]}), path, mode="append" if number else "create")
    return TableAddress(path)


def append(address: TableAddress, count: int = 1) -> None:
    for _ in range(count):
        lance.write_dataset(pa.table({"x": [9]}), address.uri, mode="append")


def set_changed(address: TableAddress, moment_ns: int) -> None:
    """Give the folder of versions a time of change, as its file system would have kept it."""
    os.utime(Path(address.uri, VERSIONS_DIR), ns=(moment_ns, moment_ns))


def test_it_follows_the_commits_of_others(address: TableAddress) -> None:
    known = NewestVersions()
    assert known.find(address) is None  # never seen: the library must look
    known.saw(address, 1)
    assert known.find(address) == 3
    append(address, 2)
    assert known.find(address) == 5


def test_a_store_answers_without_a_listing(address: TableAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TableStore()
    assert store.open_head(address).version == 3
    append(address)
    monkeypatch.setattr(lance.LanceDataset, "latest_version", property(lambda _: pytest.fail("it listed")))
    assert store.latest_version(address) == 4
    assert store.open_head(address).version == 4


def test_a_cleanup_in_the_way_is_passed_over_by_the_hint(address: TableAddress) -> None:
    known = NewestVersions()
    known.saw(address, 3)
    append(address, 4)
    Path(address.uri, version_file_name(4)).unlink()  # as a cleanup half-way: 3 is there, 4 is not
    assert known.find(address) == 7


@pytest.mark.parametrize("hint", [b"", b"no json", b"[]", b'{"version": null}', b'{"version": 99}'])
def test_a_damaged_hint_is_no_hint(address: TableAddress, hint: bytes) -> None:
    """What a cleanup left of the versions above a known one cannot be told then: the library lists."""
    known, store = NewestVersions(), TableStore()
    known.saw(address, 2)
    store._newest.saw(address, 2)
    Path(address.uri, HINT).write_bytes(hint)
    Path(address.uri, version_file_name(3)).rename(Path(address.uri, version_file_name(5)))
    assert known.find(address) is None


def test_the_library_looks_when_nothing_known_is_there(address: TableAddress) -> None:
    known = NewestVersions()
    known.saw(address, 50)
    Path(address.uri, HINT).write_text(json.dumps({"version": 60}))
    assert known.find(address) is None
    store = TableStore()
    store._newest.saw(address, 50)
    assert store.open_head(address).version == 3


def test_what_was_seen_long_ago_proves_nothing(
    address: TableAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    patched(monkeypatch, "omnigraph.storage.versions.newest.boot_clock", lambda: now[0])
    known = NewestVersions()
    known.saw(address, 3)
    now[0] += TRUSTED_S + 1
    assert known.find(address) is None


def test_an_object_store_is_left_to_the_library() -> None:
    known = NewestVersions()
    known.saw(TableAddress("s3://bucket/graph/table"), 3)
    assert known.find(TableAddress("s3://bucket/graph/table")) is None


@pytest.mark.case("engine", 371)
@pytest.mark.parametrize("granularity_s", [1, 2])
@pytest.mark.parametrize("age_ms", [0, 300, 1_900])
def test_commits_that_share_a_coarse_time_of_change_are_all_seen(
    address: TableAddress, granularity_s: int, age_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick_ns = time.time_ns() // (granularity_s * SECOND_NS) * granularity_s * SECOND_NS
    monkeypatch.setattr(time, "time_ns", lambda: tick_ns + age_ms * 1_000_000)
    known = NewestVersions()
    known.saw(address, 1)
    set_changed(address, tick_ns)
    assert known.find(address) == 3

    append(address)
    set_changed(address, tick_ns)

    assert known.find(address) == 4


@pytest.mark.parametrize("age_ms", [0, 300, 1_900])
def test_a_gap_made_within_a_coarse_time_of_change_is_passed_over(
    address: TableAddress, age_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick_ns = time.time_ns() // (2 * SECOND_NS) * 2 * SECOND_NS
    monkeypatch.setattr(time, "time_ns", lambda: tick_ns + age_ms * 1_000_000)
    known = NewestVersions()
    known.saw(address, 3)
    set_changed(address, tick_ns)
    assert known.find(address) == 3

    append(address, 2)
    Path(address.uri, version_file_name(4)).unlink()
    set_changed(address, tick_ns)

    assert known.find(address) == 5


@pytest.mark.case("engine", 371)
@pytest.mark.parametrize("granularity_ns", [1, 10_000_000, 1 * SECOND_NS, 2 * SECOND_NS])
def test_a_clock_that_is_not_the_file_systems_hides_no_commit(
    address: TableAddress, granularity_ns: int
) -> None:
    behind_ns = (time.time_ns() - 60 * SECOND_NS) // granularity_ns * granularity_ns
    known = NewestVersions()
    known.saw(address, 3)
    set_changed(address, behind_ns)
    assert known.find(address) == 3

    append(address)
    set_changed(address, behind_ns)

    assert known.find(address) == 4


@pytest.mark.case("engine", 371)
@pytest.mark.parametrize("changed_ns", [7 * SECOND_NS + 1, 8 * SECOND_NS], ids=["fine", "coarse"])
def test_a_folder_at_rest_is_asked_two_things_and_no_hint_is_read(
    address: TableAddress, changed_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = NewestVersions()
    known.saw(address, 3)
    set_changed(address, changed_ns)
    assert known.find(address) == 3
    patched(monkeypatch, "omnigraph.storage.versions.newest._walk", lambda *_: pytest.fail("it walked"))

    assert known.find(address) == 3
