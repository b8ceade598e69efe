"""Links inside a graph's folder: none is followed to write or remove something, or to read a control file.

The engine makes none. A folder that somebody hands over may have a link to anything of the user's at a name
of the engine's. The path to the root itself may have links: they are resolved when an address is read.
"""

import os
import stat
from pathlib import Path

from omnigraph.core.errors import StorageError


def link_on(root: Path, path: str) -> str | None:
    """Return the first part of a path below a root that is a link, as a path; `None` without any.

    The last part counts too. What is not there, or cannot be looked at, is no link that could be followed.
    """
    place = str(root)
    for part in path.split("/"):
        place = f"{place}/{part}"
        try:
            status = os.lstat(place)
        except OSError:
            return None
        if stat.S_ISLNK(status.st_mode):
            return place.removeprefix(f"{root}/")
    return None


def refuse_link_on(root: Path, path: str) -> None:
    """Make sure that a path below a root has no links.

    Raises:
        StorageError: it has one.
    """
    link = link_on(root, path)
    if link is not None:
        raise link_error(link)


def link_error(link: str) -> StorageError:
    """Return the error that names a link inside a graph."""
    return StorageError(
        f"'{link}' is a link, and nothing behind one belongs to a graph: put what it leads to in its place",
        kind="permanent",
    )
