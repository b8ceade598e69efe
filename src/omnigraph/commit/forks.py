"""First writes of a branch to tables that it only inherits: each works on its own fork.

F1  Every attempt mints its own ref: a leftover never blocks a write, and two first writers never meet before
    the publisher lets one of them win.
F2  A fork starts from the pin that the branch shows, whoever owns it.
F3  An attempt drops its forks while they are its own. Once they are handed over to a commit, only recovery
    and cleanup drop them, unless the commit proves that it had no effect.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from omnigraph.commit.outcome import NoEffect
from omnigraph.commit.parts import Parts
from omnigraph.commit.reclaim import drop_refs, reclaim_orphaned_forks
from omnigraph.core.failpoint import hit
from omnigraph.core.shield import delivering_behind
from omnigraph.history.branches import mint_ref
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity


def owns(branch: BranchIdentity, entry: TableEntry) -> bool:
    """Return whether a branch writes a table where it is pinned; otherwise it only inherits it."""
    return branch.is_main or (entry.pin.ref is not None and entry.pin.branch == branch.name)


@dataclass(slots=True)
class Forks:
    """The tables of one attempt by name, as its branch writes them; among them the forks it made (F3)."""

    _parts: Parts
    tables: dict[str, TableEntry] = field(default_factory=dict)
    _made: list[TableEntry] = field(default_factory=list)
    _is_owned: bool = True

    def hand_over(self) -> None:
        """Hand the forks over to a commit."""
        self._is_owned = False

    def take_back(self, _end: NoEffect, /) -> None:
        """Take the forks back after a commit that had no effect."""
        self._is_owned = True

    def keep(self, used: Collection[str]) -> None:
        """Drop the forks that turned out not to be needed, before anything is handed over."""
        assert self._is_owned, "a fork that was handed over must not be dropped"
        unused = [fork for fork in self._made if fork.table_key not in used]
        self._made = [fork for fork in self._made if fork.table_key in used]
        _drop(self._parts, unused)

    def _add(self, branch: str, entry: TableEntry) -> None:
        reclaim_orphaned_forks(self._parts, entry)
        hit("fork.before_create")
        ref = mint_ref(branch, self._parts.new_id())
        fork = replace(entry, pin=replace(entry.pin, ref=ref))
        self._made.append(fork)  # first: one that is made and not noted would never be dropped
        self._parts.refs.create(self._parts.address(entry), entry.version, ref)
        self.tables[entry.table_key] = fork
        hit("fork.post_create_pre_stage")

    def _end(self) -> None:
        if self._is_owned:
            _drop(self._parts, self._made)


@contextmanager
def forked(parts: Parts, branch: BranchIdentity, entries: Iterable[TableEntry]) -> Iterator[Forks]:
    """Yield tables as this branch writes them: its own as they are, others on fresh forks.

    What is still the attempt's own at the end is dropped; signals
    that a commit inside the block held back are delivered after it.

    Raises:
        StorageError: a fork could not be made; those made before are dropped.
    """
    forks = Forks(parts)
    with delivering_behind():
        try:
            for entry in entries:
                if owns(branch, entry):
                    forks.tables[entry.table_key] = entry
                else:
                    forks._add(branch.name, entry)
            yield forks
        finally:
            forks._end()


def fork_files(parts: Parts, entry: TableEntry) -> tuple[str, ...]:
    """Return the files of a fork that was just made, for syncing."""
    return parts.refs.files(parts.address(entry), entry.version)


def _drop(parts: Parts, forks: Iterable[TableEntry]) -> None:
    """Drop forks that nothing was committed on; what cannot be dropped is left for cleanup."""
    drop_refs(parts, (parts.address(fork) for fork in forks))
