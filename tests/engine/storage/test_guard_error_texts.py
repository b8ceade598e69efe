"""The texts and types that Lance raises, and what we make of them."""

import errno
import subprocess
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.tables.lance_errors import classify, translate
from tests.support.raw_lance import anchored, append, new_dataset, publish, reopened
from tests.support.tables import SCHEMA, rows

pytestmark = pytest.mark.case("engine", 78)


def test_only_a_commit_raises_a_typed_conflict(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    staged = anchored(dataset, ["x"])
    first, second = reopened(dataset), reopened(dataset)
    publish(first, rows(["a"], 1))

    with pytest.raises(CommitConflictError) as committed:
        LanceDataset.commit(dataset, staged, max_retries=0)
    with pytest.raises(OSError, match="concurrent writers") as merged:
        publish(second, rows(["a"], 2))

    assert not isinstance(merged.value, CommitConflictError)
    assert classify(committed.value) == "conflict"
    assert classify(merged.value) == "conflict"


def test_a_final_refusal_is_incompatible(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    staged = anchored(dataset, ["x"])
    stale = reopened(dataset)
    LanceDataset.commit(dataset, LanceOperation.Restore(1))

    with pytest.raises(CommitConflictError) as committed:
        LanceDataset.commit(dataset, staged, max_retries=0)
    with pytest.raises(OSError, match="Incompatible transaction") as merged:
        publish(stale, rows(["a"], 2))

    assert classify(committed.value) == classify(merged.value) == "incompatible"


def test_a_key_that_exists_is_told_from_other_failures(tmp_path: Path) -> None:
    builder = new_dataset(tmp_path).merge_insert("id").when_matched_fail().when_not_matched_insert_all()

    with pytest.raises(OSError, match="found matching row") as refused:
        builder.execute_uncommitted(rows(["a"]))

    assert classify(refused.value) == "key_exists"


def test_a_dataset_that_exists_is_told_from_other_failures(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)

    with pytest.raises(OSError, match="Dataset already exists") as refused:
        lance.write_dataset(rows(["a"]), dataset.uri)

    assert classify(refused.value) == "exists"


def test_what_is_missing_is_not_found(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    missing = LanceOperation.Merge([], dataset.lance_schema)

    with pytest.raises(ValueError, match="was not found") as no_dataset:
        lance.dataset(str(tmp_path / "absent"))
    with pytest.raises(ValueError, match="was not found") as no_version:
        lance.dataset(dataset.uri, version=9)
    with pytest.raises(OSError, match="was not found") as no_checkout:
        dataset.checkout_version(9)
    with pytest.raises(ValueError, match="Ref not found") as no_ref:
        dataset.branches.delete("absent")
    with pytest.raises(OSError, match="must already exist") as no_target:
        LanceDataset.commit(str(tmp_path / "absent"), missing, read_version=0)

    for error in (no_dataset, no_version, no_checkout, no_ref, no_target):
        assert classify(error.value) == "not_found"


def test_a_missing_data_file_is_not_found_at_the_read(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    for data in Path(dataset.uri).glob("data/*.lance"):
        data.unlink()

    with pytest.raises(ValueError, match="Not found") as missing:
        reopened(dataset).to_table()

    assert classify(missing.value) == "not_found"


def test_a_translated_error_names_no_place_of_the_library(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.rs:") as raised:
        lance.dataset(str(tmp_path / "absent"))

    error = translate(raised.value, "open the table")

    assert isinstance(error, StorageError)
    assert error.kind == "not_found"
    assert str(error).startswith("open the table: Dataset at path")
    assert ".rs:" not in str(error)


def test_a_wrong_column_is_permanent(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)

    with pytest.raises(ValueError, match="Invalid user input") as raised:
        dataset.to_table(filter="absent = 1")

    error = translate(raised.value, "scan")
    assert isinstance(error, StorageError)
    assert error.kind == "permanent"


def test_a_full_disk_means_the_same_to_the_library_and_to_us(tmp_path: Path) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    try:
        with pytest.raises(OSError, match="No space left on device") as of_the_library:
            lance.write_dataset(pa.table({"id": range(100_000)}), str(disk / "table"))
        files = LocalFiles(disk, Durability.PROCESS)
        with pytest.raises(StorageError, match="No space left on device") as ours:
            files.write_text("a.json", "x" * 100_000)
    finally:
        subprocess.run(["umount", str(disk)], check=True)

    translated = translate(of_the_library.value, "write the table")
    assert isinstance(translated, StorageError)
    assert translated.kind == ours.value.kind == "permanent"


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, "permanent"), (errno.EACCES, "permanent"), (errno.EMFILE, "transient"), (999, "unknown")],
)
def test_a_number_of_the_system_has_one_kind(number: int, kind: str) -> None:
    of_the_library = OSError(f"LanceError(IO): something (os error {number}), /src/x.rs:1:2")

    translated = translate(of_the_library, "write the table")

    assert isinstance(translated, StorageError)
    assert (translated.kind, storage_error("write 'a'", OSError(number, "something")).kind) == (kind, kind)


def test_a_creation_over_a_dataset_is_not_a_conflict_but_an_unfound_base(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    create = lance.Transaction(0, LanceOperation.Overwrite(SCHEMA, []))

    with pytest.raises(OSError, match=r"0\.manifest was not found"):
        LanceDataset.commit(dataset.uri, create, max_retries=0, enable_stable_row_ids=True)

    assert reopened(dataset).version == 1
