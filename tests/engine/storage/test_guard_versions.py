"""What Lance does with version files, cleanup and detached commits: quarantine and cleanup rest on it."""

import datetime as dt
import os
from pathlib import Path

import lance
import pytest
from lance import LanceDataset, LanceOperation

from omnigraph.storage.files.data_file import data_file_name
from tests.support.raw_lance import anchored, append, fragments_of, ids_of, new_dataset, reopened
from tests.support.tables import rows

pytestmark = pytest.mark.case("engine", 78)

LONG_AGO = 10 * 24 * 3600


def version_file(dataset: LanceDataset, version: int) -> Path:
    return Path(dataset.uri) / "_versions" / f"{2**64 - 1 - version:020d}.manifest"


def test_versions_lie_under_their_complement(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])

    assert version_file(dataset, 1).is_file()
    assert version_file(dataset, 2).is_file()
    assert dataset.data_storage_version == "2.2"


def test_a_data_file_says_its_name_without_a_class_of_its_own(tmp_path: Path) -> None:
    (fragment,) = new_dataset(tmp_path).get_fragments()
    (file,) = fragment.data_files()

    assert data_file_name(file) == file.path
    assert (tmp_path / Path(fragment._ds.uri).name / "data" / data_file_name(file)).is_file()
    assert type(data_file_name(file)) is str


def test_a_version_file_of_zeros_opens_as_version_zero(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    newest = version_file(dataset, 2)
    newest.write_bytes(bytes(newest.stat().st_size))

    hollow = lance.dataset(dataset.uri)

    assert hollow.version == 0


@pytest.mark.parametrize("left", [0, 20, 100])
def test_an_empty_or_cut_version_file_fails_the_open(tmp_path: Path, left: int) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    newest = version_file(dataset, 2)
    newest.write_bytes(newest.read_bytes()[:left])

    with pytest.raises((OSError, ValueError)):
        lance.dataset(dataset.uri)


def test_hollow_data_fail_at_the_scan(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    [data] = Path(dataset.uri).glob("data/*.lance")
    data.write_bytes(bytes(data.stat().st_size))

    opened = lance.dataset(dataset.uri)

    assert opened.count_rows() == 2
    with pytest.raises((OSError, ValueError)):
        opened.to_table()


@pytest.mark.parametrize("hint", [None, '{"version":2}', "garbage"])
def test_without_its_newest_version_file_a_dataset_opens_at_the_one_before(
    tmp_path: Path, hint: str | None
) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    version_file(dataset, 2).unlink()
    if hint is not None:
        (Path(dataset.uri) / "_versions" / "latest_version_hint.json").write_text(hint)

    assert lance.dataset(dataset.uri).version == 1


def test_a_trim_keeps_the_versions_that_refs_start_from(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    fork = dataset.create_branch("fork")
    dataset = append(reopened(dataset), ["d"])
    dataset = append(dataset, ["e"])
    dataset.optimize.compact_files()

    dataset.cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)

    kept = {reference["version"] for reference in reopened(dataset).version_refs()}
    assert kept == {2, reopened(dataset).version}
    assert ids_of(lance.dataset(fork.uri)) == ["a", "b", "c"]
    fork = append(fork, ["f"])
    fork.cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)
    assert ids_of(lance.dataset(fork.uri)) == ["a", "b", "c", "f"]
    assert [reference["version"] for reference in fork.version_refs()] == [3]


def make_old(directory: Path) -> None:
    for path in directory.rglob("*"):
        stamp = path.stat().st_mtime - LONG_AGO
        os.utime(path, (stamp, stamp))


def test_uncommitted_files_are_kept_for_seven_days(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    staged = anchored(dataset, ["staged"])

    dataset.cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)

    landed = LanceDataset.commit(dataset, staged, max_retries=0)
    assert "staged" in ids_of(landed)
    anchored(landed, ["abandoned"])
    files = len(list(Path(dataset.uri).glob("data/*.lance")))
    make_old(Path(dataset.uri) / "data")
    append(landed, ["d"]).cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1)
    assert len(list(Path(dataset.uri).glob("data/*.lance"))) == files


def test_deleting_unverified_files_lets_a_later_commit_land_unreadable(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    staged = anchored(dataset, ["staged"])
    dataset.cleanup_old_versions(older_than=dt.timedelta(0), retain_versions=1, delete_unverified=True)

    landed = LanceDataset.commit(dataset, staged, max_retries=0)

    with pytest.raises((OSError, ValueError), match="Not found"):
        landed.to_table()


def detached(dataset: LanceDataset, key: str) -> LanceDataset:
    operation = LanceOperation.Append(fragments_of(dataset, rows([key])))
    return LanceDataset.commit(dataset, operation, read_version=dataset.version, detached=True)


def test_a_detached_commit_never_becomes_the_newest_version(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)

    preview = detached(dataset, "preview")

    assert preview.version >> 63 == 1
    assert reopened(dataset).version == 1
    assert ids_of(reopened(dataset, preview.version)) == ["a", "b", "preview"]


def test_the_files_of_a_detached_commit_are_unprotected_and_its_manifest_stays(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    preview = detached(dataset, "preview")

    append(dataset, ["c"]).cleanup_old_versions(
        older_than=dt.timedelta(0), retain_versions=1, delete_unverified=True
    )

    assert list(Path(dataset.uri).glob("_versions/d*.manifest"))
    with pytest.raises((OSError, ValueError), match="Not found"):
        reopened(dataset, preview.version).to_table()
