"""What is written stays written when the power fails.

Y1  In full durability on a local disk, a file that `sync` was given, and every folder on the way to it from
    the graph root, is on the disk when `sync` returns.
Y2  In process durability, and on object stores, nothing is synced: a killed process loses nothing it wrote.
Y3  A file whose sync failed is never synced again: the system may have dropped what it could not write, and a
    second sync would succeed over the loss. An operation that needs such a file fails.
Y4  On a local disk, in both settings, staged files and those of tables are whole when `sync` returns: what is
    gone or cut off is an error. Files of a manifest are looked at by its publish.
"""

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Literal

from omnigraph.core.environment import word_setting
from omnigraph.core.errors import StorageError
from omnigraph.core.failpoint import InjectedFault, hit
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.files.whole import check_whole

ENVIRONMENT = "OMNIGRAPH_DURABILITY"
FILES_SYNCED_ONE_BY_ONE_MAX = 64  # at about 1 ms a file; above this, one sync of the file system is cheaper
SyncStage = Literal["staged", "table", "manifest"]

_FAILPOINTS: dict[SyncStage, str] = {
    "staged": "durability.pre_staged_sync",
    "table": "durability.pre_table_sync",
    "manifest": "durability.pre_manifest_sync",
}


class Durability(StrEnum):
    """What an acknowledged write survives."""

    FULL = "full"  # a power cut
    PROCESS = "process"  # a killed process


def setting_from_environment() -> Durability:
    """Return what `OMNIGRAPH_DURABILITY` asks for: `full` if it is unset, or malformed (with a warning)."""
    return word_setting(ENVIRONMENT, Durability.FULL)


class SyncFailed(StorageError):
    """Files could not be made durable; what they hold may be lost although it can still be read (Y3)."""


class FolderSync:
    """Makes folder entries durable, counting what it does.

    A folder seen for the first time may be new, made by this process or by one that died, so the folders
    above it are synced too, up to the root. It is remembered by its inode: a recreated folder is new.
    """

    def __init__(self, root: Path | None, tries: "Tries | None" = None) -> None:
        """Take the graph root; without one, nothing above a folder itself is synced."""
        self.fsyncs = 0
        self._root = root
        self._tries = tries or Tries()
        self._known: set[tuple[Path, int]] = set()
        self._lock = threading.Lock()

    def sync(self, folders: Iterable[Path]) -> None:
        """Sync each folder, and the folders above those not seen before.

        Raises:
            OSError: the system failed.
        """
        wanted: dict[Path, None] = {}
        seen: list[tuple[Path, int]] = []
        for folder in folders:
            wanted[folder] = None
            for parent in self._unknown_above(folder, seen):
                wanted[parent] = None
        for folder in wanted:
            self._sync_one(folder)
        with self._lock:
            self._known.update(seen)

    def _unknown_above(self, folder: Path, seen: list[tuple[Path, int]]) -> Iterator[Path]:
        if self._root is None:
            return
        # Ends one above the root: an init that died may have left the root's own entry unsynced.
        while folder.is_relative_to(self._root):
            key = (folder, folder.stat().st_ino)
            if key in self._known:
                return
            seen.append(key)
            folder = folder.parent
            yield folder

    def _sync_one(self, folder: Path) -> None:
        try:
            self._tries.sync(folder)
        except PermissionError:
            if self._root is None or folder.is_relative_to(self._root):
                raise
            return  # a folder above the root that we may not read is not one that we made
        with self._lock:
            self.fsyncs += 1


class Syncer:
    """Syncs the files that lance wrote (Y1); `fsyncs` and `syncfs` count the calls, for tests and benches."""

    def __init__(self, durability: Durability, is_local: bool, root: str | None = None) -> None:
        """Take the setting and the place; new folders are synced up to `root`, where it is given."""
        self.is_active = is_local and durability is Durability.FULL
        self._is_local = is_local
        self.syncfs = 0
        self._file_fsyncs = 0
        self._tries = Tries()
        self._folders = FolderSync(None if root is None else Path(root), self._tries)
        self._lock = threading.Lock()

    @property
    def fsyncs(self) -> int:
        """How many files and folders were synced one by one."""
        return self._file_fsyncs + self._folders.fsyncs

    def sync(self, files: Iterable[str], *, stage: SyncStage) -> None:
        """Make files and the folders that lead to them durable; those of a manifest may be gone.

        Raises:
            StorageError: a staged file is not whole (Y4).
            SyncFailed: a file of a table is not, or the system failed, now or earlier (Y3): how much is on
                the disk is unknown.
        """
        if not self._is_local:
            return
        names = list(dict.fromkeys(files))
        if stage == "staged":
            check_whole(names)
        elif stage == "table":
            try:
                # A version in between may have been cleaned up by whoever committed behind our back.
                check_whole(name for name in names if not name.endswith(".manifest") or Path(name).exists())
            except StorageError as error:
                raise SyncFailed(f"{error}", kind=error.kind) from error
        if not self.is_active:
            return
        paths = [Path(name) for name in names]
        try:
            hit(_FAILPOINTS[stage])
            if len(paths) > FILES_SYNCED_ONE_BY_ONE_MAX and _can_sync_whole_file_systems():
                self._sync_file_systems(paths)
            else:
                self._sync_one_by_one(paths)
        except OSError as error:
            reason = storage_error(f"sync {len(paths)} {stage} files", error)
            raise SyncFailed(f"{reason}", kind=reason.kind) from error
        except InjectedFault as fault:
            raise SyncFailed(f"{fault}", kind="permanent") from fault

    def _sync_one_by_one(self, paths: list[Path]) -> None:
        for path in paths:
            try:
                self._tries.sync(path)
            except FileNotFoundError:
                continue
            with self._lock:
                self._file_fsyncs += 1
        self._folders.sync(
            folder for folder in dict.fromkeys(path.parent for path in paths) if folder.is_dir()
        )

    def _sync_file_systems(self, paths: list[Path]) -> None:
        folders = {path.parent for path in paths}
        one_folder_each = {folder.stat().st_dev: folder for folder in folders if folder.is_dir()}
        for folder in one_folder_each.values():
            self._tries.once(folder.stat().st_dev, partial(_sync_file_system, folder))
            with self._lock:
                self.syncfs += 1


class Tries:
    """Allows each thing to be synced until its sync has failed once (Y3)."""

    def __init__(self) -> None:
        self._failed: set[object] = set()
        self._lock = threading.Lock()

    def sync(self, path: Path) -> None:
        """Sync a file or a folder."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            number = os.fstat(descriptor).st_ino  # a file recreated under its name has another
            self.once((path, number), lambda: sync_descriptor(descriptor))
        finally:
            os.close(descriptor)

    def once(self, key: object, sync: Callable[[], None]) -> None:
        """Run a sync, unless an earlier one failed.

        Raises:
            OSError: this sync failed, or an earlier one did.
        """
        with self._lock:
            if key in self._failed:
                raise OSError(errno.EIO, "an earlier sync failed, and what was written may be lost")
        try:
            sync()
        except OSError:
            with self._lock:
                self._failed.add(key)
            raise


def sync_path(path: Path) -> None:
    """Wait until a file's content, or a folder's entries, are on the disk.

    Raises:
        OSError: the system failed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int) -> None:
    """Wait until what was written through a descriptor is on the disk.

    Raises:
        OSError: the system failed.
    """
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # plain fsync leaves the data in the drive's cache there
    else:
        os.fsync(descriptor)


def _can_sync_whole_file_systems() -> bool:
    return sys.platform != "darwin"  # sync() does not wait there, so files go one by one


def _sync_file_system(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        os.sync()
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)
