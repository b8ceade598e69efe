"""What a note beside a dataset says, and when it says nothing."""

import os
from pathlib import Path

import pytest

from omnigraph.core.errors import StorageError
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.versions.newest import MARK, Mark, _check, read_mark, write_mark


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


SUMS = (FileSum("__manifest/data/a.lance", 12, "0" * 16), FileSum("__manifest/data/b c.lance", 0, "f" * 16))


def test_the_checksums_of_a_publish_are_those_of_its_version(folder: Path) -> None:
    write_mark(folder, 8, is_synced=True, sums=SUMS)
    write_mark(folder, 8, is_synced=True)
    assert read_mark(folder) == Mark(acknowledged=8, synced=8, sums=SUMS)

    write_mark(folder, 9, is_synced=True)
    assert read_mark(folder).sums == ()


@pytest.mark.parametrize("place", range(7, 100, 9))
def test_a_note_with_checksums_that_is_cut_or_damaged_says_nothing(folder: Path, place: int) -> None:
    write_mark(folder, 8, is_synced=True, sums=SUMS)
    whole = (folder / MARK).read_bytes()
    for damaged in (whole[:place], whole[:place] + b"\xff" + whole[place + 1 :]):
        (folder / MARK).write_bytes(damaged)

        assert read_mark(folder) == Mark()


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


UNFINISHED = f"{MARK}.new"  # where a note is written before it gets its name


def test_a_link_in_place_of_an_unfinished_note_is_not_followed(folder: Path) -> None:
    mine = folder.parent / "diary"
    mine.write_text("of the user")
    for make in (Path.symlink_to, Path.hardlink_to):
        make(folder / UNFINISHED, mine)

        write_mark(folder, 8, is_synced=True)

        assert mine.read_text() == "of the user"
        assert read_mark(folder).acknowledged == 8
        assert [path.name for path in folder.iterdir()] == [MARK]


def test_a_pipe_in_place_of_an_unfinished_note_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / UNFINISHED)

    write_mark(folder, 8, is_synced=True)

    assert read_mark(folder).acknowledged == 8


def test_a_folder_in_place_of_an_unfinished_note_is_an_error(folder: Path) -> None:
    (folder / UNFINISHED).mkdir()

    with pytest.raises(StorageError):
        write_mark(folder, 8, is_synced=True)


def forged(folder: Path, numbers: bytes, *lines: bytes) -> None:
    """Put a note there whose check fits, whatever it says."""
    first = numbers + b" " + _check(folder, numbers, lines)
    (folder / MARK).write_bytes(b"\n".join([first, *lines, b""]))


GOOD_SUM = b"0000000000000000 12 __manifest/data/a.lance"


def test_a_forged_note_that_is_like_a_true_one_is_read(folder: Path) -> None:
    forged(folder, b"8 9", GOOD_SUM)
    assert read_mark(folder) == Mark(acknowledged=8, synced=8, sums=SUMS[:1])

    forged(folder, f"{2**63 - 1} 7".encode())
    assert read_mark(folder) == Mark(acknowledged=2**63 - 1, synced=7)


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        (b"9" * 5_000 + b" 7", GOOD_SUM),
        (b"7 " + b"9" * 5_000, GOOD_SUM),
        (f"{2**63} 7".encode(), GOOD_SUM),
        (b"8 7", b"0000000000000000 12 __manifest/data/\xff.lance"),
        (b"8 7", b"0000000000000000 " + b"9" * 5_000 + b" __manifest/data/a.lance"),
        (b"8 7", f"0000000000000000 {2**63} __manifest/data/a.lance".encode()),
        (b"8 7", "0000000000000000 \u0661 __manifest/data/a.lance".encode()),
        (b"8 7", b"0000000000000000 12 ../../a.lance"),
        (b"8 7", b"0000000000000000 12"),
        (b"8 7", b""),
    ],
)
def test_a_forged_note_that_no_publish_could_write_says_nothing(
    folder: Path, numbers: bytes, line: bytes
) -> None:
    forged(folder, numbers, line)

    assert read_mark(folder) == Mark()
