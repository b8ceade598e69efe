"""Existing sidecars, whether their writers are alive, and whose turn it is.

V1  A taken writer lock means alive: nothing of its owner is recovered, repaired or removed. On an object
    store the owner that a sidecar names is alive until its silence has proved the contrary.
V2  A failure to list or read is loud; silence is never taken for absence. A file that is gone when it is read
    was finished by its writer.
V3  On an object store a sidecar changes only by compare-and-swap with what was read. Its owner is whoever may
    go on with it: a healer makes itself the owner first, and a writer or healer that gives up lets go of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.commit.parts import Parts
from omnigraph.commit.sidecar import RECOVERY_DIR, Sidecar
from omnigraph.commit.sidecar_reader import read_sidecar
from omnigraph.core.errors import OmnigraphError, RecoveryRequired, StorageError
from omnigraph.core.failpoint import hit
from omnigraph.history.legacy_lineage import LEGACY_COMMITS
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.locks import HeldLock, is_taken, try_lock
from omnigraph.storage.control.writers import Writer

_running: set[str] = set()
_lock = threading.Lock()


@contextmanager
def running(operation_id: str) -> Iterator[None]:
    """Count an operation as alive for the duration of a block."""
    with _lock:
        _running.add(operation_id)
    try:
        yield
    finally:
        with _lock:
            _running.discard(operation_id)


def is_running(operation_id: str) -> bool:
    """Return whether an operation of this process is inside its commit section."""
    with _lock:
        return operation_id in _running


class SidecarChanged(RecoveryRequired):
    """A sidecar on an object store is gone, or no longer says what was read."""

    def __init__(self, operation_id: str) -> None:
        """Take the operation."""
        super().__init__(operation_id, "another process has taken it over: open the graph again")


@dataclass(frozen=True, slots=True)
class PendingSidecar:
    """One unfinished write, and how to tell whether anybody is working on it.

    That is the path of its writer's lock on a disk; on an object store it is this process as a writer, which
    watches the others (None if it only reads).
    """

    sidecar: Sidecar
    lock_path: Path | None
    writer: Writer | None = None

    @property
    def operation_id(self) -> str:
        """The id of the write."""
        return self.sidecar.operation_id

    @property
    def is_alive(self) -> bool:
        """Whether its writer, or another healer, is active (V1)."""
        if self.lock_path is not None:
            return is_taken(self.lock_path)
        return is_running(self.operation_id) or (self.is_of_others and not self.has_ended)

    @property
    def is_of_others(self) -> bool:
        """Whether another writer of an object store owns it, dead or alive."""
        owner = self.sidecar.owner
        return self.writer is not None and owner is not None and owner != self.writer.writer_id

    @property
    def has_ended(self) -> bool:
        """Whether the other writer that owns it is dead."""
        assert self.writer is not None
        assert self.sidecar.owner is not None
        return self.writer.watch.has_ended(self.sidecar.owner)

    def try_lock(self) -> HeldLock | None:
        """Take the writer's lock if it is free."""
        assert self.lock_path is not None
        return try_lock(self.lock_path)


def list_pending(parts: Parts) -> list[PendingSidecar]:
    """Return every sidecar, oldest first (V2).

    Raises:
        StorageError: the folder or a file cannot be read.
        SidecarCorrupt: a file is not a valid sidecar.
        SidecarTooNew: a newer build wrote one.
    """
    hit("recovery.sidecar_list")
    names = sorted(name for name in parts.adapter.list_dir(RECOVERY_DIR) if name.endswith(".json"))
    pending = []
    for name in names:
        hit("recovery.post_list_pre_read")
        sidecar = reread(parts, f"{RECOVERY_DIR}/{name}")
        if sidecar is not None:
            pending.append(PendingSidecar(sidecar, lock_path(parts, sidecar.operation_id), parts.writer))
    return pending


def reread(parts: Parts, name: str) -> Sidecar | None:
    """Return the current content of a sidecar, or None if it is gone."""
    hit("recovery.sidecar_read")
    text = parts.adapter.read_text_if_exists(name)
    return None if text is None else _read(parts, name, text)


def _read(parts: Parts, name: str, text: str) -> Sidecar:
    return read_sidecar(name, text, lambda: parts.adapter.exists(LEGACY_COMMITS))


