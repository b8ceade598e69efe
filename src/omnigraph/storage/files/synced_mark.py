"""Up to which version a dataset was acknowledged, and up to which it is synced: a note beside its versions.

W1  The note is written after what it describes, so what it says is true whenever it can be read. It is not
    synced itself: a power cut may lose it, which leaves less proven and nothing wrong.
W2  A note that is torn, damaged or of another dataset says nothing.

Without it, a version that a power cut left hollow before it was acknowledged would look like one that was
acknowledged and rotted afterwards.
"""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from omnigraph.core.regular_file import read_control_file
from omnigraph.storage.control.os_errors import storage_error

MARK = "_acknowledged"
_TEMPORARY = f"{MARK}.new"


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest version that was acknowledged, and the newest one that is certainly on the disk."""

    acknowledged: int = 0
    synced: int = 0


def read_mark(folder: Path) -> Mark:
    """Return what is noted about a dataset; zeros where nothing is (W2).

    Raises:
        StorageError: the note is there and cannot be read.
    """
    try:
        text = read_control_file(folder / MARK)
    except (FileNotFoundError, NotADirectoryError):
        return Mark()
    except OSError as error:
        raise storage_error(f"read '{folder.name}/{MARK}'", error) from error
    numbers, _, check = text.strip().rpartition(b" ")
    versions = numbers.split()
    is_whole = len(versions) == 2 and all(number.isdigit() for number in versions)
    return Mark(*map(int, versions)) if is_whole and check == _check(folder, numbers) else Mark()


def write_mark(folder: Path, version: int, *, is_synced: bool) -> None:
    """Note that every version up to this one is acknowledged, and perhaps synced (W1).

    The caller holds the dataset's publish lock.

    Raises:
        StorageError: the system failed; less is proven than is true.
    """
    synced = version if is_synced else min(version, read_mark(folder).synced)
    numbers = f"{version} {synced}".encode()
    try:
        temporary = folder / _TEMPORARY
        temporary.write_bytes(numbers + b" " + _check(folder, numbers) + b"\n")
        os.replace(temporary, folder / MARK)  # noqa: PTH105 - on the path of every commit
    except OSError as error:
        raise storage_error(f"write '{folder.name}/{MARK}'", error) from error


def _check(folder: Path, numbers: bytes) -> bytes:
    return f"{zlib.crc32(folder.name.encode() + b' ' + numbers):08x}".encode()
