"""Up to which version a dataset is known to be on the disk: a note beside its versions.

W1  The note is written after the sync that it speaks of, so what it says is true whenever it can be read. It
    is not synced itself: a power cut may lose it, which leaves less proven and nothing wrong.
W2  A note that is torn, damaged or of another dataset says nothing.

Without it nobody could tell a version that a power cut left hollow, which nobody was told of, from one that
was acknowledged and rotted afterwards.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path

from omnigraph.storage.os_errors import storage_error

MARK = "_synced"
_TEMPORARY = f"{MARK}.new"


def read_mark(folder: Path) -> int:
    """Return the newest version of a dataset that is known to be synced; 0 where none is (W2).

    Raises:
        StorageError: the note is there and cannot be read.
    """
    try:
        text = (folder / MARK).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise storage_error(f"read '{folder.name}/{MARK}'", error) from error
    version, _, check = text.strip().partition(b" ")
    is_whole = version.isdigit() and check == _check(folder, version)
    return int(version) if is_whole else 0


def write_mark(folder: Path, version: int) -> None:
    """Note that every version up to this one is synced (W1); the caller holds the dataset's publish lock.

    Raises:
        StorageError: the system failed; less is proven than is true.
    """
    number = str(version).encode()
    try:
        temporary = folder / _TEMPORARY
        temporary.write_bytes(number + b" " + _check(folder, number) + b"\n")
        os.replace(temporary, folder / MARK)  # noqa: PTH105 - on the path of every commit
    except OSError as error:
        raise storage_error(f"write '{folder.name}/{MARK}'", error) from error


def forget_mark(folder: Path) -> None:
    """Remove the note, before versions that it speaks of are moved aside on purpose."""
    with suppress(FileNotFoundError):
        (folder / MARK).unlink()


def _check(folder: Path, number: bytes) -> bytes:
    return f"{zlib.crc32(folder.name.encode() + b' ' + number):08x}".encode()
