"""The lock of schema changes: one at a time in a graph, whichever branch it is for.

K1  The lock saves work, and no data: a schema is published only on the one that it was planned on, whoever
    holds what.
K2  It is a control object beside those of branches. On a disk its holder is alive while it holds the file
    lock of its operation, on an object store while it counts as a writer; the lock of a dead one is taken by
    the next change, and on a disk removed by the next open for writing.
K3  An exclusive holder keeps branches from being made and deleted.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.commit.parts import Parts, host_name, process_id
from omnigraph.commit.recovery.pending import lock_path
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import SchemaApplyInProgress, StorageError
from omnigraph.core.ids import ulid_millis
from omnigraph.core.values import read_json
from omnigraph.history.branches import SCHEMA_APPLY_LOCK, control_file
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.locks import WriterLock, is_taken

LOCK_FILE = control_file(SCHEMA_APPLY_LOCK)
_KINDS: dict[str, tuple[type, ...]] = {  # of the members: with another one the object is nobody's of ours
    "operation_id": (str,),
    "host": (str,),
    "pid": (int,),
    "started_at": (int,),
    "writer_id": (str, type(None)),
    "is_exclusive": (bool,),
}
TAKES_MAX = 3  # of the lock of a dead holder: others may be doing the same


@dataclass(frozen=True, slots=True)
class SchemaLockHolder:
    """Who changes the schema."""

    operation_id: str
    host: str
    pid: int
    started_at: int
    writer_id: str | None
    is_exclusive: bool

    def to_text(self) -> str:
        """Return the control object."""
        document = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(document, ensure_ascii=False)

    @staticmethod
    def from_text(text: str) -> "SchemaLockHolder | None":
        """Return what a control object says; None for one that nobody of ours wrote."""
        try:
            document = read_json(text)
        except ValueError:
            return None
        if not isinstance(document, dict) or document.keys() != _KINDS.keys():
            return None
        if any(type(document[name]) not in kinds for name, kinds in _KINDS.items()):
            return None
        holder = SchemaLockHolder(**document)
        ids = (holder.operation_id, *([] if holder.writer_id is None else [holder.writer_id]))
        return None if any(ulid_millis(text) is None for text in ids) else holder


def living_holder(parts: Parts) -> SchemaLockHolder | None:
    """Return who is changing the schema now; the lock of a dead one counts for nothing (K2).

    Raises:
        SchemaApplyInProgress: there is a lock that cannot be understood.
        StorageError: the store failed.
    """
    found = parts.adapter.read_text_versioned(LOCK_FILE)
    return None if found is None else _living(parts, found[0])


def remove_dead_lock(parts: Parts) -> None:
    """Remove the lock of a dead holder from a disk; one that cannot be understood or removed stays (K2).

    On an object store nothing is removed on a condition: a late request would take the lock of another.
    """
    if not isinstance(parts.adapter, LocalFiles):
        return
    try:
        found = parts.adapter.read_text_versioned(LOCK_FILE)
        if found is not None and _is_dead(parts, found[0]):
            parts.adapter.delete_if_match(LOCK_FILE, found[1])
    except StorageError as error:
        parts.warn(f"the lock of a dead schema change could not be removed, and does not count: {error}")


@contextmanager
def schema_lock(parts: Parts, *, exclusive: bool) -> Iterator[None]:
    """Keep every other change of the schema out.

    Raises:
        SchemaApplyInProgress: another process is changing the schema.
    """
    folder = parts.local_root
    lock = None if folder is None else WriterLock.acquire(folder / RECOVERY_DIR, parts.new_id)
    try:
        holder = SchemaLockHolder(
            parts.new_id() if lock is None else lock.operation_id,
            host_name(),
            process_id(),
            parts.clock(),
            None if parts.writer is None else parts.writer.writer_id,
            exclusive,
        )
        _take(parts, holder)
        try:
            yield
        finally:
            _release(parts, holder)
    finally:
        if lock is not None:
            _let_go(parts, lock)


def _take(parts: Parts, holder: SchemaLockHolder) -> None:
    text = holder.to_text()
    for _ in range(TAKES_MAX):
        if parts.adapter.write_text_if_absent(LOCK_FILE, text):
            return
        found = parts.adapter.read_text_versioned(LOCK_FILE)
        if found is None:
            continue
        if found[0] == text:
            return  # a repeated request
        living = _living(parts, found[0])
        if living is not None:
            raise SchemaApplyInProgress(_told(living))
        if parts.adapter.write_text_if_match(LOCK_FILE, text, found[1]):
            return
    raise SchemaApplyInProgress("several processes want to change the schema at once: try again")


def _release(parts: Parts, holder: SchemaLockHolder) -> None:
    """Remove our own lock; one that stays is taken by the next change (K2)."""
    try:
        if parts.adapter.read_text_if_exists(LOCK_FILE) == holder.to_text():
            parts.adapter.delete(LOCK_FILE)
    except StorageError as error:
        parts.warn(
            f"the lock of the schema change could not be removed, and does not count any more: {error}"
        )


def _let_go(parts: Parts, lock: WriterLock) -> None:
    """Release the file lock; a file that cannot be removed is litter, and fails no change that has landed."""
    try:
        lock.release(remove=True)
    except Exception as error:  # noqa: BLE001 - only bookkeeping is left
        parts.warn(f"the lock file of {lock.operation_id} could not be removed: {error}")


def _is_dead(parts: Parts, text: str) -> bool:
    """Return whether a lock is of ours, and its holder is dead."""
    return SchemaLockHolder.from_text(text) is not None and _living(parts, text) is None


def _living(parts: Parts, text: str) -> SchemaLockHolder | None:
    holder = SchemaLockHolder.from_text(text)
    if holder is None:
        raise SchemaApplyInProgress(f"{LOCK_FILE} is not the lock of a schema change of this build")
    path = lock_path(parts, holder.operation_id)
    if path is not None:
        return holder if is_taken(path) else None
    if parts.writer is None or holder.writer_id is None:
        return holder
    if holder.writer_id == parts.writer.writer_id:
        return holder
    return None if parts.writer.watch.has_ended(holder.writer_id) else holder


def _told(holder: SchemaLockHolder) -> str:
    return f"process {holder.pid} on {holder.host} is changing the schema: try again when it is done"
