"""The manifest's raw operations: one fenced write, and reads of what is new."""

import datetime as dt
import multiprocessing
import shutil
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation

from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import AlreadyExistsError, RowLevelCasContention, StaleCommit, StorageError
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.manifest_table import (
    ROW_ADDRESS,
    ManifestHandle,
    ManifestTable,
)
from omnigraph.storage.tables.table import TableAddress, TableStore
from tests.support.tables import PRIMARY_KEY, put_rows

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("object_id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY),
    pa.field("metadata", pa.utf8()),
    pa.field("published_at", pa.uint64()),
]
SCHEMA = pa.schema(FIELDS)
STAMP = {"omnigraph:internal_schema_version": "4"}


def entries(published_at: int | None, *object_ids: str, metadata: str = "{}") -> pa.Table:
    count = len(object_ids)
    columns: dict[str, list[object]] = {
        "object_id": [*object_ids],
        "metadata": [metadata] * count,
        "published_at": [published_at] * count,
    }
    return pa.table(columns, schema=SCHEMA)


def publish_rows(version: int, key: str) -> pa.Table:
    return pa.concat_tables([entries(None, "graph_head:main", metadata=key), entries(version, key)])


class Manifest:
    """A manifest in a directory, with the calls of a test."""

    def __init__(self, directory: Path) -> None:
        self.address = TableAddress(str(directory / "__manifest"))
        self.store = TableStore()
        self.table = ManifestTable(self.store)

    def create(self) -> "Manifest":
        self.table.create(self.address, publish_rows(1, "genesis"), STAMP)
        return self

    def open(self) -> ManifestHandle:
        return self.table.open_fresh(self.address)

    def publish(self, key: str) -> int:
        return self.publish_on(self.open(), key)

    def publish_on(self, handle: ManifestHandle, key: str) -> int:
        return put_rows(self.table, handle, publish_rows(handle.version + 1, key), key)

    def object_ids(self) -> list[str]:
        return sorted(map(str, self.table.read(self.open())["object_id"].to_pylist()))


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return Manifest(tmp_path).create()


def test_a_manifest_is_created_once_with_its_stamp(manifest: Manifest) -> None:
    handle = manifest.open()

    assert (handle.version, handle.fragment_ids, handle.schema_metadata) == (1, (0,), STAMP)
    assert handle._dataset.has_stable_row_ids
    assert handle._dataset.data_storage_version == "2.2"
    assert handle._dataset.config() == {}
    assert handle._dataset.schema.field("object_id").metadata
    with pytest.raises(AlreadyExistsError):
        manifest.create()


def test_a_missing_manifest_is_not_found(tmp_path: Path) -> None:
    manifest = Manifest(tmp_path)

    for probe in (manifest.open, lambda: manifest.table.latest_version(manifest.address)):
        with pytest.raises(StorageError) as missing:
            probe()
        assert missing.value.kind == "not_found"


def test_a_publish_replaces_the_head_row_and_leaves_the_handle_alone(manifest: Manifest) -> None:
    handle = manifest.open()
    before = boot_clock()

    version = manifest.publish_on(handle, "first")

    assert version == manifest.table.latest_version(manifest.address) == 2
    assert handle.version == handle._dataset.version == 1
    assert handle.opened_at <= before <= manifest.open().opened_at
    assert manifest.object_ids() == ["first", "genesis", "graph_head:main"]
    head = manifest.table.read(manifest.open(), columns=["object_id", "metadata"]).to_pylist()
    assert {"object_id": "graph_head:main", "metadata": "first"} in head
    assert manifest.open().schema_metadata == STAMP


def test_a_publish_reads_no_row(manifest: Manifest) -> None:
    manifest.publish("first")
    handle = manifest.open()
    place = head_place(manifest)
    for data in Path(manifest.address.uri).glob("data/*.lance"):
        data.unlink()

    made = manifest.table.publish(handle, publish_rows(3, "second"), commit_id="second", replaced=[place])

    assert made.version == 3
    assert sorted(made.files) == sorted(manifest.table.files_of(manifest.address, 3))
    fresh = [number for number in made.fragment_ids if number not in handle.fragment_ids]
    rows = manifest.table.read(made, fragment_ids=fresh)
    assert sorted(map(str, rows["object_id"].to_pylist())) == ["graph_head:main", "second"]


