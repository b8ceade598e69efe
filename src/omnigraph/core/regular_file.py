"""Files of users that are to be read or replaced: files in the plain sense, and nothing else.

A pipe may have nobody who writes to it, a device may have no end, and replacing either would take it away
from everybody. What comes through a pipe is given as `-`.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_KINDS = (
    (stat.S_ISFIFO, "it is a pipe, not a file: give what comes through a pipe as '-'"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
    (stat.S_ISCHR, "it is a device, not a file"),
    (stat.S_ISBLK, "it is a device, not a file"),
)


def require_regular(path: str | Path) -> int:
    """Return the bytes of a file, which is looked at and not opened.

    Raises:
        OSError: it is not there, or is no plain file; `strerror` says what it is.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - a path may be a text that `Path` would change
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name has a character that no file's name has") from error
    _refuse(status, path)
    return status.st_size


def open_regular(path: str | Path) -> BufferedReader:
    """Open a file for reading; nobody waits for the other end of a pipe.

    Raises:
        OSError: it cannot be read, or is no plain file; `strerror` says what it is.
    """
    require_regular(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _refuse(os.fstat(descriptor), path)  # somebody may have put something else there
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def require_replaceable(path: str | Path) -> None:
    """Make sure that a file can be put in a place: nothing is there yet, or a plain file.

    Raises:
        OSError: something else is there.
    """
    try:
        require_regular(path)
    except FileNotFoundError:
        return


def _refuse(status: os.stat_result, path: str | Path) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    reason = next((text for is_kind, text in _KINDS if is_kind(status.st_mode)), "it is not a file")
    raise OSError(errno.EINVAL, reason, str(path))
