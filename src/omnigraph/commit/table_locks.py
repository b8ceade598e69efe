"""Turns between the processes of one host: who is between its last look at a table and its publish.

J1  A writer has the tables that it moves to itself, and shares those that it only reads, from its last look
    at them until its commit section has ended. So a table does not move below a write that has begun to
    commit, and such a write need not be undone because a neighbour was faster.
J2  Nothing rests on this. Whoever has waited for long goes on without: strict commits and the publish decide,
    as on an object store, where there are no locks.
J3  Queues of the process come first, so threads of one process do not meet here. Several tables are taken in
    one order, all of them or none: whoever has to wait holds nothing meanwhile.
J4  A writer that waits looks whether it has lost already, and is told so at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import LOCKS_DIR
from omnigraph.core.failpoint import hit
from omnigraph.storage.control.locks import FileLock, looks, try_shared, try_sole

TABLE_LOCK_WAIT_S = 3.0  # a commit section takes 0.03 s; this long means a stopped process or a large change


def table_lock_file(branch: str, table_key: str) -> str:
    """Return the graph-relative name of the file on which the writers of a table on a branch take turns.

    A digest stands for the table: a branch and a type may each have a name that fills a file's. If two tables
    have one digest, their writers wait for each other, and nothing else happens (J2).
    """
    digest = blake2b(table_key.encode(), digest_size=8).hexdigest()
    return f"{LOCKS_DIR}/table-{quote(branch, safe='')}-{digest}.lock"


def remove_table_locks(root: Path, branch: str, table_keys: Iterable[str]) -> None:
    """Remove the files of a branch that is deleted; whoever holds one notices (K2 of `locks.py`)."""
    for table_key in table_keys:
        (root / table_lock_file(branch, table_key)).unlink(missing_ok=True)


@contextmanager
def turn_of_tables(
    parts: Parts,
    branch: str,
    *,
    moved: Iterable[str],
    read: Iterable[str] = (),
    wait_s: float | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[bool]:
    """Hold tables of a branch between processes, and yield whether they are held (J1).

    `meanwhile` is called while others hold them, and may raise (J4).

    Raises:
        StorageError: a lock file cannot be made or locked.
    """
    root = parts.local_root
    if root is None:
        yield False
        return
    kinds = dict.fromkeys(read, try_shared) | dict.fromkeys(moved, try_sole)
    wanted = {root / table_lock_file(branch, key): kinds[key] for key in sorted(kinds)}
    held: list[FileLock | None] = []
    try:
        yield _take(wanted, held, TABLE_LOCK_WAIT_S if wait_s is None else wait_s, meanwhile)
    finally:
        _release(held)


_Take = Callable[[Path], FileLock | None]


def _take(
    wanted: Mapping[Path, _Take], held: list[FileLock | None], wait_s: float, meanwhile: Callable[[], object]
) -> bool:
    """Take all locks, or none of them (J3); return whether they are held."""
    for _ in looks(wait_s):
        for path, take in wanted.items():
            held.append(take(path))  # at once: an interrupt finds it there (K5 of `locks.py`)
            if held[-1] is None:
                break
        else:
            return True
        _release(held)
        hit("table_lock.held_by_others")
        meanwhile()
    return False


def _release(held: list[FileLock | None]) -> None:
    while held:
        if held[-1] is not None:
            held[-1].release()
        held.pop()