def put_new(parts: Parts, sidecar: Sidecar) -> None:
    """Write a sidecar that nobody has seen.

    On an object store it is created only if it is absent: a request that the store acts on late, or twice,
    must not take a claim away (V3).

    Raises:
        StorageError: it is not there, or that is unknown.
    """
    text = sidecar.to_text()
    if parts.local_root is not None:
        parts.adapter.write_text(sidecar.name, text)
        return
    try:
        is_new = parts.adapter.write_text_if_absent(sidecar.name, text)
    except StorageError:
        if parts.adapter.read_text_if_exists(sidecar.name) != text:
            raise
        return  # only the answer was lost
    if not is_new and parts.adapter.read_text_if_exists(sidecar.name) != text:
        raise StorageError(f"'{sidecar.name}' was changed by others", kind="precondition")


def rewrite(parts: Parts, before: Sidecar, after: Sidecar) -> None:
    """Replace a sidecar with what is known since; on an object store only if it is unchanged (V3).

    Without a lock another process may have taken it over and finished it: it must not come back.

    Raises:
        SidecarChanged: another process has finished it, or is working on it.
    """
    if parts.local_root is not None:
        parts.adapter.write_text(after.name, after.to_text())
        return
    found = parts.adapter.read_text_versioned(before.name)
    if found is not None and found[0] == after.to_text() != before.to_text():
        return  # a request of ours whose answer was lost
    is_same = found is not None and _read(parts, before.name, found[0]) == before
    if found is None or not is_same or not _is_replaced(parts, after, found[1]):
        raise SidecarChanged(before.operation_id)


def claim(parts: Parts, sidecar: Sidecar) -> Sidecar:
    """Make this process the owner of a sidecar whose owner is dead, or has let go of it (V3).

    Raises:
        SidecarChanged: another process was faster.
    """
    assert parts.writer is not None, "on a local disk a lock says whose turn it is"
    if sidecar.owner == parts.writer.writer_id:
        return sidecar
    hit("recovery.before_claim")
    claimed = sidecar.owned_by(parts.writer.writer_id)
    rewrite(parts, sidecar, claimed)
    return claimed


def let_go(parts: Parts, operation_id: str) -> None:
    """Let anybody go on with a sidecar that this process owns; what the store refuses is done later (V3)."""
    writer = parts.writer
    if writer is None:
        return

    def release() -> None:
        now = reread(parts, f"{RECOVERY_DIR}/{operation_id}.json")
        if now is not None and now.owner == writer.writer_id and not is_running(operation_id):
            rewrite(parts, now, now.owned_by(None))

    try:
        release()
    except SidecarChanged:
        return
    except OmnigraphError as error:
        parts.warn(f"sidecar {operation_id} could not be let go, which is tried again: {error}")
        writer.owe(release)


def bind_to_go_back(parts: Parts, before: Sidecar, after: Sidecar) -> None:
    """Replace a sidecar with one that goes back after a failed sync, even if nothing can be synced.

    Even unsynced it binds every process that sees the files of the write as they were written. A power cut
    that loses it also loses what was not synced of those files.

    Raises:
        StorageError: it could not be written at all.
        SidecarChanged: another process has finished it, or is working on it.
    """
    try:
        rewrite(parts, before, after)
    except StorageError:
        if not isinstance(parts.adapter, LocalFiles):
            raise
        parts.adapter.write_text_unsynced(after.name, after.to_text())


def _is_replaced(parts: Parts, after: Sidecar, token: str) -> bool:
    """Return whether the new text is in place: an answer may be lost, and the repeated request refused."""
    is_done = parts.adapter.write_text_if_match(after.name, after.to_text(), token)
    return is_done or parts.adapter.read_text_if_exists(after.name) == after.to_text()


def lock_path(parts: Parts, operation_id: str) -> Path | None:
    """Return the lock file of an operation on a local disk."""
    root = parts.local_root
    return None if root is None else root / RECOVERY_DIR / f"{operation_id}.lock"


def remove_litter(parts: Parts) -> None:
    """Remove lock files without a sidecar: left by a crash just before phase A, or inside phase D."""
    root = parts.local_root
    if root is None:
        return
    names = set(parts.adapter.list_dir(RECOVERY_DIR))
    for name in sorted(name for name in names if name.endswith(".lock")):
        path = root / RECOVERY_DIR / name
        held = try_lock(path)
        if held is None:
            continue
        # Checked again under the lock: a writer may have written its sidecar since the listing.
        is_litter = not parts.adapter.exists(f"{RECOVERY_DIR}/{path.stem}.json")
        held.release(remove=is_litter)
