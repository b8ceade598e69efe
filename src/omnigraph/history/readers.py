"""Who reads which snapshot in this process, so that cleanup leaves alone what they read.

R1  What a reader has pinned counts until it ends: a query with its answer, a view or an export when nobody
    holds it any more. Versions from the pinned ones on stay, because a feed goes on to newer ones.
R2  Every handle on one root shares the registry, however the root is spelled.

Readers in other processes cannot be asked. For them cleanup keeps what was replaced a short while ago.
"""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.history.state import Snapshot

PinnedVersion = tuple[str, str | None, int]  # the place of a table, a ref of it, and a version

_registries: "weakref.WeakValueDictionary[str, Readers]" = weakref.WeakValueDictionary()
_registries_lock = threading.Lock()


class Reader:
    """One reader: what it has pinned so far."""

    def __init__(self) -> None:
        """Begin without a pin."""
        self._pinned: set[PinnedVersion] = set()

    def pin(self, snapshot: Snapshot) -> None:
        """Count the tables of a snapshot as read from now on."""
        self._pinned |= {
            (entry.location, entry.pin.ref, entry.version) for entry in tuple(snapshot.entries.values())
        }

    @property
    def pinned(self) -> frozenset[PinnedVersion]:
        """What it has pinned."""
        return frozenset(self._pinned)


class Readers:
    """The readers of one graph in this process; safe to share between threads (R2)."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._active: dict[int, Reader] = {}

    @classmethod
    def for_root(cls, identity: str) -> "Readers":
        """Return the registry of a root."""
        with _registries_lock:
            found = _registries.get(identity)
            if found is None:
                found = _registries[identity] = cls()
            return found

    @contextmanager
    def reading(self, *snapshots: Snapshot) -> Iterator[Reader]:
        """Count as a reader for the duration of a block (R1)."""
        reader = self._begin(snapshots)
        try:
            yield reader
        finally:
            self._end(reader)

    def keep(self, owner: object, *snapshots: Snapshot) -> None:
        """Count an object as a reader of snapshots for as long as anybody holds it (R1)."""
        reader = self._begin(snapshots)
        weakref.finalize(owner, self._end, reader).atexit = False

    def pinned(self) -> frozenset[PinnedVersion]:
        """Return what all readers have pinned."""
        with self._lock:
            readers = tuple(self._active.values())
        return frozenset(pin for reader in readers for pin in reader.pinned)

    def _begin(self, snapshots: tuple[Snapshot, ...]) -> Reader:
        reader = Reader()
        for snapshot in snapshots:
            reader.pin(snapshot)
        with self._lock:
            self._active[id(reader)] = reader
        return reader

    def _end(self, reader: Reader) -> None:
        # The garbage collector calls this in any thread, perhaps in one that holds the lock: so without it.
        self._active.pop(id(reader), None)
