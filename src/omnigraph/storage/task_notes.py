"""Notes that tasks leave of the files they write, for a driver that never hears of them otherwise.

A task that is cancelled, fails, or is beaten by another attempt of itself reports nothing, and what it wrote
would lie about until cleanup comes.

O1  A file is noted as soon as its name is known, and before anybody else is told of it.
O2  On a disk a task holds a lock as long as it writes; the system lets go when the task dies. Who waits for
    all of them, and then reads the notes, has seen every file.
O3  A task that was asked to stop begins no further file; the one that it writes gets its note.
O4  When the operation has ended its notes are gone, and on a disk a task that comes later finds no place to
    write one: it fails before its first file.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import SparkUnavailable, StorageError
from omnigraph.storage.durability import Durability
from omnigraph.storage.locks import wait_for_lock, wait_until_free
from omnigraph.storage.object_store import StorageAdapter, open_adapter
from omnigraph.storage.os_errors import storage_error
from omnigraph.storage.uri import GraphRoot

STOP = "stop"
WAIT_S = 10.0  # a cancelled task has ended by itself or is killed by then; a file takes less than a second
_LOCK, _NOTE, _UNFINISHED = ".lock", ".json", ".part"


@dataclass(frozen=True, slots=True)
class TaskNotes:
    """Where the tasks of one operation leave their notes: a folder below the graph root, which all see."""

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
        """Live as a task that writes, for the time of a block (O2).

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
        """Go on only if nobody asked to stop (O3).

        Raises:
            SparkUnavailable: the operation was cancelled.
        """
        if self._adapter().exists(f"{self.folder}/{STOP}"):
            raise SparkUnavailable("the operation was cancelled")

    def note(self, paths: Sequence[str]) -> None:
        """Tell of files that were written (O1).

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
        """Ask all tasks to stop, and wait for those that live, as far as that can be seen (O2, O3).

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
                raise StorageError("a task that was asked to stop still writes", kind="transient")

    def files(self) -> frozenset[str]:
        """Return all files that tasks have told of.

        Raises:
            StorageError: a note cannot be read.
        """
        adapter = self._adapter()
        notes = [name for name in adapter.list_dir(self.folder) if name.endswith(_NOTE)]
        return frozenset(
            str(path) for name in notes for path in json.loads(adapter.read_text(f"{self.folder}/{name}"))
        )

    @property
    def _place(self) -> Path | None:
        """The folder on a disk; none in an object store, where there are neither folders nor locks."""
        root = GraphRoot.parse(self.root)
        return Path(root.child(self.folder)) if root.is_local else None

    def _adapter(self) -> StorageAdapter:
        return open_adapter(GraphRoot.parse(self.root), Durability.PROCESS)
