"""Whether a store keeps the promises that the engine relies on, checked before anything is written to it.

Some S3-compatible servers accept a condition and ignore it; some network file systems do so with locks.
"""

import errno
from pathlib import Path

from omnigraph.core.errors import BadRequest, StorageError
from omnigraph.core.ids import new_ulid
from omnigraph.storage.control.locks import probe_flock
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot

_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


def probe_store(adapter: StorageAdapter, root: GraphRoot) -> None:
    """Try create-if-absent, and what locks the place has: `flock` on a disk, compare-and-swap in a store.

    The probe object is removed again; that of another process is left alone.

    Raises:
        StorageError: a promise does not hold (kind `configuration`), or the store failed.
    """
    name = f"__create_if_absent_probe_{new_ulid()}"
    refuse_file(root)
    try:
        _probe_create(adapter, root, name)
        if not root.is_local:
            _probe_swap(adapter, root, name)
    finally:
        adapter.discard(name)
    if root.is_local:
        probe_flock(Path(root.uri))


def refuse_file(root: GraphRoot) -> None:
    """Refuse a place on a disk that cannot be a folder.

    Raises:
        BadRequest: it is a file, or is below one.
    """
    if not root.is_local:
        return
    place = Path(root.uri)
    try:
        file = next((path for path in (place, *place.parents) if path.is_file()), None)
    except OSError:
        return  # the next step meets it too, and says what it is
    if file is not None:
        what = "is a file" if file == place else f"is below {file}, which is a file"
        raise BadRequest(f"{place} {what}: a graph is a folder")


def _probe_create(adapter: StorageAdapter, root: GraphRoot, name: str) -> None:
    try:
        is_made = adapter.write_text_if_absent(name, "first")
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NOT_ALLOWED:
            raise StorageError(
                f"{root.uri} cannot be written by this user ({cause.strerror}): choose a folder that can be, "
                f"or open the graph with mode 'ro' to read it",
                kind=error.kind,
            ) from error
        raise
    if not is_made:
        raise StorageError(
            f"{root.uri} refuses to create an object that does not exist", kind="configuration"
        )
    if adapter.write_text_if_absent(name, "second") or adapter.read_text(name) != "first":
        raise StorageError(
            f"{root.uri} overwrites existing objects instead of refusing to create them", kind="configuration"
        )


def _probe_swap(adapter: StorageAdapter, root: GraphRoot, name: str) -> None:
    found = adapter.read_text_versioned(name)
    if found is None or not adapter.write_text_if_match(name, "third", found[1]):
        raise StorageError(f"{root.uri} refuses to replace an unchanged object", kind="configuration")
    if adapter.write_text_if_match(name, "fourth", found[1]) or adapter.read_text(name) != "third":
        raise StorageError(f"{root.uri} replaces objects that have changed", kind="configuration")
