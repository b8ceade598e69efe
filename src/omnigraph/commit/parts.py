"""What the commit protocol works with: the stores, clocks, locks and queues of one open graph.

`Doubts` is what the last sweep had to leave, so that the drift guard can refuse the tables concerned. Some
sidecars belong to commits that may or may not be on the disk; others wait for the restore that only a
read-write open makes. Every other one is settled by another process, or by the next sweep.

`recorded` is what manifests record about files, by their paths: of those that this process published last,
and of those that it had to look up. Upkeep compares files with it.

Queues say who in this process may write what, and in which order locks are taken:

W1  The order is always: schema gate, branch gates, table queues, table locks (`table_locks.py`), writer lock,
    coordinator lock, publish lock. No thread takes an earlier class while holding a later one.
W2  Queues serialise one process. The correctness of the data never depends on them: strict shapes, the
    publisher's fence, sidecars and their locks ensure that.
"""

import os
import socket
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.core.clock import now_micros
from omnigraph.core.errors import RecoveryRequired
from omnigraph.core.ids import new_ulid
from omnigraph.core.recent import Recent
from omnigraph.history.branches import Branches
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.fold import TableEntry
from omnigraph.history.readers import Readers
from omnigraph.storage.control.durability import Syncer
from omnigraph.storage.control.lease import boot_identity
from omnigraph.storage.control.object_store import StorageAdapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.control.writers import Writer
from omnigraph.storage.files.sums import NO_SUMS, FileSum, Summer
from omnigraph.storage.tables.audit_table import AuditTable
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.refs import RefStore
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.table import TableStore

if TYPE_CHECKING:
    from omnigraph.commit.sidecar import Sidecar

QueueKey = tuple[str, str]  # table key and name of the branch

_managers: "weakref.WeakValueDictionary[str, WriteQueueManager]" = weakref.WeakValueDictionary()
_managers_lock = threading.Lock()

RECORDED_MAX = 4096  # files: what a few rounds of upkeep fold
RECOVERIES_DATASET = "_graph_commit_recoveries.lance"


class WriteQueueManager:
    """The queues of one graph root; every handle of this process on that root shares them."""

    def __init__(self) -> None:
        """Start with no queues; each is created when first asked for."""
        self.schema_gate = threading.RLock()
        self._lock = threading.Lock()
        self._queues: dict[QueueKey, threading.Lock] = {}
        self._branch_gates: dict[str, threading.Lock] = {}

    @classmethod
    def for_root(cls, identity: str) -> "WriteQueueManager":
        """Return the manager of a root, however it is spelled."""
        with _managers_lock:
            manager = _managers.get(identity)
            if manager is None:
                manager = _managers[identity] = cls()
            return manager

    @contextmanager
    def branch_gates(self, branches: Iterable[str]) -> Iterator[None]:
        """Hold the gates of branches, by name, in sorted order (W1)."""
        with self._lock:
            gates = [self._branch_gates.setdefault(name, threading.Lock()) for name in sorted(set(branches))]
        with ExitStack() as held:
            for gate in gates:
                held.enter_context(gate)
            yield

    @contextmanager
    def acquire_many(self, keys: Iterable[QueueKey]) -> Iterator[None]:
        """Hold several queues, taken in sorted order (W1)."""
        with ExitStack() as held:
            for queue in self._sorted(keys):
                held.enter_context(queue)
            yield

    @contextmanager
    def try_one(self, key: QueueKey) -> Iterator[bool]:
        """Hold one queue if it is free; yield whether it is held."""
        (queue,) = self._sorted([key])
        is_held = queue.acquire(blocking=False)
        try:
            yield is_held
        finally:
            if is_held:
                queue.release()

    def _sorted(self, keys: Iterable[QueueKey]) -> list[threading.Lock]:
        with self._lock:
            return [self._queues.setdefault(key, threading.Lock()) for key in sorted(set(keys))]


class Doubts:
    """These sidecars, as the last sweep of this handle found them."""

    def __init__(self) -> None:
        """Begin without a doubt, and without a look."""
        self._kept: dict[str, tuple[Sidecar, str]] = {}
        self.waiting: frozenset[str] = frozenset()
        self._nothing_found_at: float | None = None
        self._left_at = -inf

    def keep(self, sidecar: "Sidecar", reason: str) -> None:
        """Refuse the tables of a sidecar from now on."""
        self._kept[sidecar.operation_id] = (sidecar, reason)

    def learn(
        self, *, left: Collection[str], waiting: Collection[str], nothing_found_at: float | None
    ) -> None:
        """Forget what has been settled since; remember what waits for a read-write open."""
        self._nothing_found_at = nothing_found_at
        self.waiting = frozenset(waiting)
        self._kept = {key: kept for key, kept in self._kept.items() if key in left}

    def leave(self, at: float) -> None:
        """Note that a write of this handle has left a sidecar."""
        self._left_at = at

    @property
    def clear_at(self) -> float | None:
        """When the last sweep began, if it found no sidecar and this handle has left none since."""
        found_at = self._nothing_found_at
        return None if found_at is None or found_at <= self._left_at else found_at

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
    branches: Branches
    coordinator: Coordinator
    syncer: Syncer
    queues: WriteQueueManager
    clock: Callable[[], int] = now_micros
    new_id: Callable[[], str] = new_ulid
    warn: Callable[[str], None] = field(default=lambda _message: None)
    upkeep: bool = True
    writer: Writer | None = None
    summer: Summer = NO_SUMS
    doubts: Doubts = field(default_factory=Doubts)
    readers: Readers = field(default_factory=Readers)
    recorded: Recent[str, FileSum] = field(default_factory=lambda: Recent(RECORDED_MAX))

    def check_writer(self) -> None:
        """Make sure that others still count this process as a writer; a local disk has locks instead.

        Raises:
            WriterEnded: they have taken it for dead.
            WriterLeaseHeld: it was to be the only one, and another one has taken its place.
        """
        if self.writer is not None:
            self.writer.check()

    @property
    def refs(self) -> RefStore:
        """How refs are made and dropped."""
        return RefStore(self.store)

    @property
    def audit(self) -> AuditTable:
        """The audit of finished recoveries."""
        return AuditTable(self.store)

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
