"""Folders and files of this user alone, in places that other users of the machine can reach.

A user who makes a folder first, or puts a link in its place, could otherwise choose what is read from it
and where it is written to.

P1  The path to a folder is trusted if every folder and link on it belongs to this user or to the superuser,
    and nobody else may replace what is in it: it is not writable by all, or it is sticky, as `/tmp` is.
P2  A private folder has such a path, belongs to this user, and nobody else may write in it.
P3  A file is opened by its own name, never through a link, and only if this user owns it.
"""

import errno
import os
import stat
from pathlib import Path

LINKS_MAX = 40  # as many as the system follows before it calls them a loop


def make_private(folder: Path) -> None:
    """Make a private folder, or make sure that the existing one is private (P1, P2).

    Raises:
        OSError: it cannot be made, or is not private; `strerror` says why.
    """
    first = next(place for place in (folder, *folder.parents) if place.exists() or place.is_symlink())
    require_trusted(first)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_private(folder)


def require_private(folder: Path) -> None:
    """Make sure that nobody else could have put something into a folder (P1, P2).

    Raises:
        OSError: it is not there, or is not private; `strerror` says why.
    """
    require_trusted(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise _refused(folder, "is not a folder")
    if status.st_uid != os.geteuid():
        raise _refused(folder, "belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refused(folder, "is writable by other users")


def require_trusted(path: Path) -> None:
    """Make sure that nobody else can replace a path, or a part of it (P1).

    Raises:
        OSError: a part is missing or is not trusted; `strerror` says which.
    """
    waiting = list(reversed(path.absolute().parts[1:]))
    place, links = Path("/"), 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            place = place.parent
            continue
        here = place / part
        status = here.lstat()
        if status.st_uid not in {0, os.geteuid()}:
            raise _refused(here, "belongs to another user")
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            target = Path(here.readlink())
            place = Path("/") if target.is_absolute() else place
            waiting += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            continue
        is_shared = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if is_shared and stat.S_ISDIR(status.st_mode):
            raise _refused(here, "is writable by all users")
        place = here


def open_own(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a regular file of this user and return its descriptor (P3).

    Raises:
        OSError: it cannot be opened, is a link, or belongs to another user.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    raise _refused(path, "is not a file of this user")


def _refused(path: Path, reason: str) -> OSError:
    return PermissionError(errno.EPERM, f"{path} {reason}", str(path))
