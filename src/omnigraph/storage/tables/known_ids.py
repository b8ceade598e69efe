"""The ids of small tables on a disk, kept in memory from one write to the next.

A one-row insert asks whether its id is there, and a scan with a filter costs as much as the rest of staging:
every fragment that no index covers is opened for it.

I1  What is kept is the ids of one version, all of them. A lookup in any other version is not answered here.
I2  They move on with a commit of this process that is known to have landed on that very version. Whatever
    else makes a version leaves them behind, and they are read again when a write needs them.
I3  Where rows are is not kept: a fold moves them. An id that is there is looked up in the table.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from omnigraph.core.recent import Recent
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress

ROWS_MAX = 10_000  # ids of a table; reading as many takes no longer than a scan for one of them
TABLES_MAX = 64  # tables whose ids are kept: some 100 bytes for each id


@dataclass(frozen=True, slots=True)
class IdChange:
    """Which ids a write brings and which it takes away: all of them."""

    written: Sequence[str] = ()
    removed: Sequence[str] = ()


UNCHANGED = IdChange()  # indexes and layout


@dataclass(slots=True)
class _Ids:
    version: int
    ids: set[str]


@final
class KnownIds:
    """Ids by the place of their table; safe to share between threads."""

    def __init__(self) -> None:
        """Know none."""
        self._lock = threading.Lock()
        self._tables: Recent[str, _Ids] = Recent(TABLES_MAX)

    def covers(self, handle: SnapshotHandle) -> bool:
        """Say whether the ids of a version are known."""
        known = self._tables.get(handle.address.open_uri)
        return known is not None and known.version == handle.version

    def learn(self, handle: SnapshotHandle, ids: Iterable[str]) -> None:
        """Keep all ids of a version."""
        self._tables.put(handle.address.open_uri, _Ids(handle.version, set(ids)))

    def present(self, handle: SnapshotHandle, ids: Sequence[object]) -> list[str] | None:
        """Return those of some ids that a version has, each once; `None` if that is not known (I1)."""
        known = self._tables.get(handle.address.open_uri)
        if known is None:
            return None
        with self._lock:
            if known.version != handle.version:
                return None
            return [value for value in dict.fromkeys(ids) if isinstance(value, str) and value in known.ids]

    def advance(
        self, address: TableAddress, read_version: int, version: int, change: IdChange = UNCHANGED
    ) -> None:
        """Move on by what this process has committed onto one version, up to another (I2)."""
        known = self._tables.get(address.open_uri)
        if known is None:
            return
        with self._lock:
            if known.version == read_version:
                known.ids.difference_update(change.removed)
                known.ids.update(change.written)
                known.version = version
        if len(known.ids) > 2 * ROWS_MAX:  # nobody asks any more
            self.forget(address)

    def forget(self, address: TableAddress) -> None:
        """Drop what is kept about a place that is gone."""
        self._tables.forget(lambda uri: uri == address.open_uri)
