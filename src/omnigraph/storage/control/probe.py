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
        if root.is_local:
            _prove_create(adapter, root, name)
        else:
            prove_conditions(adapter, root, name, ("first", "second", "third", "fourth"))
    finally:
        adapter.discard(name)
    if root.is_local:
        probe_flock(Path(root.uri))


def prove_conditions(
    adapter: StorageAdapter, root: GraphRoot, name: str, texts: tuple[str, str, str, str]
) -> None:
    """Create an object with the first text and replace it by the second, which is what it then has.

    In between the store must refuse the third, under a condition that no longer holds, and the fourth, as a
    new object. Where an answer was lost, and the repeated request refused, what is there tells.

    Raises:
        StorageError: a promise does not hold (kind `configuration`), or the store failed.
    """
    first, second, third, fourth = texts
    adapter.write_text_if_absent(name, first)
    found = adapter.read_text_versioned(name)
    if found is None or found[0] != first:
        raise _broken(root, "refuses to create an object that does not exist")
    adapter.write_text_if_match(name, second, found[1])
    is_replaced_again = adapter.write_text_if_match(name, third, found[1])
    is_made_again = adapter.write_text_if_absent(name, fourth)
    left = adapter.read_text_if_exists(name)
    if left == first:
        raise _broken(root, "refuses to replace an unchanged object")
    if is_replaced_again or left == third:
        raise _broken(root, "replaces objects that have changed")
    if is_made_again or left != second:
        raise _broken(root, "overwrites existing objects instead of refusing to create them")


def _prove_create(adapter: StorageAdapter, root: GraphRoot, name: str) -> None:
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
        raise _broken(root, "refuses to create an object that does not exist")
    if adapter.write_text_if_absent(name, "second") or adapter.read_text_if_exists(name) != "first":
        raise _broken(root, "overwrites existing objects instead of refusing to create them")


def _broken(root: GraphRoot, what: str) -> StorageError:
    return StorageError(f"{root.uri} {what}", kind="configuration")
