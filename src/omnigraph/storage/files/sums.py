"""Lengths and checksums of files, as commits record them.

E1  A sum is taken of the bytes on the disk right after they were written, by the process that wrote them.
E2  Sums are taken on a local disk. An object store keeps checksums of its own, and reading every file back
    from it would double the requests of a commit.
E3  A checksum is xxh3 of 64 bits: it detects damage, not changes made on purpose.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import xxhash

from omnigraph.core.environment import word_setting
from omnigraph.core.errors import InvariantViolation
from omnigraph.core.regular_file import open_regular
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.files.version_file import (
    VERSIONS_DIR,
    check_relative_path,
    version_file_name,
    version_of_file_name,
)

ENVIRONMENT = "OMNIGRAPH_CHECKSUMS"
ALGORITHM = "xxh3"
READ_BYTES = 1024 * 1024  # how much of a file is held at a time
_IN = "in "
# The kinds of files that every commit adds: a letter and the middle of the name stand for the whole, so that
# the rows of a small commit stay in one block of the disk.
_KINDS = {
    "d": ("data/", ".lance"),
    "x": ("_deletions/", ".arrow"),
    "t": ("_transactions/", ".txn"),
    "v": (f"{VERSIONS_DIR}/", ".manifest"),
}


class Recording(StrEnum):
    """Whether commits record sums."""

    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class FileSum:
    """What a commit knows about a file that it added; the path is relative to the graph root."""

    path: str
    length: int
    checksum: str

    def to_text(self) -> str:
        """Return the sum as one line, for a description that is sent."""
        return f"{self.checksum} {self.length} {self.path}"

    @staticmethod
    def of_text(text: str) -> "FileSum":
        """Return what such a line says.

        Raises:
            InvariantViolation: it says something else.
        """
        checksum, _, rest = text.partition(" ")
        length, _, path = rest.partition(" ")
        is_length = length.isascii() and length.isdecimal() and len(length) < 19  # below 2**63
        if len(checksum) != 16 or not is_length:
            raise InvariantViolation(f"'{text[:120]}' is not the checksum of a file")
        return FileSum(check_relative_path(path, "a recorded checksum"), int(length), checksum)


class Summer:
    """Takes the sums of files below a graph root; there are none where it is off (E2)."""

    def __init__(self, root: str | None, *, is_on: bool = True) -> None:
        """Take the folder of the graph; none for a graph in an object store."""
        self._prefix = "" if root is None else f"{root.rstrip('/')}/"
        self.is_active = root is not None and is_on

    def sum(self, files: Iterable[str]) -> tuple[FileSum, ...]:
        """Return the sums of files, each once; files that no longer exist are skipped.

        Raises:
            StorageError: a file cannot be read.
        """
        return tuple(self._sums(files)) if self.is_active else ()

    def _sums(self, files: Iterable[str]) -> Iterator[FileSum]:
        for file in dict.fromkeys(files):
            assert file.startswith(self._prefix), "a commit adds files below the graph root"
            path = file[len(self._prefix) :]
            try:
                length, checksum = sum_file(file)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(f"read '{path}'", error) from error
            yield FileSum(path, length, checksum)


NO_SUMS = Summer(None)


def sum_file(path: str | Path) -> tuple[int, str]:
    """Return length and checksum of a file.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    digest, length = xxhash.xxh3_64(), 0
    with open_regular(path) as opened:
        while piece := opened.read(READ_BYTES):
            digest.update(piece)
            length += len(piece)
    return length, digest.hexdigest()


def is_recording() -> bool:
    """Return whether commits record sums: `OMNIGRAPH_CHECKSUMS` is `on` unless it says `off`."""
    return word_setting(ENVIRONMENT, Recording.ON) is Recording.ON


def encode_sums(sums: Sequence[FileSum]) -> list[str] | None:
    """Return sums as the lines that a manifest row holds: the algorithm, then folder by folder."""
    if not sums:
        return None
    lines, folder = [ALGORITHM], ""
    for item in sums:
        dataset, name = _split(item.path)
        if dataset != folder:
            lines.append(f"{_IN}{dataset}")
            folder = dataset
        lines.append(f"{item.checksum} {item.length} {_shortened(name)}")
    return lines


def decode_sums(lines: Sequence[str]) -> Iterator[FileSum]:
    """Yield the sums of one row; nothing for an algorithm that this build does not know.

    Raises:
        InvariantViolation: the lines are not what `encode_sums` writes.
    """
    if not lines or lines[0] != ALGORITHM:
        return
    folder = ""
    for line in lines[1:]:
        if line.startswith(_IN):
            folder = f"{line.removeprefix(_IN)}/"
            continue
        checksum, _, rest = line.partition(" ")
        length, _, name = rest.partition(" ")
        yield FileSum.of_text(f"{checksum} {length} {folder}{_whole(name)}")


def _split(path: str) -> tuple[str, str]:
    """Return the dataset's folder of a path, and the rest: the last two or three parts."""
    parts = path.split("/")
    kept = 3 if len(parts) > 3 and parts[-3] in {"_indices", "_refs", "data"} else 2
    return "/".join(parts[:-kept]), "/".join(parts[-kept:])


def _shortened(name: str) -> str:
    for letter, (start, end) in _KINDS.items():
        middle = name[len(start) : -len(end)]
        if name.startswith(start) and name.endswith(end) and middle and "/" not in middle:
            version = version_of_file_name(name[len(start) :]) if letter == "v" else None
            return f"{letter} {middle if version is None else version}"
    return name


def _whole(name: str) -> str:
    letter, blank, middle = name.partition(" ")
    if not blank or letter not in _KINDS:
        return name
    if letter == "v" and middle.isdecimal() and len(middle) < 20:
        return version_file_name(int(middle))
    start, end = _KINDS[letter]
    return f"{start}{middle}{end}"
