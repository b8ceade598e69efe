"""Whether a store keeps the promises that the engine relies on, checked before anything is written to it.

Some S3-compatible servers accept a condition and ignore it; some network file systems do so with locks.
"""

import errno
from pathlib import Path

from omnigraph.core.errors import StorageError
from omnigraph.core.ids import new_ulid
from omnigraph.storage.control.locks import probe_flock
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot, refuse_file

_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
PROBE = "__create_if_absent_probe_"  # what the names of probe objects begin with


def probe_store(adapter: StorageAdapter, root: GraphRoot) -> None:
    """Try create-if-absent, and what locks the place has: `flock` on a disk, compare-and-swap in a store.

    The probe object is removed again; that of another process is left alone.

    Raises:
        StorageError: a promise does not hold (kind `configuration`), or the store failed.
    """
    name = f"{PROBE}{new_ulid()}"
    refuse_file(root)
    try:
        token = _probe_create(adapter, root, name)
        if not root.is_local:
            _probe_swap(adapter, root, name, token)
    finally:
        adapter.discard(name)
    if root.is_local:
        probe_flock(Path(root.uri))


def _probe_create(adapter: StorageAdapter, root: GraphRoot, name: str) -> str:
    """Create twice; return the token of what is there then."""
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
    if not is_made and adapter.read_text_if_exists(name) != "first":  # the answer alone may be lost
        raise StorageError(
            f"{root.uri} refuses to create an object that does not exist", kind="configuration"
        )
    is_made_again = adapter.write_text_if_absent(name, "second")
    found = adapter.read_text_versioned(name)
    if is_made_again or found is None or found[0] != "first":
        raise StorageError(
            f"{root.uri} overwrites existing objects instead of refusing to create them", kind="configuration"
        )
    return found[1]


def _probe_swap(adapter: StorageAdapter, root: GraphRoot, name: str, token: str) -> None:
    is_replaced = adapter.write_text_if_match(name, "third", token)
    if not is_replaced and adapter.read_text_if_exists(name) != "third":  # as above
        raise StorageError(f"{root.uri} refuses to replace an unchanged object", kind="configuration")
    if adapter.write_text_if_match(name, "fourth", token) or adapter.read_text(name) != "third":
        raise StorageError(f"{root.uri} replaces objects that have changed", kind="configuration")