def head_place(manifest: Manifest) -> int:
    """Return the address of the head row."""
    rows = manifest.table.read(manifest.open(), with_places=True).to_pylist()
    (place,) = [row[ROW_ADDRESS] for row in rows if row["object_id"] == "graph_head:main"]
    assert isinstance(place, int)
    return place


def test_a_new_head_row_is_the_first_of_the_newest_fragment(manifest: Manifest) -> None:
    for key in ["first", "second"]:
        manifest.publish(key)

    assert head_place(manifest) == 2 << 32


def test_a_version_does_not_grow_with_the_number_of_folds(manifest: Manifest) -> None:
    sizes = []
    for period in range(4):
        for number in range(40):
            manifest.publish(f"{period}-{number}")
        manifest.table.compact(manifest.address)
        version = manifest.open().version
        sizes.append((Path(manifest.address.uri) / version_file_name(version)).stat().st_size)

    assert max(sizes) <= sizes[0] + 100, sizes  # 40 publishes by a compaction of the library: 1,040


def test_a_fold_leaves_full_fragments_alone(manifest: Manifest) -> None:
    handle = manifest.open()
    many = entries(2, *(f"k{number}" for number in range(MAX_FRAGMENT_ROWS)))
    manifest.table.publish(handle, many, commit_id="many")
    full = max(manifest.open().fragment_ids)
    for key in ["first", "second"]:
        manifest.publish(key)

    manifest.table.compact(manifest.address)

    assert full in manifest.open().fragment_ids
    assert len(manifest.open().fragment_ids) == 2
    assert len(manifest.object_ids()) == MAX_FRAGMENT_ROWS + 4


def test_two_publishes_on_one_version_have_one_winner(manifest: Manifest) -> None:
    first, second = manifest.open(), manifest.open()
    manifest.publish_on(first, "first")

    with pytest.raises(RowLevelCasContention):
        manifest.publish_on(second, "second")

    assert manifest.object_ids() == ["first", "genesis", "graph_head:main"]


def test_two_publishes_that_replace_nothing_have_one_winner(manifest: Manifest) -> None:
    manifest.publish("first")
    first, second = manifest.open(), manifest.open()
    manifest.table.publish(first, entries(3, "a"), commit_id="a")

    with pytest.raises(RowLevelCasContention):
        manifest.table.publish(second, entries(3, "b"), commit_id="b")


def test_a_publish_above_a_commit_without_rows_lands_higher(manifest: Manifest) -> None:
    manifest.publish("first")
    handle = manifest.open()
    manifest.table.stamp(manifest.open(), {"note": "somebody was here"})

    assert manifest.publish_on(handle, "second") == 4
    assert manifest.object_ids() == ["first", "genesis", "graph_head:main", "second"]


def test_a_publish_above_rows_of_others_is_not_taken_for_a_success(manifest: Manifest) -> None:
    """Versions that were trimmed hide from Lance what came in between: the fence is open, and it is said."""
    stale = manifest.open()
    for key in ["first", "second"]:
        manifest.publish(key)
    manifest.table.stamp(manifest.open(), STAMP)  # HEAD must not be one that the update collides with
    manifest.open()._dataset.cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)

    with pytest.raises(StaleCommit):
        manifest.publish_on(stale, "third")


def test_a_trim_below_the_newest_publish_leaves_the_fence_closed(manifest: Manifest) -> None:
    stale = manifest.open()
    for key in ["first", "second"]:
        manifest.publish(key)
    manifest.open()._dataset.cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)

    with pytest.raises(StorageError, match="unknown"):  # one of the versions that are gone may have been ours
        manifest.publish_on(stale, "third")
    assert manifest.object_ids() == ["first", "genesis", "graph_head:main", "second"]


