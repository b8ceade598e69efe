"""Notes that tasks leave about the files they write, for a driver that would not hear of them otherwise.

A task that is cancelled, fails, or is beaten by another attempt of itself reports nothing, and what it wrote
would remain until a cleanup.

O1  A file is noted as soon as its name is known, and before the file is reported anywhere else.
O2  On a disk a task holds a lock while it writes; the system releases it when the task dies. A driver that
    waits for all of these locks and then reads the notes has seen every file.
O3  A task that was asked to stop begins no further file; the one that it is writing gets its note.
O4  When the operation has ended its notes are gone, and on a disk a task that comes later finds no place to
    write one: it fails before its first file.
"""

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import InvariantViolation, SparkUnavailable, StorageError
from omnigraph.core.values import read_json
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.locks import wait_for_lock, wait_until_free
from omnigraph.storage.control.object_store import StorageAdapter, open_adapter
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import check_ref, check_relative_path

STOP = "stop"
WAIT_S = 10.0  # a cancelled task has ended by itself or is killed by then; a file takes less than a second
_LOCK, _NOTE, _UNFINISHED = ".lock", ".json", ".part"
# Data and deletion files of a table, or of a ref of it.
_WRITTEN = re.compile(
    r"(?:nodes|edges)/[0-9a-f]+-[0-9a-f]+(?:/tree/([^/]+))?/(?:data|_deletions)/[A-Za-z0-9._-]+"
)


@dataclass(frozen=True, slots=True)
class TaskNotes:
    """Where the tasks of one operation leave their notes: a folder below the graph root, visible to all."""

    root: str
    folder: str

    def begin(self) -> None:
        """Make the place for notes, before the first task.

        Raises:
            StorageError: it cannot be made.
        """
        place = self._place
        if place is not None:
            try:
                place.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise storage_error(f"make '{self.folder}'", error) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count as a writing task for the duration of a block (O2).

        Raises:
            StorageError: the operation has ended (O4).
        """
        place = self._place
        if place is None:
            yield
            return
        path = place / f"{uuid.uuid4()}{_LOCK}"
        try:
            lock = wait_for_lock(path, WAIT_S)
        except OSError as error:
            raise storage_error(f"lock '{path.name}'", error) from error
        assert lock is not None, "nobody else knows the name"
        try:
            yield
        finally:
            lock.release(remove=True)

    def check(self) -> None:
        """Go on only if no stop was requested (O3).

        Raises:
            SparkUnavailable: the operation was cancelled.
        """
        if self._adapter().exists(f"{self.folder}/{STOP}"):
            raise SparkUnavailable("the operation was cancelled")

    def note(self, paths: Sequence[str]) -> None:
        """Note files that were written (O1).

        Raises:
            StorageError: the note cannot be written, also because the operation has ended (O4).
        """
        name, text, place = str(uuid.uuid4()), json.dumps(list(paths)), self._place
        if place is None:
            self._adapter().write_text(f"{self.folder}/{name}{_NOTE}", text)
            return
        unfinished = place / f"{name}{_UNFINISHED}"
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.rename(place / f"{name}{_NOTE}")
        except OSError as error:
            raise storage_error(f"write '{self.folder}/{name}{_NOTE}'", error) from error

    def stop(self, *, waits: bool) -> None:
        """Ask all tasks to stop, and wait for those still alive, as far as that can be seen (O2, O3).

        Raises:
            StorageError: they cannot be asked, or not all of them have ended.
        """
        adapter = self._adapter()
        if not adapter.list_dir(self.folder):
            return  # no task has begun to write
        adapter.write_text(f"{self.folder}/{STOP}", "")
        place, deadline = self._place, boot_clock() + WAIT_S
        for name in adapter.list_dir(self.folder) if waits else ():
            if place is None or not name.endswith(_LOCK):
                continue
            if not wait_until_free(place / name, max(0.0, deadline - boot_clock())):
                raise StorageError("a task that was asked to stop is still writing", kind="transient")

    def files(self) -> frozenset[str]:
        """Return all files that tasks have noted.

        Raises:
            StorageError: a note cannot be read.
            InvariantViolation: a note names what no task writes; no file may be removed on its word.
        """
        adapter = self._adapter()
        notes = [f"{self.folder}/{name}" for name in adapter.list_dir(self.folder) if name.endswith(_NOTE)]
        return frozenset(path for note in notes for path in self._noted(note, adapter.read_text(note)))

    def _noted(self, note: str, text: str) -> list[str]:
        prefix = GraphRoot.parse(self.root).child("")
        try:
            paths = read_json(text)
        except ValueError as error:
            raise InvariantViolation(f"'{note}' is not the note of a task") from error
        is_list = isinstance(paths, list) and all(isinstance(path, str) for path in paths)
        if not is_list or not all(_is_written(path, prefix) for path in paths):
            raise InvariantViolation(f"'{note}' names what no task writes: {text[:200]}")
        return list(paths)

    @property
    def _place(self) -> Path | None:
        """The folder on a disk; none in an object store, where there are neither folders nor locks."""
        root = GraphRoot.parse(self.root)
        return Path(root.child(self.folder)) if root.is_local else None

    def _adapter(self) -> StorageAdapter:
        return open_adapter(GraphRoot.parse(self.root), Durability.PROCESS)


def _is_written(path: str, prefix: str) -> bool:
    """Return whether a path is that of a file that tasks write into a table of this graph."""
    found = _WRITTEN.fullmatch(path.removeprefix(prefix)) if path.startswith(prefix) else None
    if found is None:
        return False
    check_relative_path(found[0], "a note of a task")
    if found[1] is not None:
        check_ref(found[1], "a note of a task")
    return True
