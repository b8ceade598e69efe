"""What Lance does with its refs: the flat, never re-used names of forks rest on it."""

from pathlib import Path

import lance
import pytest
from lance import LanceDataset

from omnigraph.storage.files.version_file import encode, fields
from tests.support.raw_lance import anchored, append, ids_of, new_dataset, reopened

pytestmark = pytest.mark.case("engine", 78)

BASE, PATH = 18, 4  # of the message of a version; of a source in it


def test_a_ref_and_a_version_together_cannot_be_opened(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    fork = append(dataset.create_branch("fork"), ["c"])

    with pytest.raises(OSError, match="version must be an integer or a string"):
        lance.dataset(dataset.uri, version=("fork", 2))  # type: ignore[arg-type]

    assert fork.uri == f"{dataset.uri}/tree/fork"
    assert ids_of(lance.dataset(fork.uri, version=2)) == ["a", "b", "c"]


def test_numbers_continue_from_the_fork_and_the_parent_is_referenced(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    fork = dataset.create_branch("fork")

    fork = append(fork, ["d"])

    assert fork.version == 3
    assert len(list(Path(fork.uri).glob("data/*.lance"))) == 1
    assert [fragment.metadata.files[0].base_id for fragment in fork.get_fragments()] == [0, 0, None]
    assert reopened(dataset).version == 2


def test_rows_written_below_another_ref_commit_and_cannot_be_read(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    fork = dataset.create_branch("fork")

    landed = LanceDataset.commit(fork, anchored(dataset, ["x"]), max_retries=0)

    with pytest.raises((OSError, ValueError), match="Not found"):
        landed.to_table()


def test_a_nested_ref_lives_inside_the_outer_one(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("a")
    dataset.create_branch("a/b")

    dataset.branches.delete("a")

    assert (Path(dataset.uri) / "tree" / "a").is_dir()
    with pytest.raises((OSError, ValueError)):
        dataset.create_branch("a")


def test_a_name_used_again_takes_commits_of_an_old_handle(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    old = dataset.create_branch("fork")
    staged = anchored(old, ["stale"])
    dataset.branches.delete("fork")
    again = dataset.create_branch("fork")

    landed = LanceDataset.commit(old, staged, max_retries=0)

    assert landed.version == again.version + 1
    with pytest.raises((OSError, ValueError), match="Not found"):
        lance.dataset(again.uri).to_table()


def test_a_commit_on_a_deleted_ref_lands_and_cannot_be_read(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    fork = append(dataset.create_branch("fork"), ["c"])
    staged = anchored(fork, ["late"])
    dataset.branches.delete("fork")

    landed = LanceDataset.commit(fork, staged, max_retries=0)

    assert landed.version == 3
    with pytest.raises((OSError, ValueError), match="Not found"):
        landed.to_table()


def test_a_ref_without_its_ref_file_is_still_readable(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    fork = append(dataset.create_branch("fork"), ["c"])

    (Path(dataset.uri) / "_refs" / "branches" / "fork.json").unlink()

    assert ids_of(lance.dataset(fork.uri)) == ["a", "b", "c"]
    assert dataset.branches.list() == {}


def test_creating_a_ref_twice_gives_no_clean_error(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("fork")

    with pytest.raises((OSError, ValueError)) as refused:
        dataset.create_branch("fork")

    assert "already exists" not in str(refused.value)


def test_missing_refs_and_refs_with_children_are_told_by_text(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("parent").create_branch("child")

    with pytest.raises(ValueError, match="Ref not found"):
        dataset.branches.delete("absent")
    with pytest.raises(OSError, match="Ref conflict"):
        dataset.branches.delete("parent")


def test_a_compaction_of_a_fork_loses_the_index_segments_that_it_inherits(tmp_path: Path) -> None:
    dataset = append(new_dataset(tmp_path), ["c"])
    dataset.create_scalar_index("id", "BTREE")
    fork = reopened(dataset).create_branch("fork")
    assert reopened(fork).to_table(filter="id = 'c'").num_rows == 1

    fork.optimize.compact_files(target_rows_per_fragment=100)

    # The new segment lies below the fork and is recorded as lying below the source.
    with pytest.raises((OSError, ValueError), match="Not found"):
        reopened(fork).to_table(filter="id = 'c'")


def test_a_fork_stores_where_its_source_was_and_a_relative_place_means_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("fork")
    moved = Path(dataset.uri).rename(tmp_path / "moved") / "tree" / "fork"
    fork = lance.dataset(str(moved))

    assert [(base.name, base.path) for base in fork.base_paths().values()] == [(None, dataset.uri)]
    with pytest.raises((OSError, ValueError), match="Not found"):
        fork.to_table()
    relative = opened_with_source(fork, "../..")
    with pytest.raises((OSError, ValueError), match="Not found"):
        relative.to_table()
    monkeypatch.chdir(moved)
    assert ids_of(opened_with_source(fork, "../..")) == ["a", "b"]


def test_what_is_committed_on_a_changed_version_has_its_places_and_other_versions_have_not(
    tmp_path: Path,
) -> None:
    dataset = new_dataset(tmp_path)
    dataset.create_branch("fork")
    root = Path(dataset.uri).rename(tmp_path / "moved")
    fork = lance.dataset(str(root / "tree" / "fork"))

    grown = append(opened_with_source(fork, str(root)), ["c"])

    assert ids_of(grown) == ids_of(reopened(grown)) == ["a", "b", "c"]
    assert [base.path for base in grown.checkout_version(1).base_paths().values()] == [dataset.uri]


def opened_with_source(fork: LanceDataset, place: str) -> LanceDataset:
    """Open a fork as if its source were at a place."""
    message = [
        (number, at_place(value, place) if number == BASE and isinstance(value, memoryview) else value)
        for number, value in fields(memoryview(fork._ds.serialized_manifest()))
    ]
    return LanceDataset(fork.uri, fork.version, serialized_manifest=encode(message))


def at_place(base: memoryview, place: str) -> bytes:
    """Return the description of a source at another place."""
    return encode((dict(fields(base)) | {PATH: place.encode()}).items())
