"""Control files on a local disk.

L1  A reader sees the old text of a file or the new one, never a part.
L2  Of two creators one wins, and the other is told.
L3  A text is on the disk, with the folders that lead to it, before the call returns (full durability).
L4  *Missing* is said only when the system says so; every other failure is raised.
L5  Nothing is read, written or removed through a link below the root (`links`).

Texts are staged in `name#<digits>`. Such names are invisible to listings and cannot be addressed, so what a
crash leaves of them does no harm.
"""

import hashlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from omnigraph.core.errors import StorageError
from omnigraph.core.regular_file import read_control_file
from omnigraph.storage.control.durability import Durability, FolderSync, sync_descriptor, sync_path
from omnigraph.storage.control.links import refuse_link_on
from omnigraph.storage.control.locks import wait_for_lock
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.control.uri import is_temporary, name_parts

ATTEMPTS_MAX = 100  # at something that only another process working in the same folder can disturb
SWAP_LOCK_WAIT_S = 30.0  # a compare-and-swap takes milliseconds: a longer wait means a stopped holder

_SWAP_LOCK_SUFFIX = "#0"  # shaped like that of a temporary file, which never has this number


class LocalFiles:
    """The storage adapter of graphs on a disk; names are relative to the graph root, with slashes."""

    def __init__(self, root: Path, durability: Durability) -> None:
        """Take the graph root, which need not exist yet."""
        self._root = root
        self._is_synced = durability is Durability.FULL
        self._folders = FolderSync(root)
        self._file_fsyncs = 0
        self._count_lock = threading.Lock()

    @property
    def fsyncs(self) -> int:
        """How many files and folders were synced so far, for tests and benches."""
        return self._file_fsyncs + self._folders.fsyncs

    def read_text(self, name: str) -> str:
        """Return a file's text.

        Raises:
            StorageError: it is missing (kind `not_found`), or cannot be read.
        """
        with _translated("read", name):
            return _decode(name, read_control_file(self._path(name)))

    def read_texts(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return the texts of several files by name, `None` where there is no such file (L4)."""
        return {name: self.read_text_if_exists(name) for name in names}

    def read_text_if_exists(self, name: str) -> str | None:
        """Return a file's text, or `None` if there is no such file (L4)."""
        path = self._path(name)
        with _translated("read", name):
            try:
                return _decode(name, read_control_file(path))
            except FileNotFoundError:
                return None

    def write_text(self, name: str, text: str) -> None:
        """Replace or create a file (L1, L3)."""
        path = self._path(name)
        with _translated("write", name), self._staged(path, text) as staged:
            staged.replace(path)
            self._sync_folder(path.parent)

    def write_text_unsynced(self, name: str, text: str) -> None:
        """Replace or create a file (L1), visible to every process of the host; a power cut may lose it."""
        path = self._path(name)
        with _translated("write", name), self._staged(path, text, is_synced=False) as staged:
            staged.replace(path)

    def write_text_if_absent(self, name: str, text: str) -> bool:
        """Create a file; false if it exists, and its text is then untouched (L2)."""
        path = self._path(name)
        with _translated("create", name), self._staged(path, text) as staged:
            try:
                path.hardlink_to(staged)
            except FileExistsError:
                return False
            self._sync_folder(path.parent)
            return True

    def exists(self, name: str) -> bool:
        """Say whether there is a file of this name, or a folder with a file somewhere in it."""
        path = self._path(name)
        with _translated("look for", name):
            try:
                return not stat.S_ISDIR(path.stat().st_mode) or _holds_a_file(path)
            except FileNotFoundError:
                return False

    def rename_text(self, source: str, target: str) -> None:
        """Give a file another name, replacing what was there, atomically."""
        old, new = self._path(source), self._path(target)
        with _translated("rename", source):
            self._make_folder(new.parent)
            old.replace(new)
            self._sync_folder(new.parent)
            if old.parent != new.parent:
                self._sync_folder(old.parent)

    def delete(self, name: str) -> None:
        """Remove a file for good; success if it is missing."""
        path = self._path(name)
        with _translated("delete", name):
            try:
                path.unlink()
            except FileNotFoundError:
                return
            self._sync_folder(path.parent)

    def discard(self, name: str) -> None:
        """Remove a file that does no harm if a power cut brings it back, without the cost of a sync."""
        with _translated("delete", name):
            self._path(name).unlink(missing_ok=True)

    def list_dir(self, name: str) -> list[str]:
        """Return the names of the files right in a folder, unordered; none if the folder is missing (L4)."""
        path = self._folder(name)
        with _translated("list", name):
            try:
                with os.scandir(path) as entries:
                    return [
                        entry.name for entry in entries if not is_temporary(entry.name) and _is_listed(entry)
                    ]
            except FileNotFoundError:
                return []

    def list_lengths(self, name: str) -> dict[str, int]:
        """Return the files right in a folder by name, each with its length in bytes (L4)."""
        lengths = {}
        for file in self.list_dir(name):
            with _translated("list", name), suppress(FileNotFoundError):  # removed since
                lengths[file] = (self._path(name) / file).stat().st_size
        return lengths

    def delete_prefix(self, name: str) -> None:
        """Remove a folder and all it holds, temporary files included; not atomic, and safe to repeat."""
        path = self._folder(name)
        with _translated("delete", name):
            _remove_tree(path)
            if path.parent.is_dir():
                self._sync_folder(path.parent)

    def read_text_versioned(self, name: str) -> tuple[str, str] | None:
        """Return a file's text and the token of that text, or `None` if there is no such file."""
        text = self.read_text_if_exists(name)
        return None if text is None else (text, _token(text))

    def write_text_if_match(self, name: str, text: str, token: str) -> bool:
        """Replace a file if it still has the text that the token was given for; false if not.

        This holds among all writers that use this method, in every process of the host.
        """
        with self._matching(name, token) as is_same:
            if is_same:
                self.write_text(name, text)
            return is_same

    def delete_if_match(self, name: str, token: str) -> bool:
        """Remove a file for good if it still has the text that the token was given for; false if not.

        Nothing is taken from whoever replaces it under a condition at the same time, in any process.
        """
        with self._matching(name, token) as is_same:
            if is_same:
                self.delete(name)
            return is_same

    @contextmanager
    def _matching(self, name: str, token: str) -> Iterator[bool]:
        """Keep others from replacing a file under a condition; say whether it has the text of a token."""
        path = self._path(name)
        try:
            lock = wait_for_lock(path.with_name(path.name + _SWAP_LOCK_SUFFIX), SWAP_LOCK_WAIT_S)
        except FileNotFoundError:
            yield False  # not even the folder is there
            return
        except OSError as error:
            raise storage_error(f"lock '{name}'", error) from error
        if lock is None:
            raise StorageError(f"'{name}' is locked by another process, which is stuck", kind="transient")
        try:
            current = self.read_text_if_exists(name)
            yield current is not None and _token(current) == token
        finally:
            lock.release(remove=True)

    def _path(self, name: str) -> Path:
        """Return the path of a file; the folders that lead to it are no links (L5)."""
        *folders, _ = parts = name_parts(name)
        if folders:
            refuse_link_on(self._root, "/".join(folders))
        return self._root.joinpath(*parts)

    def _folder(self, name: str) -> Path:
        """Return the path of a folder, which is no link either (L5)."""
        parts = name_parts(name)
        refuse_link_on(self._root, name)
        return self._root.joinpath(*parts)

    @contextmanager
    def _staged(self, path: Path, text: str, *, is_synced: bool = True) -> Iterator[Path]:
        """Yield a temporary file beside the path, synced first; it is removed unless it was renamed."""
        staged, descriptor = self._open_temporary(path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                file.flush()
                if self._is_synced and is_synced:
                    sync_descriptor(descriptor)
                    with self._count_lock:
                        self._file_fsyncs += 1
            yield staged
        finally:
            with suppress(FileNotFoundError):
                staged.unlink()

    def _open_temporary(self, path: Path) -> tuple[Path, int]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for _ in range(ATTEMPTS_MAX):
            staged = path.with_name(f"{path.name}#{1 + secrets.randbelow(10**9)}")
            try:
                return staged, os.open(staged, flags, 0o666)
            except FileExistsError:
                continue  # a chance of one in a billion; the next number is free
            except FileNotFoundError:
                self._make_folder(path.parent)
        raise StorageError(f"the folder of '{path.name}' keeps being removed", kind="transient")

    def _make_folder(self, folder: Path) -> None:
        # From the root's own entry downwards the folders are synced with what is written into them.
        missing_above_root = [parent for parent in self._root.parents if not parent.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        if self._is_synced:
            for made in missing_above_root:
                sync_path(made.parent)

    def _sync_folder(self, folder: Path) -> None:
        if self._is_synced:
            self._folders.sync([folder])


def _is_listed(entry: os.DirEntry[str]) -> bool:
    """Return whether a reader should see an entry: a file, or what takes the place of one."""
    return entry.is_file() or (not entry.is_dir() and os.path.exists(entry.path))  # noqa: PTH110 - of an entry


def _holds_a_file(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                with suppress(FileNotFoundError):  # removed since: others in the same folder are still there
                    if _holds_a_file(Path(entry.path)):
                        return True
            elif not is_temporary(entry.name):
                return True
    return False


def _remove_tree(folder: Path) -> None:
    for _ in range(ATTEMPTS_MAX):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            if not folder.exists():
                return
            continue  # another process is removing it too
        return
    raise StorageError(f"'{folder.name}' keeps being refilled while it is removed", kind="transient")


def _token(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise StorageError(f"'{name}' is not UTF-8 text", kind="permanent") from error


@contextmanager
def _translated(verb: str, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(f"{verb} '{name}'", error) from error
