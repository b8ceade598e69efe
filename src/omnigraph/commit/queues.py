"""Write queues: who in this process may write what, and in which order locks are taken.

W1  The order is always: schema gate, branch gates, table queues, writer lock, coordinator lock, publish lock.
    No thread takes an earlier class while holding a later one.
W2  Queues serialise one process. The correctness of the data never depends on them: strict shapes, the
    publisher's fence, sidecars and their locks ensure that.
"""

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

QueueKey = tuple[str, str]  # table key and name of the branch

_managers: "weakref.WeakValueDictionary[str, WriteQueueManager]" = weakref.WeakValueDictionary()
_managers_lock = threading.Lock()


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
