"""Pipes, sockets and devices in the place of a table's files: refused before the library opens one.

A folder that somebody hands over may have them. The library would wait for the other end of a pipe for ever,
out of reach of a time limit or an interrupt, or read from a device without an end.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.regular_file import special_kind

_REFS = "tree"  # the folder of a dataset with its refs, each a dataset of its own


def refuse_special_files(folder: Path, *, with_refs: bool) -> None:
    """Make sure that everything in the folder of a table is a file or a folder, or leads to one.

    What cannot be looked at is left to whoever reads it: a cleanup may remove files meanwhile.

    Raises:
        GraphDamaged: there is something else.
    """
    for path in _entries(folder, with_refs=with_refs):
        with suppress(OSError):
            kind = special_kind(path.stat())
            if kind is not None:
                dataset = folder.name if folder.name.startswith("__") else "/".join(folder.parts[-2:])
                raise GraphDamaged(
                    file=f"{dataset}/{path.relative_to(folder)}", reason=f"is {kind}", dataset=dataset
                )


def _entries(folder: Path, *, with_refs: bool) -> Iterator[Path]:
    """Yield what the listings of folders do not already say to be a plain file."""
    waiting, linked = [str(folder)], set[str]()
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if with_refs or entry.name != _REFS:
                        waiting.append(entry.path)
                elif entry.is_dir():  # a link, which the library follows, too
                    place = os.path.realpath(entry.path)
                    if place not in linked:
                        linked.add(place)
                        waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)
