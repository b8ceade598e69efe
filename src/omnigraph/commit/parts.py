"""What the commit protocol works with: the stores, clocks and locks of one open graph.

`Doubts` is what the last sweep had to leave, so that the drift guard can refuse the tables concerned. Some
sidecars belong to commits that may or may not be on the disk; others wait for the restore that only a
read-write open makes. Every other one is settled by another process, or by the next sweep.
"""

import os
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.commit.queues import WriteQueueManager
from omnigraph.core.clock import now_micros
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.ids import new_ulid
from omnigraph.history.branches import Branches
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.fold import TableEntry
from omnigraph.storage.control.durability import Syncer
from omnigraph.storage.control.lease import WriterLease, boot_identity
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.sums import NO_SUMS, Summer
from omnigraph.storage.tables.audit_table import AuditTable
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.table import TableStore

if TYPE_CHECKING:
    from omnigraph.commit.sidecar import Sidecar
    from omnigraph.history.fold import TableEntry


RECOVERIES_DATASET = "_graph_commit_recoveries.lance"


class Doubts:
    """These sidecars, as the last sweep of this handle found them."""

    def __init__(self) -> None:
        """Begin without a doubt."""
        self._kept: dict[str, tuple[Sidecar, str]] = {}
        self.waiting: frozenset[str] = frozenset()

    def keep(self, sidecar: "Sidecar", reason: str) -> None:
        """Refuse the tables of a sidecar from now on."""
        self._kept[sidecar.operation_id] = (sidecar, reason)

    def learn(self, *, left: Collection[str], waiting: Collection[str]) -> None:
        """Forget what has been settled since; remember what waits for a read-write open."""
        self.waiting = frozenset(waiting)
        self._kept = {key: kept for key, kept in self._kept.items() if key in left}

    def refuse(self, entry: "TableEntry") -> None:
        """Refuse a table whose newest commit is in doubt.

        Raises:
            RecoveryRequired: a person must decide first; the message says how.
        """
        for sidecar, reason in tuple(self._kept.values()):
            if sidecar.names(entry.identity, entry.pin.ref):
                raise RecoveryRequired(sidecar.operation_id, reason)


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything of one open graph that a writer or a healer touches."""

    root: GraphRoot
    adapter: StorageAdapter
    store: TableStore
    stager: TableStager
    refs: RefStore
    branches: Branches
    coordinator: Coordinator
    audit: AuditTable
    syncer: Syncer
    queues: WriteQueueManager
    clock: Callable[[], int] = now_micros
    new_id: Callable[[], str] = new_ulid
    warn: Callable[[str], None] = field(default=lambda _message: None)
    upkeep: bool = True
    lease: WriterLease | None = None
    summer: Summer = NO_SUMS
    doubts: Doubts = field(default_factory=Doubts)

    def check_lease(self) -> None:
        """Make sure that this process is still the writer; a local disk has no lease.

        Raises:
            WriterLeaseHeld: another process has taken over.
        """
        if self.lease is not None:
            self.lease.check()

    @property
    def local_root(self) -> Path | None:
        """The graph's directory, or None on an object store."""
        return Path(self.root.uri) if self.root.is_local else None

    def address(self, entry: TableEntry) -> TableAddress:
        """Return the address of the pinned version of a table."""
        return TableAddress(self.root.child(entry.location), entry.pin.ref)

    def pinned(self, entry: TableEntry) -> PinnedTable:
        """Return the address and version of a table at its pin."""
        return PinnedTable(self.address(entry), entry.version, entry.table_key)

    def open(self, entry: TableEntry) -> SnapshotHandle:
        """Open a table at its pin.

        Raises:
            HistoricalVersionReclaimed: the version was cleaned up.
            StorageError: it cannot be read.
        """
        return self.pinned(entry).open(self.store)

    def address_of(self, path: str, ref: str | None) -> TableAddress:
        """Return the address of a table from its graph-relative path."""
        return TableAddress(self.root.child(path), ref)

    @property
    def audit_address(self) -> TableAddress:
        """Where finished recoveries are recorded."""
        return TableAddress(self.root.child(RECOVERIES_DATASET))


def host_name() -> str:
    """Return this machine's name, for messages."""
    return socket.gethostname()


def boot_id() -> str:
    """Return an id for this boot of this machine and its pid namespace; empty if unknown."""
    return boot_identity()


def process_id() -> int:
    """Return the id of this process."""
    return os.getpid()
