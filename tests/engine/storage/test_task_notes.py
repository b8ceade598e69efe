"""What tasks note of the files they write."""

import shutil
import threading
from pathlib import Path

import pytest

from omnigraph.core.errors import SparkUnavailable, StorageError
from omnigraph.storage.tables.task_notes import TaskNotes
from tests.support.seam import patched


@pytest.fixture
def notes(tmp_path: Path) -> TaskNotes:
    made = TaskNotes(str(tmp_path), "__spool_x/notes")
    made.begin()
    return made


def written(notes: TaskNotes, name: str) -> str:
    """Return the path of a file that a task would write into a table on a branch."""
    return f"{notes.root}/nodes/0000000000000001-0000000000000009/tree/review-01/{name}"


def test_everything_noted_is_found(notes: TaskNotes) -> None:
    assert notes.files() == frozenset()

    data, places, deletion = (
        written(notes, name) for name in ("data/a.lance", "data/b.lance", "_deletions/c.arrow")
    )
    notes.note([data, places])
    notes.note([deletion])

    assert notes.files() == {data, places, deletion}


def test_a_task_that_was_asked_to_stop_does(notes: TaskNotes) -> None:
    with notes.writing():
        notes.check()
        notes.stop(waits=False)
        with pytest.raises(SparkUnavailable, match="cancelled"):
            notes.check()


def test_without_a_task_nothing_is_written(notes: TaskNotes, tmp_path: Path) -> None:
    notes.stop(waits=True)

    assert list((tmp_path / "__spool_x/notes").iterdir()) == []


def test_whoever_waits_sees_what_the_last_task_noted(notes: TaskNotes) -> None:
    begun, asked = threading.Event(), threading.Event()

    def work() -> None:
        with notes.writing():
            begun.set()
            asked.wait()
            while True:
                try:
                    notes.check()
                except SparkUnavailable:
                    break
            notes.note([written(notes, "data/last.lance")])

    task = threading.Thread(target=work)
    task.start()
    begun.wait()
    asked.set()

    notes.stop(waits=True)

    assert notes.files() == {written(notes, "data/last.lance")}
    task.join()


def test_a_task_that_does_not_end_is_told_of(notes: TaskNotes, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.storage.tables.task_notes.WAIT_S", 0.05)

    with notes.writing(), pytest.raises(StorageError, match="still writing"):
        notes.stop(waits=True)


def test_after_the_end_nobody_begins(notes: TaskNotes, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "__spool_x")

    with pytest.raises(StorageError), notes.writing():
        pytest.fail("it has begun")
    with pytest.raises(StorageError):
        notes.note(["a"])
    assert not (tmp_path / "__spool_x").exists()
