"""The files of a graph with their ages, and their removal: on a disk or in a store.

F1  An age is a difference of the caller's clock and the time that the disk or store gives a file. A file that
    was copied is as old as its copy, unless the copy kept the times: doubt makes files younger.
F2  What has gone in between is success, whoever removed it.
F3  Links are listed as what they are and not followed, and nothing behind one is removed.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.links import refuse_link_on
from omnigraph.storage.control.object_store import list_objects, remove_objects
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.control.uri import GraphRoot

REMOVED_AT_ONCE = 1_000  # objects in one request, as many as S3 takes


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file: its length, and when it was written, in microseconds since the epoch; or a link (F3)."""

    size: int
    written_at: int
    is_link: bool = False


def stored_files(root: GraphRoot, folder: str = "") -> dict[str, StoredFile]:
    """Return every file below a folder of a graph, by path below the graph's root (F3).

    Raises:
        StorageError: it cannot be listed.
    """
    if not root.is_local:
        found = list_objects(root, folder)
        return {path: StoredFile(size, _micros(at.timestamp())) for path, (size, at) in found.items()}
    try:
        return dict(_walk(Path(root.uri), folder))
    except OSError as error:
        raise storage_error(f"list '{folder or '.'}'", error) from error


def remove_files(root: GraphRoot, paths: Iterable[str]) -> None:
    """Remove files of a graph by their paths below its root, in this order (F2).

    Raises:
        StorageError: one cannot be removed, or lies behind a link (F3); those before it are gone.
    """
    wanted = list(paths)
    if not root.is_local:
        for start in range(0, len(wanted), REMOVED_AT_ONCE):
            remove_objects(root, wanted[start : start + REMOVED_AT_ONCE])
        return
    safe: set[str] = set()
    for path in wanted:
        folder = path.rpartition("/")[0]
        if folder and folder not in safe:
            refuse_link_on(Path(root.uri), folder)
            safe.add(folder)
        try:
            (Path(root.uri) / path).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"remove '{path}'", error) from error


def remove_emptied(root: GraphRoot, folders: Iterable[str]) -> None:
    """Remove folders of a graph on a disk that hold nothing any more; a store has none.

    One that others fill or remove in between stays as they leave it.
    """
    for folder in folders if root.is_local else ():
        with suppress(OSError, StorageError):
            refuse_link_on(Path(root.uri), folder)
            (Path(root.uri) / folder).rmdir()


def _walk(root: Path, folder: str) -> Iterator[tuple[str, StoredFile]]:
    waiting = [folder]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(root / inside) as entries:
                for entry in entries:
                    path = f"{inside}/{entry.name}" if inside else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    else:
                        with suppress(FileNotFoundError):  # removed since (F2)
                            found = entry.stat(follow_symlinks=False)
                            is_link = entry.is_symlink()
                            yield path, StoredFile(found.st_size, found.st_mtime_ns // 1_000, is_link)
        except (FileNotFoundError, NotADirectoryError):
            continue


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)
