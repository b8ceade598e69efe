"""Derived arrays kept in files, so that a restart reads instead of building.

F1  A file is a guess that must prove itself: format, name, length and checksums are checked before any use,
    and whatever does not fit, or cannot be read, counts as absent.
F2  Files are written beside their place and renamed; no reader sees half a file.
F3  Nothing here fails a query: a directory that is missing, full or read-only only costs time.
F4  All graphs together stay below a number of bytes; the least recently used goes first.
F5  Nothing is read that another user may have written, and nothing but cache files is removed.
"""

import hashlib
import json
import logging
import os
import re
import secrets
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

from omnigraph.core.environment import number_setting
from omnigraph.storage.control.private_folder import make_private, open_own, require_private, require_trusted

CACHE_DIR, CACHE_BYTES, GRAPH_CACHE = "OMNIGRAPH_CACHE_DIR", "OMNIGRAPH_CACHE_BYTES", "OMNIGRAPH_GRAPH_CACHE"

DISK_BYTES = 2 * 1024**3
MEMORY_BYTES = 2 * 1024**3  # both directions of 5M edges and the ids of 1M nodes take a tenth of it
VIEWS_MAX = 8  # snapshots of one table that stay derived; each later one costs its changes only
DISK_ROWS_MIN = 20_000  # below this, rebuilding is as quick as reading a file


