"""What a bulk operation keeps under the graph root while it runs, and what dead ones have left there.

T1  On a disk the driver holds a lock on its token, from before the token has a text until after the spool of
    the same operation is gone. The system releases it when the driver dies: a free token is a dead driver's.
T2  What has no token is dead only when it is older than the grace period for files that nothing refers to.
T3  In an object store this cannot be determined: the token, a few bytes, stays there.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.core.errors import StorageError
from omnigraph.core.ids import ulid_millis
from omnigraph.storage.control.links import refuse_link_on
from omnigraph.storage.control.locks import try_lock, wait_for_lock
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.os_errors import storage_error
from omnigraph.storage.control.private_folder import open_own
from omnigraph.storage.control.uri import GraphRoot

TOKEN, SPOOL = "__executor_probe_", "__spool_"  # each before the id of an operation
GRACE_MS = 7 * 24 * 3600 * 1000  # as for all files that nothing refers to
LOCK_WAIT_S = 10.0  # a process that cleans up may hold a token for an instant, just as it is made


@contextmanager
def living_token(root: GraphRoot, adapter: StorageAdapter, name: str, text: str) -> Iterator[None]:
    """Keep a token under the root for the duration of a block, as a sign of life where there are locks (T1).

    Raises:
        StorageError: the token cannot be written.
    """
    if not root.is_local:
        adapter.write_text(name, text)
        try:
            yield
        finally:
            adapter.discard(name)
        return
    path = Path(root.uri) / name
    try:
        lock = wait_for_lock(path, LOCK_WAIT_S)
    except OSError as error:
        raise storage_error(f"write '{name}'", error) from error
    if lock is None:
        raise StorageError(f"'{name}' is locked by another process", kind="transient")
    try:
        try:
            # In place: a file that replaced it would not be locked.
            with os.fdopen(open_own(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise storage_error(f"write '{name}'", error) from error
        yield
    finally:
        lock.release(remove=True)


def remove_leftovers(root: GraphRoot, *, now_micros: int) -> dict[str, StorageError]:
    """Remove what dead operations left under the root of a graph on a disk (T1, T2).

    Returns what could not be removed, by name, and why.

    Raises:
        StorageError: the root cannot be listed.
    """
    if not root.is_local:
        return {}
    folder = Path(root.uri)
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise storage_error("list the graph's folder", error) from error
    owned = {name.removeprefix(TOKEN) for name in names if name.startswith(TOKEN)}
    spools = {name.removeprefix(SPOOL) for name in names if name.startswith(SPOOL)}
    failed: dict[str, StorageError] = {}
    for operation_id in sorted(owned):
        try:
            _remove_dead(folder, operation_id)
        except StorageError as error:
            failed[f"{TOKEN}{operation_id}"] = error
    for operation_id in sorted(spools - owned):
        try:
            if _is_old(operation_id, now_micros):
                _remove_folder(folder, f"{SPOOL}{operation_id}")
        except StorageError as error:
            failed[f"{SPOOL}{operation_id}"] = error
    return failed


def _is_old(operation_id: str, now_micros: int) -> bool:
    made = ulid_millis(operation_id)
    return made is not None and now_micros // 1_000 - made > GRACE_MS


def _remove_dead(folder: Path, operation_id: str) -> None:
    """Remove the spool and then the token of an operation, if its driver is dead (T1)."""
    refuse_link_on(folder, f"{TOKEN}{operation_id}")
    lock = try_lock(folder / f"{TOKEN}{operation_id}")
    if lock is None:
        return
    try:
        _remove_folder(folder, f"{SPOOL}{operation_id}")
    except StorageError:
        lock.release()  # the token stays with the spool that it is for
        raise
    lock.release(remove=True)


def _remove_folder(root: Path, name: str) -> None:
    refuse_link_on(root, name)
    try:
        shutil.rmtree(root / name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(f"remove '{name}'", error) from error