def test_a_restore_below_a_publish_is_contention_too(manifest: Manifest) -> None:
    manifest.publish("first")
    stale = manifest.open()
    LanceDataset.commit(manifest.address.uri, LanceOperation.Restore(1))

    with pytest.raises(RowLevelCasContention):
        manifest.publish_on(stale, "second")


def test_another_failure_of_a_publish_is_a_storage_error(manifest: Manifest) -> None:
    handle = manifest.open()
    shutil.rmtree(Path(manifest.address.uri) / "data")
    (Path(manifest.address.uri) / "data").write_text("not a folder")

    with pytest.raises(StorageError):
        manifest.table.publish(handle, publish_rows(2, "first"), commit_id="first")


def merge(handle: ManifestHandle, rows: pa.Table) -> None:
    """Publish as builds did that compared keys."""
    dataset = handle._dataset.checkout_version(handle.version)
    builder = dataset.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
    builder.use_index(False).conflict_retries(0).execute(rows)


def test_a_publish_and_the_merge_of_an_older_build_exclude_each_other(manifest: Manifest) -> None:
    manifest.publish("first")
    stale = manifest.open()
    manifest.publish("second")
    with pytest.raises(OSError, match="Too many concurrent writers"):
        merge(stale, publish_rows(3, "older build"))

    stale = manifest.open()
    merge(manifest.open(), publish_rows(4, "older build"))
    with pytest.raises(RowLevelCasContention):
        manifest.publish_on(stale, "third")
    manifest.publish("third")

    keys = manifest.object_ids()
    assert keys == ["first", "genesis", "graph_head:main", "older build", "second", "third"]