FORMAT = 2
_MAGIC = b"OGDENSE1"
_HEAD = struct.Struct("<8sQ32s")  # magic, bytes of the header, digest of the header
_HEADER_MAX = 64 * 1024 * 1024
_ALIGN = 64
_OURS = re.compile(r"[\w-]{1,80}-[0-9a-f]{16}|\.[\w-]{1,80}-[0-9a-f]{16}\.[0-9a-f]{16}")  # what `_safe` makes
_log = logging.getLogger("omnigraph")
Bytes: TypeAlias = npt.NDArray[np.uint8]
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Limits of one open graph; without a directory nothing is kept on disk."""

    directory: Path | None = None
    disk_bytes: int = DISK_BYTES
    memory_bytes: int = MEMORY_BYTES
    views_max: int = VIEWS_MAX
    disk_rows_min: int = DISK_ROWS_MIN

    @staticmethod
    def from_environment() -> "CacheSettings":
        """Return the settings of this process; a malformed one becomes its default, with a warning."""
        return CacheSettings(
            directory=_directory(),
            disk_bytes=number_setting(CACHE_BYTES, DISK_BYTES),
            views_max=max(1, number_setting(GRAPH_CACHE, VIEWS_MAX)),
        )


def _directory() -> Path | None:
    """Return the folder of cache files: as set (empty for no folder), else below the user's cache folder."""
    chosen = os.environ.get(CACHE_DIR)
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home directory
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "omnigraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "omnigraph"


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a file: what it says about itself, and its arrays."""

    about: dict[str, Any]
    arrays: Arrays


class DiskCache:
    """The files of one graph; safe to share between threads."""

    def __init__(self, directory: Path | None, graph_id: str, bytes_max: int) -> None:
        """Take the cache directory, `None` for no files, and the bytes that all graphs may use in it."""
        self._root = directory
        self._folder = None if directory is None else directory / _safe(graph_id)
        self._bytes_max = bytes_max
        self._writers: list[threading.Thread] = []
        self._lock = threading.Lock()

    def load(self, name: str) -> Stored | None:
        """Return a file that proves itself, or `None` (F1)."""
        if self._folder is None:
            return None
        try:
            with self._opened(name) as opened:
                stored = _decoded(np.fromfile(opened, np.uint8), name)
                os.utime(opened.fileno())
        except (OSError, ValueError, LookupError, TypeError, struct.error):
            return None
        return stored

    def about(self, name: str) -> dict[str, Any] | None:
        """Return what a file says about itself, its arrays unread; `None` if there is no such file."""
        if self._folder is None:
            return None
        try:
            with self._opened(name) as opened:
                length = _header_length(opened.read(_HEAD.size))
                opened.seek(0)
                header, _ = _header(opened.read(_HEAD.size + length), name)
        except (OSError, ValueError, LookupError, TypeError, struct.error):
            return None
        about: dict[str, Any] = header["about"]
        return about

    def save(self, name: str, about: dict[str, Any], arrays: Arrays) -> None:
        """Write a file in its own thread; `close` waits for it."""
        if self._folder is None:
            return
        writer = threading.Thread(
            target=self._write, args=(name, about, arrays), name="omnigraph-cache-writer", daemon=False
        )
        with self._lock:
            self._writers = [known for known in self._writers if known.is_alive()]
            self._writers.append(writer)
            writer.start()

    def close(self) -> None:
        """Wait for files that are being written."""
        with self._lock:
            writers, self._writers = self._writers, []
        for writer in writers:
            writer.join()

    def _write(self, name: str, about: dict[str, Any], arrays: Arrays) -> None:
        assert self._folder is not None
        final = self._folder / _safe(name)
        partial = self._folder / f".{_safe(name)}.{secrets.token_hex(8)}"
        pieces, size = _encoded(name, about, arrays)
        if size > self._bytes_max:
            return
        try:
            make_private(self._folder)  # ids are the user's own business
            with os.fdopen(open_own(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as opened:
                for piece in pieces:
                    opened.write(piece)
            partial.replace(final)
            self._trim()
        except PermissionError as error:  # F3, F5
            _log.warning("the cache is not used: %s", error.strerror)
        except OSError:  # F3
            _remove(partial)

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        """Open an existing file that no other user has written (F5)."""
        assert self._folder is not None
        require_private(self._folder)
        with os.fdopen(open_own(self._folder / _safe(name), os.O_RDONLY), "rb") as opened:
            yield opened

    def _trim(self) -> None:
        """Remove the least recently used files until the rest fits (F4, F5)."""
        assert self._root is not None
        found = []
        for path in self._files():
            try:
                status = path.lstat()
            except OSError:  # another process removed it
                continue
            found.append((status.st_mtime_ns, status.st_size, path))
        excess = sum(size for _, size, _ in found) - self._bytes_max
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            _remove(path)
            excess -= size

    def _files(self) -> Iterator[Path]:
        """Yield the cache files of all graphs; the folder may hold other things."""
        assert self._root is not None
        require_trusted(self._root)
        for folder in self._root.iterdir():
            if not _OURS.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
                continue
            yield from (path for path in folder.iterdir() if _OURS.fullmatch(path.name))


def _encoded(name: str, about: dict[str, Any], arrays: Arrays) -> tuple[list[bytes | memoryview], int]:
    """Return the pieces of a file, and its length."""
    data: list[bytes | memoryview] = []
    described: dict[str, list[Any]] = {}
    offset = 0
    digest = xxhash.xxh3_128()
    for key, array in arrays.items():
        raw = np.ascontiguousarray(array).view(np.uint8)
        described[key] = [array.dtype.str, len(array), offset]
        digest.update(raw.data)
        padding = -len(raw) % _ALIGN
        data += [raw.data, bytes(padding)]
        offset += len(raw) + padding
    header = {
        "format": FORMAT,
        "name": name,
        "about": about,
        "arrays": described,
        "bytes": offset,
        "digest": digest.hexdigest(),
    }
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + _HEAD.size) % _ALIGN)
    head = _HEAD.pack(_MAGIC, len(text), hashlib.blake2b(text, digest_size=32).digest())
    return [head, text, *data], len(head) + len(text) + offset


def _decoded(content: Bytes, name: str) -> Stored:
    length = _header_length(content[: _HEAD.size].tobytes())
    header, start = _header(content[: _HEAD.size + length].tobytes(), name)
    data = content[start:]
    if len(data) != header["bytes"]:
        raise ValueError("cut short")
    digest = xxhash.xxh3_128()
    arrays: dict[str, npt.NDArray[Any]] = {}
    for key, (type_, count, offset) in header["arrays"].items():
        dtype = np.dtype(type_)
        raw = data[offset : offset + count * dtype.itemsize]
        digest.update(raw.data)
        array = raw.view(dtype)
        array.flags.writeable = False
        arrays[key] = array
    if digest.hexdigest() != header["digest"]:
        raise ValueError("damaged")
    return Stored(header["about"], arrays)


def _header_length(head: bytes) -> int:
    magic, length, _ = _HEAD.unpack(head)
    if magic != _MAGIC or length > _HEADER_MAX:
        raise ValueError("not a cache file")
    return int(length)


def _header(content: bytes, name: str) -> tuple[dict[str, Any], int]:
    """Return the header of a file and where its data begin."""
    _, length, digest = _HEAD.unpack(content[: _HEAD.size])
    text = content[_HEAD.size : _HEAD.size + length]
    if hashlib.blake2b(text, digest_size=32).digest() != digest:
        raise ValueError("damaged")
    header: dict[str, Any] = json.loads(text)
    if header["format"] != FORMAT or header["name"] != name:
        raise ValueError("another file")
    return header, _HEAD.size + length


def _safe(name: str) -> str:
    """Return a file name for a name of ours."""
    plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    return f"{plain[:80]}-{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}"


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # F3: a file that stays is found again by the next trim
        return
