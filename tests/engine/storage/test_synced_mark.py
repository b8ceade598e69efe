"""What a note beside a dataset says, and when it says nothing."""

from pathlib import Path

import pytest

from omnigraph.storage.versions.newest import MARK, Mark, read_mark, write_mark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of which seven versions are acknowledged and synced."""
    folder = tmp_path / "june-ref"
    folder.mkdir()
    write_mark(folder, 7, is_synced=True)
    return folder


def test_what_is_synced_stays_known_when_more_is_acknowledged(folder: Path) -> None:
    write_mark(folder, 9, is_synced=False)

    assert read_mark(folder) == Mark(acknowledged=9, synced=7)
    assert [path.name for path in folder.iterdir()] == [MARK]


def test_nothing_is_synced_that_is_not_acknowledged(folder: Path) -> None:
    write_mark(folder, 4, is_synced=False)

    assert read_mark(folder) == Mark(acknowledged=4, synced=4)


@pytest.mark.parametrize("text", ["", "7", "7 7", "7 7 00000000", "8 7 {check}", "7 {check}", "{check}"])
def test_a_note_that_is_torn_or_damaged_says_nothing(folder: Path, text: str) -> None:
    check = (folder / MARK).read_text().split()[2]
    (folder / MARK).write_text(text.replace("{check}", check))

    assert read_mark(folder) == Mark()


def test_the_note_of_another_dataset_says_nothing(folder: Path) -> None:
    (folder / MARK).rename(folder.parent / MARK)

    assert read_mark(folder) == read_mark(folder.parent) == Mark()
