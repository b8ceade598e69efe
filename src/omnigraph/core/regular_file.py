"""Users' files to read or replace: plain files, and nothing else.

A pipe may have no writer, a device may have no end, and replacing either would take it away from everyone.
Input from a pipe is given as `-`. Every file inside a graph's folder belongs to the graph.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from omnigraph.core.limits import CONTROL_BYTES_MAX, FOLDERS_MAX

GRAPH_MARK = "__manifest"  # a folder that contains it is a graph
NO_NAME = "its name has a character that file names cannot have"
_PIPE_HINT = ": give what comes through a pipe as '-'"
_KINDS = (
    (stat.S_ISFIFO, "a pipe, not a file"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISCHR, "a device, not a file"),
    (stat.S_ISBLK, "a device, not a file"),
)


def special_kind(status: os.stat_result) -> str | None:
    """Return what something is that only looks like a file: a pipe, a socket or a device."""
    return next((text for is_kind, text in _KINDS if is_kind(status.st_mode)), None)


def require_regular(path: str | Path) -> int:
    """Return the size of a file in bytes, without opening it.

    Raises:
        OSError: it does not exist, or is not a plain file; `strerror` says what it is.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - a path may be a text that `Path` would change
    except ValueError as error:
        raise OSError(errno.EINVAL, NO_NAME) from error
    _refuse(status, path, _PIPE_HINT)
    return status.st_size


def open_regular(path: str | Path) -> BufferedReader:
    """Open a file for reading, without waiting for the other end of a pipe.

    Raises:
        OSError: it cannot be read, or is not a plain file; `strerror` says what it is.
    """
    require_regular(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _refuse(os.fstat(descriptor), path, _PIPE_HINT)  # it may have been replaced by something else
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_control_file(path: str | Path) -> bytes:
    """Return the content of one of a graph's own files, without blocking and up to a limit.

    Raises:
        OSError: it cannot be read, is no plain file (a link is none), or is too large; `strerror` says
            what it is.
    """
    status = os.stat(path)  # noqa: PTH116 - on the path of every commit
    _refuse(status, path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        # It may lead to any file of the user, whose text the errors about it would show.
        raise OSError(errno.ELOOP, "it is a link, not a file", str(path)) from error
    with os.fdopen(descriptor, "rb", closefd=True) as file:
        _refuse(os.fstat(descriptor), path)  # it may have been replaced by something else
        data = file.read(CONTROL_BYTES_MAX + 1)
    if len(data) > CONTROL_BYTES_MAX:
        raise OSError(errno.EFBIG, f"it has more than {CONTROL_BYTES_MAX} bytes", str(path))
    return data


def write_new(path: str | Path, content: bytes) -> None:
    """Write one of a graph's own files anew: what has its name is removed first, never opened or followed.

    A folder that somebody hands over may have a link to any file of the user there, or a pipe.

    Raises:
        OSError: it cannot be written, or what has its name cannot be removed.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        os.unlink(path)  # noqa: PTH108 - on the path of every commit
        descriptor = os.open(path, flags, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def require_replaceable(path: str | Path) -> None:
    """Make sure that a file can be written to a place: it is free, or a plain file outside of any graph.

    Raises:
        OSError: something else is there, or the place is inside a graph.
    """
    refuse_inside_graph(path)
    try:
        require_regular(path)
    except FileNotFoundError:
        return


def refuse_inside_graph(path: str | Path) -> None:
    """Make sure that a place is outside of every graph, both by its name and by the target of a link there.

    Raises:
        OSError: it is inside a graph, which `strerror` names, or in more folders than can be made.
    """
    given = Path(path)
    if len(given.absolute().parts) > FOLDERS_MAX:
        raise OSError(errno.ENAMETOOLONG, f"it lies in more than {FOLDERS_MAX} folders", str(path))
    try:
        places = (given.parent.resolve() / given.name, given.resolve())
    except ValueError as error:
        raise OSError(errno.EINVAL, NO_NAME) from error
    for place in places:
        for folder in (place, *place.parents):
            if os.path.isdir(folder / GRAPH_MARK):  # noqa: PTH112 - says no where nobody can look
                raise OSError(
                    errno.EINVAL, f"it lies inside the graph {folder}: choose a place elsewhere", str(path)
                )


def _refuse(status: os.stat_result, path: str | Path, pipe_hint: str = "") -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    reason = f"it is {special_kind(status) or 'not a file'}"
    hint = pipe_hint if stat.S_ISFIFO(status.st_mode) else ""
    raise OSError(errno.EINVAL, reason + hint, str(path))
