"""First writes of a branch to tables that it only inherits: each works on a fork of its own.

F1  Every attempt mints its own ref: a leftover never blocks a write, and two first writers never meet before
    the publisher lets one of them win.
F2  A fork starts from the pin that the branch shows, whoever owns it.
F3  An attempt drops the forks it made when it ends without an effect that recovery would look for.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from omnigraph.commit.parts import Parts
from omnigraph.commit.reclaim import drop_refs, reclaim_orphaned_forks
from omnigraph.core.errors import waits_for_recovery
from omnigraph.core.failpoint import hit
from omnigraph.history.branches import mint_ref
from omnigraph.history.fold import TableEntry


def owns(branch: str | None, entry: TableEntry) -> bool:
    """Return whether a branch writes a table where it is pinned; otherwise it only inherits it."""
    if branch is None:
        return True
    return entry.owner is not None and entry.pin.branch == branch


@contextmanager
def forked(
    parts: Parts, branch: str | None, entries: Iterable[TableEntry]
) -> Iterator[Mapping[str, TableEntry]]:
    """Yield tables by name as this branch writes them: its own as they are, others on fresh forks.

    The caller holds the queues of the tables.

    Raises:
        StorageError: a fork could not be made; those made before are dropped.
    """
    made: list[TableEntry] = []
    try:
        writable: dict[str, TableEntry] = {}
        for entry in entries:
            if owns(branch, entry):
                writable[entry.table_key] = entry
                continue
            assert branch is not None, "main owns what it shows"
            reclaim_orphaned_forks(parts, entry)
            hit("fork.before_create")
            ref = mint_ref(branch, parts.new_id())
            parts.refs.create(parts.address(entry), entry.version, ref)
            forked_entry = replace(entry, pin=replace(entry.pin, ref=ref))
            made.append(forked_entry)
            writable[entry.table_key] = forked_entry
            hit("fork.post_create_pre_stage")
        yield writable
    except BaseException as error:
        if not waits_for_recovery(error):
            drop_forks(parts, made)
        raise


def fork_files(parts: Parts, entry: TableEntry) -> tuple[str, ...]:
    """Return the files of a fork that was just made, for syncing."""
    return parts.refs.files(parts.address(entry), entry.version)


def drop_forks(parts: Parts, forks: Iterable[TableEntry]) -> None:
    """Drop forks that nothing was committed on; what cannot be dropped is left for cleanup."""
    drop_refs(parts, (parts.address(fork) for fork in forks))
