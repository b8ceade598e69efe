"""The files of a graph by their paths below the root, for comparing them: on a disk or in a store."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.regular_file import open_regular, special_kind
from omnigraph.storage.control.object_store import list_sizes, read_bytes
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.sums import sum_file
from omnigraph.storage.files.version_file import VERSIONS_DIR, check_relative_path, version_of_file_name

Found = TypeVar("Found")


class GraphFiles(Protocol):
    """Reads files and their lengths; writes nothing. Each method may raise `StorageError`."""

    def length(self, path: str) -> int | None:
        """Return the length of a file; `None` if it does not exist."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; `None` if it does not exist."""

    def checksum(self, path: str) -> str | None:
        """Return the checksum of a file; `None` if it does not exist, or where no checksums are taken."""

    def newest_version(self, dataset: str) -> int | None:
        """Return the greatest version that a dataset has a file of, readable or not; `None` without any."""

    def sizes(self) -> dict[str, int]:
        """Return the length of every file by its path; links are not followed."""


def graph_files(root: GraphRoot) -> GraphFiles:
    """Return the files of a graph."""
    return _DiskFiles(Path(root.uri)) if root.is_local else _StoreFiles(root)


class _DiskFiles:
    """Files on a local disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def length(self, path: str) -> int | None:
        return _if_there(f"look at '{path}'", lambda: self._at(path).stat().st_size)

    def read(self, path: str) -> bytes | None:
        def content() -> bytes:
            with open_regular(self._at(path)) as file:
                return file.read()

        return _if_there(f"read '{path}'", content)

    def checksum(self, path: str) -> str | None:
        return _if_there(f"read '{path}'", lambda: sum_file(self._at(path))[1])

    def newest_version(self, dataset: str) -> int | None:
        folder = self._root / dataset / VERSIONS_DIR
        names = _if_there(f"list the versions of '{dataset}'", lambda: list(folder.iterdir()))
        return None if names is None else _newest(path.name for path in names)

    def sizes(self) -> dict[str, int]:
        return dict(self._below(""))

    def _below(self, folder: str) -> Iterator[tuple[str, int]]:
        """Yield the files of a folder and of those in it; what goes in the meantime is passed over."""
        listed = _if_there(f"list '{folder}'", lambda: sorted(os.scandir(self._root / folder), key=_name))
        for item in listed or ():
            path = f"{folder}/{item.name}" if folder else item.name
            if item.is_dir(follow_symlinks=False):
                yield from self._below(path)
            elif item.is_file(follow_symlinks=False):
                length = self.length(path)
                if length is not None:
                    yield path, length

    def _at(self, path: str) -> Path:
        """Return the path of a file; its name may come from a version file, so it is checked first.

        Raises:
            FileNotFoundError: there is none.
            GraphDamaged: it is a pipe, a socket or a device, which nobody may open.
        """
        place = self._root / check_relative_path(path, "a version")
        kind = special_kind(place.stat())
        if kind is not None:
            raise GraphDamaged(file=path, reason=f"is {kind}", dataset=path.rpartition("/")[0])
        return place


class _StoreFiles:
    """Objects of a store, listed once; they have no checksums of ours."""

    def __init__(self, root: GraphRoot) -> None:
        self._root = root
        self._sizes: dict[str, int] | None = None

    def length(self, path: str) -> int | None:
        return self._listed().get(path)

    def read(self, path: str) -> bytes | None:
        return read_bytes(self._root, path)

    def checksum(self, path: str) -> str | None:  # noqa: ARG002 - the protocol's
        return None

    def newest_version(self, dataset: str) -> int | None:
        folder = f"{dataset}/{VERSIONS_DIR}/"
        return _newest(path.removeprefix(folder) for path in self._listed() if path.startswith(folder))

    def sizes(self) -> dict[str, int]:
        return self._listed()

    def _listed(self) -> dict[str, int]:
        if self._sizes is None:
            self._sizes = list_sizes(self._root)
        return self._sizes


def _if_there(what: str, look: Callable[[], Found]) -> Found | None:
    """Return what is found in a file or folder; none where there is none."""
    try:
        return look()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(what, error) from error


def _name(item: "os.DirEntry[str]") -> str:
    return item.name


def _newest(names: Iterable[str]) -> int | None:
    found = (version_of_file_name(name) for name in names)
    return max((version for version in found if version is not None), default=None)