def race(manifest: Manifest, keys: list[str]) -> list[str]:
    """Let threads publish one key each on one version; return the keys that landed."""
    handles = [manifest.open() for _ in keys]
    barrier = threading.Barrier(len(keys))
    landed: list[str] = []

    def publish(handle: ManifestHandle, key: str) -> None:
        barrier.wait()
        try:
            manifest.publish_on(handle, key)
        except RowLevelCasContention:
            return
        landed.append(key)

    threads = [threading.Thread(target=publish, args=pair) for pair in zip(handles, keys, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return landed


def test_threads_that_publish_have_one_winner_in_each_round(manifest: Manifest) -> None:
    winners = []

    for number in range(20):
        landed = race(manifest, [f"r{number}-{place}" for place in range(3)])
        assert len(landed) == 1
        winners += landed

    assert manifest.object_ids() == sorted([*winners, "genesis", "graph_head:main"])


def serve(directory: str, connection: Connection) -> None:
    manifest = Manifest(Path(directory))
    while (key := connection.recv()) is not None:
        handle = manifest.open()
        connection.send("ready")
        connection.recv()
        try:
            manifest.publish_on(handle, key)
        except RowLevelCasContention:
            connection.send(False)
        else:
            connection.send(True)


def test_processes_that_publish_have_one_winner_in_each_round(manifest: Manifest, tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = zip(*(spawn.Pipe() for _ in range(2)), strict=True)
    workers = [spawn.Process(target=serve, args=(str(tmp_path), end), daemon=True) for end in theirs]
    for worker in workers:
        worker.start()

    for number in range(30):
        for place, connection in enumerate(ours):
            connection.send(f"r{number}-{place}")
        assert [connection.recv() for connection in ours] == ["ready", "ready"]
        for connection in ours:
            connection.send("go")
        assert sorted(connection.recv() for connection in ours) == [False, True]

    for connection, worker in zip(ours, workers, strict=True):
        connection.send(None)
        worker.join()
    assert len(manifest.object_ids()) == 32


def test_a_reader_takes_only_the_fragments_it_has_not_seen(manifest: Manifest) -> None:
    manifest.publish("first")
    seen = set(manifest.open().fragment_ids)
    manifest.publish("second")
    handle = manifest.open()

    fresh = [number for number in handle.fragment_ids if number not in seen]
    new = manifest.table.read(handle, fragment_ids=fresh)

    assert sorted(map(str, new["object_id"].to_pylist())) == ["graph_head:main", "second"]
    assert manifest.table.read(handle, fragment_ids=[]).num_rows == 0
    empty = manifest.table.read(handle, fragment_ids=[], columns=["object_id"])
    assert (empty.num_rows, empty.column_names) == (0, ["object_id"])
    assert len(handle.fragment_ids) == 3


def test_after_a_compaction_a_reader_asks_for_what_was_published_since(manifest: Manifest) -> None:
    for key in ["first", "second", "third"]:
        manifest.publish(key)
    known = manifest.open().version

    version = manifest.table.compact(manifest.address)
    manifest.publish("fourth")

    handle = manifest.open()
    assert version == known + 1
    assert len(handle.fragment_ids) == 2
    new = manifest.table.read(handle, published_after=known)
    assert sorted(map(str, new["object_id"].to_pylist())) == ["fourth", "graph_head:main"]
    assert manifest.object_ids() == ["first", "fourth", "genesis", "graph_head:main", "second", "third"]
    assert manifest.table.compact(manifest.address) == handle.version + 1
    assert manifest.table.compact(manifest.address) == handle.version + 1


def test_a_compaction_makes_publishes_in_flight_try_again(manifest: Manifest) -> None:
    manifest.publish("first")
    stale = manifest.open()
    manifest.table.compact(manifest.address)

    with pytest.raises(RowLevelCasContention):
        manifest.publish_on(stale, "second")
    assert manifest.publish("second") == 4  # the head row is found in the fragment that the fold made
    assert manifest.object_ids() == ["first", "genesis", "graph_head:main", "second"]


def test_a_stamp_is_set_once_on_a_version(manifest: Manifest) -> None:
    first, second = manifest.open(), manifest.open()
    version = manifest.table.stamp(first, {"omnigraph:internal_schema_version": "5"})

    with pytest.raises(RowLevelCasContention):
        manifest.table.stamp(second, {"omnigraph:internal_schema_version": "6"})

    assert version == 2
    assert manifest.open().schema_metadata == {"omnigraph:internal_schema_version": "5"}


def test_files_of_a_version_are_what_it_added(manifest: Manifest, tmp_path: Path) -> None:
    def present() -> set[str]:
        return {str(path) for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".txn"}

    def is_hint(name: str) -> bool:
        return name.endswith("latest_version_hint.json")

    assert set(manifest.table.files_of(manifest.address, 1)) == {
        name for name in present() if not is_hint(name)
    }
    for key in ["first", "second"]:
        before = present()
        version = manifest.publish(key)
        assert set(manifest.table.files_of(manifest.address, version)) == present() - before
    before = present()
    version = manifest.table.compact(manifest.address)
    assert set(manifest.table.files_of(manifest.address, version)) == present() - before


def test_a_ref_of_the_manifest_is_a_manifest(manifest: Manifest) -> None:
    manifest.publish("first")
    manifest.store.open_head(manifest.address)._dataset.create_branch("fork")
    fork = TableAddress(manifest.address.uri, "fork")
    handle = manifest.table.open_fresh(fork)

    rows = pa.concat_tables([entries(None, "graph_head:fork"), entries(3, "on-fork")])
    second = manifest.table.open_fresh(fork)
    version = manifest.table.publish(handle, rows, commit_id="on-fork").version
    with pytest.raises(RowLevelCasContention):  # its anchor is a fragment that it inherited
        manifest.table.publish(second, rows, commit_id="also-on-fork")

    assert (handle.version, version) == (2, 3)
    assert manifest.table.latest_version(fork) == 3
    assert manifest.table.latest_version(manifest.address) == 2
    assert all("tree/fork" in name for name in manifest.table.files_of(fork, 3))
    assert len(manifest.table.files_of(fork, 3)) == 2
    head = entries(None, "graph_head:fork", metadata="again")
    assert (
        len(manifest.table.files_of(fork, put_rows(manifest.table, manifest.table.open_fresh(fork), head)))
        == 3
    )
