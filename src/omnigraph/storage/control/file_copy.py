"""Whole files of graphs, from one place to another: read and written piece by piece, on a disk or in a store.

F1  A file that has its name is whole. On a disk it is written beside its place, synced in full durability,
    and then renamed; a store shows no object before its last part.
F2  A file that turns out to be another one than was expected never gets its name.
F3  Of a file no more than a few pieces are in memory, however large it is.
F4  Nothing is written through a link below the root.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Protocol

import xxhash

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.regular_file import open_regular
from omnigraph.storage.control.durability import Durability, FolderSync, sync_descriptor, sync_path
from omnigraph.storage.control.links import refuse_link_on
from omnigraph.storage.control.object_store import ObjectStore, list_sizes
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.control.stored_files import stored_files
from omnigraph.storage.control.uri import GraphRoot, is_temporary
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import check_relative_path

PIECE_BYTES = 8 * 1024 * 1024  # a store takes at least 5 MiB at a time, and at most 10,000 times
PIECES_AT_ONCE = 2  # of one file, on their way to a store


class FilePlace(Protocol):
    """The files below one root by their paths. Each method may raise `StorageError`."""

    def lengths(self) -> dict[str, int]:
        """Return the length of every file; those that are still being written are left out."""

    def everything(self) -> dict[str, bool]:
        """Return all that is there but folders, unfinished files included, and whether it is a link."""

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yield the content of a file; a missing one is an error of kind `not_found`."""

    def write(self, path: str, pieces: Iterator[bytes]) -> None:
        """Create or replace a file by what is yielded; what the iterator raises leaves nothing (F1, F2)."""

    def finish(self, paths: Iterable[str]) -> None:
        """Wait until files are on the disk with their names, whoever has written them."""


def file_place(root: GraphRoot, durability: Durability = Durability.PROCESS) -> FilePlace:
    """Return the files below a root."""
    return _Disk(Path(root.uri), durability) if root.is_local else _Store(root)


def copy_file(
    source: FilePlace, target: FilePlace, path: str, *, length: int, expected: FileSum | None
) -> int:
    """Copy a file, compared on its way with its length and, where one was recorded, its checksum (F2).

    Returns how many bytes were copied.

    Raises:
        GraphDamaged: the source's file is not what its commit wrote.
        StorageError: a store failed; kind `not_found` if the file is gone from the source.
    """
    target.write(path, _compared(source.pieces(path), path, length, expected))
    return length


def checksum_of(place: FilePlace, path: str) -> str:
    """Return the checksum of a file, as commits record it.

    Raises:
        StorageError: it cannot be read; kind `not_found` if it is not there.
    """
    digest = xxhash.xxh3_64()
    for piece in place.pieces(path):
        digest.update(piece)
    return digest.hexdigest()


def _compared(pieces: Iterator[bytes], path: str, length: int, expected: FileSum | None) -> Iterator[bytes]:
    digest, found = xxhash.xxh3_64(), 0
    for piece in pieces:
        digest.update(piece)
        found += len(piece)
        yield piece
    if found != length:
        raise _damaged(path, f"has {found} bytes instead of {length}")
    if expected is not None and expected.checksum != digest.hexdigest():
        raise _damaged(path, "does not hold what its commit wrote")


def _damaged(path: str, reason: str) -> GraphDamaged:
    return GraphDamaged(file=path, reason=reason, dataset=path.partition("/data/")[0])


class _Disk:
    """A folder."""

    def __init__(self, root: Path, durability: Durability) -> None:
        self._root = root
        self._is_synced = durability is Durability.FULL
        self._folders: set[Path] = set()
        self._written: set[Path] = set()

    def lengths(self) -> dict[str, int]:
        try:
            return dict(self._walk())
        except OSError as error:
            raise storage_error(f"list {self._root}", error) from error

    def _walk(self) -> Iterator[tuple[str, int]]:
        for folder, _, names in os.walk(self._root, onerror=_unless_missing):
            for name in names:
                path = Path(folder, name)
                with suppress(FileNotFoundError):  # removed since
                    if not is_temporary(name):
                        yield str(path.relative_to(self._root)), path.stat().st_size

    def everything(self) -> dict[str, bool]:
        return {path: file.is_link for path, file in stored_files(GraphRoot(str(self._root), True)).items()}

    def pieces(self, path: str) -> Iterator[bytes]:
        try:
            with open_regular(self._at(path)) as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
        except OSError as error:
            raise storage_error(f"read '{path}'", error) from error

    def write(self, path: str, pieces: Iterator[bytes]) -> None:
        place = self._at(path)
        temporary = place.with_name(f"{place.name}#{1 + secrets.randbelow(10**9)}")
        self._refuse_links(place.parent)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                if self._is_synced:
                    sync_descriptor(file.fileno())
            temporary.replace(place)
        except OSError as error:
            raise storage_error(f"write '{path}'", error) from error
        finally:
            with suppress(FileNotFoundError, NotADirectoryError):  # then it was never made
                temporary.unlink()
        self._folders.add(place.parent)
        self._written.add(place)

    def _refuse_links(self, folder: Path) -> None:
        """Refuse to write behind a link (F4); a folder that was written to has been looked at."""
        if folder not in self._folders and folder != self._root:
            refuse_link_on(self._root, str(folder.relative_to(self._root)))

    def finish(self, paths: Iterable[str]) -> None:
        if not self._is_synced:
            return
        places = [self._at(path) for path in paths]
        try:
            for place in places:
                if place not in self._written and place.is_file():  # of a run that died, or synced nothing
                    with suppress(FileNotFoundError):  # removed since
                        sync_path(place)
            folders = {place.parent for place in places}
            FolderSync(self._root).sync(sorted(folder for folder in folders if folder.is_dir()))
        except OSError as error:
            raise storage_error(f"sync the files of {self._root}", error) from error

    def _at(self, path: str) -> Path:
        """Return the path of a file; its name may come from a version file, so it is checked first."""
        return self._root / check_relative_path(path, "a version")


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


class _Store:
    """A prefix in a store."""

    def __init__(self, root: GraphRoot) -> None:
        self._root = root
        self._objects = ObjectStore(root)

    def lengths(self) -> dict[str, int]:
        return list_sizes(self._root)

    def everything(self) -> dict[str, bool]:
        return dict.fromkeys(list_sizes(self._root), False)

    def pieces(self, path: str) -> Iterator[bytes]:
        return self._objects.read_pieces(check_relative_path(path, "a version"), PIECE_BYTES)

    def write(self, path: str, pieces: Iterator[bytes]) -> None:
        name = check_relative_path(path, "a version")
        first, second = next(pieces, b""), next(pieces, None)
        # Without a second piece the file was read and compared to its end: it is one request.
        content = first if second is None else chain((first, second), pieces)
        self._objects.write_pieces(name, content, piece_bytes=PIECE_BYTES, pieces_at_once=PIECES_AT_ONCE)

    def finish(self, paths: Iterable[str]) -> None:
        """Nothing: a store has no names without content."""
