"""Reads of tables: open at a version, scan, count, look ids up, probe.

T1  Nothing here moves a HEAD or writes a file.
T2  A handle is one version for good; the store may close and reopen what is behind it, never move it.
T3  Every library error leaves as one of ours.
T4  A fork is opened with the paths of its sources put right (`bases`), however it comes to be open.
"""

import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast, final

import lance
import pyarrow as pa
from lance import LanceDataset
from lance.lance import _Session as Session

from omnigraph.core.errors import StorageError
from omnigraph.core.recent import Recent
from omnigraph.core.together import each
from omnigraph.storage.files.special_files import refuse_special_files
from omnigraph.storage.files.transactions import UNREADABLE, TransactionInfo, read_transaction
from omnigraph.storage.search.words import AnalysisCache
from omnigraph.storage.tables.bases import at_home
from omnigraph.storage.tables.filter import FilterValue, RowFilter, to_lance
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.index import Coverage, index_extents
from omnigraph.storage.tables.known_ids import ROWS_MAX, KnownIds
from omnigraph.storage.tables.lance_errors import damage_told, translated
from omnigraph.storage.tables.listed_refs import listed_refs
from omnigraph.storage.tables.reading import reading
from omnigraph.storage.tables.recent_publishes import RecentPublishes
from omnigraph.storage.tables.recent_rows import RecentFiles, newest_files, refreshed
from omnigraph.storage.tables.rows import find_rows
from omnigraph.storage.versions.newest import NewestVersions, RefStart, RefStarts, RowSequences

__all__ = [
    "IoStats",
    "RefInfo",
    "SnapshotHandle",
    "TableAddress",
    "TableStore",
    "TransactionInfo",
]

HANDLES_MAX = 256  # open versions kept for reuse; each holds a manifest in memory, a few KB to a few MB
WRITTEN_MAX = 64  # tables whose newest rows are kept as they were written, 128 KiB each at most
BATCHES_AHEAD = 4  # of a scan that may not read far ahead: enough for the decoder to have work
FINISHED_MAX = 1_000  # counts of closed handles waiting to be added up


@dataclass(frozen=True, slots=True)
class IoStats:
    """Requests and bytes of the handles of one store."""

    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    written_bytes: int = 0

    def __add__(self, other: "IoStats") -> "IoStats":
        return IoStats(
            self.reads + other.reads,
            self.read_bytes + other.read_bytes,
            self.writes + other.writes,
            self.written_bytes + other.written_bytes,
        )


@dataclass(frozen=True, slots=True)
class RefInfo:
    """One ref of a table: where it starts, and the identity of this very ref."""

    name: str
    parent: str | None
    parent_version: int
    identifier: str
    created_at: int  # microseconds


@final
class TableStore:
    """Opens and reads tables; safe to share between threads. All handles share one cache of metadata."""

    def __init__(self, storage_options: dict[str, str] | None = None) -> None:
        """Take the options of the object store; none for a local disk."""
        self._storage_options = storage_options
        self._session = Session()
        self._lock = threading.Lock()
        self._handles: Recent[tuple[TableAddress, int], SnapshotHandle] = Recent(HANDLES_MAX)
        self._probes: Recent[str, SnapshotHandle] = Recent(HANDLES_MAX)  # any version can find the newest
        self._newest = NewestVersions()
        self._looked_at: dict[str, bool] = {}  # places of tables, and whether their refs were looked at
        self.ref_starts = RefStarts()
        self.row_sequences = RowSequences()
        self.known_ids = KnownIds()
        self.publishes = RecentPublishes()
        self._live: weakref.WeakSet[SnapshotHandle] = weakref.WeakSet()
        self._counter = _IoCounter()
        self._recent: dict[str, RecentFiles] = {}  # rows in memory, by the place of their table
        self._written: Recent[str, RecentFiles] = Recent(WRITTEN_MAX)  # likewise, by this process
        self.before_open: Callable[[TableAddress, int], None] | None = None  # may raise: nothing is read then

    @cached_property
    def analyses(self) -> AnalysisCache:
        """The words of texts that are searched without an index."""
        return AnalysisCache()

    def open_at(self, address: TableAddress, version: int) -> SnapshotHandle:
        """Return a table at a version.

        Raises:
            StorageError: the table or the version does not exist (kind `not_found`), or cannot be read.
        """
        known = self._handles.get((address, version))
        if known is not None:
            return known
        if self.before_open is not None:
            self.before_open(address, version)
        with damage_told(address, version):
            return self._keep(address, self._open(address, version))

    def open_head(self, address: TableAddress) -> SnapshotHandle:
        """Return a table at its newest version, looked up now.

        Raises:
            StorageError: the table does not exist (kind `not_found`), or cannot be read.
        """
        return self._keep(address, self._open(address, None))

    def latest_version(self, address: TableAddress) -> int:
        """Return the number of the newest version; a probe, nothing is read.

        Raises:
            StorageError: the table does not exist (kind `not_found`), or cannot be read.
        """
        newest = self._newest.find(address)
        if newest is not None:
            return newest
        probe = self._probes.get(address.open_uri)
        if probe is None or address.local_path is None:  # in a store, opening is one request more, if that
            return self.open_head(address).version
        with translated(f"newest version of {address.open_uri}"):
            version = probe._dataset.latest_version
        self._newest.saw(address, version)
        return version

    def latest_versions(self, addresses: Sequence[TableAddress]) -> list[int]:
        """Return the newest version of each of some tables: in an object store in the time of one request.

        Raises:
            StorageError: a table does not exist (kind `not_found`), or cannot be read.
        """
        is_in_store = any(address.local_path is None for address in addresses)
        return each(self.latest_version, addresses, at_once=is_in_store)

    def exists(self, address: TableAddress) -> bool:
        """Say whether there is a table."""
        try:
            self.open_head(address)
        except StorageError as error:
            if error.kind == "not_found":
                return False
            raise
        return True

    def scan(
        self,
        handle: SnapshotHandle,
        *,
        columns: Sequence[str] | None = None,
        filter: RowFilter | None = None,
        limit: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
    ) -> pa.Table:
        """Return rows, in no promised order."""
        with reading(handle, "scan"):
            return handle._dataset.scanner(
                columns=None if columns is None else list(columns),
                filter=None if filter is None else to_lance(filter, handle.schema),
                limit=limit,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
            ).to_table()

    def scan_batches(
        self,
        handle: SnapshotHandle,
        *,
        columns: Sequence[str] | None = None,
        filter: RowFilter | None = None,
        limit: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_size: int | None = None,
        ahead_bytes: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows batch by batch, so that a table need not fit into memory.

        `ahead_bytes` bounds what is read and decoded before it is asked for: the library's own bound counts
        rows, and those of vectors or long texts come to gigabytes.
        """
        with reading(handle, "scan"):
            yield from handle._dataset.scanner(
                columns=None if columns is None else list(columns),
                filter=None if filter is None else to_lance(filter, handle.schema),
                limit=limit,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                batch_size=batch_size,
                io_buffer_size=ahead_bytes,
                batch_size_bytes=None if ahead_bytes is None else ahead_bytes // BATCHES_AHEAD,
                batch_readahead=None if ahead_bytes is None else BATCHES_AHEAD,
            ).to_batches()

    def count_rows(self, handle: SnapshotHandle, filter: RowFilter | None = None) -> int:
        """Return how many rows there are, or match."""
        if filter is None:
            return handle.row_count
        with reading(handle, "count"):
            return handle._dataset.count_rows(filter=to_lance(filter, handle.schema))

    def existing_ids(self, handle: SnapshotHandle, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that the table has."""
        known = self.known_ids.present(handle, ids)
        if known is not None:
            return set(known)
        found = self.rows_by_id(handle, ids, columns=["id"])
        return set(cast("list[str]", found["id"].to_pylist()))

    def has_none(self, handle: SnapshotHandle, ids: Sequence[str]) -> bool:
        """Say whether a table is known to have none of the ids; of a small one on a disk it always is."""
        if handle.address.local_path is None or handle.row_count > ROWS_MAX:
            return False
        if not self.known_ids.covers(handle):
            found = self.scan(handle, columns=["id"])["id"].to_pylist()
            self.known_ids.learn(handle, cast("list[str]", found))
        return self.known_ids.present(handle, ids) == []

    def rows_by_id(
        self,
        handle: SnapshotHandle,
        ids: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
    ) -> pa.Table:
        """Return the rows that have one of the ids, in no promised order."""
        return self.values_in(
            handle, "id", ids, columns, with_row_id=with_row_id, with_row_address=with_row_address
        )

    def values_in(
        self,
        handle: SnapshotHandle,
        column: str | tuple[str, ...],
        values: Sequence[FilterValue] | Sequence[tuple[FilterValue, ...]],
        columns: Sequence[str] | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
    ) -> pa.Table:
        """Return the rows whose column has one of the values, in no promised order; null equals nothing.

        With a tuple of columns each value is a tuple, and the columns must equal it together.
        """
        keys = (column,) if isinstance(column, str) else column
        rows = [value if isinstance(value, tuple) else (value,) for value in values]
        with reading(handle, "lookup"):
            return find_rows(
                handle, keys, rows, columns, with_row_id=with_row_id, with_row_address=with_row_address
            )

    def transaction_info(self, address: TableAddress, version: int) -> TransactionInfo:
        """Return what made a version.

        Raises:
            StorageError: there is no such version (kind `not_found`), or the store failed.
        """
        handle = self.open_at(address, version)
        return read_transaction(handle._own_dataset(), address, version)

    def transactions(self, address: TableAddress, versions: range) -> list[TransactionInfo]:
        """Return what made each of some versions; for a damaged one below the last, that is unknown.

        The last one does not need it: the table has gone back past the damage.

        Raises:
            StorageError: the last version cannot be read, or the store failed.
        """
        return [self._transaction_below(address, version, versions[-1]) for version in versions]

    def _transaction_below(self, address: TableAddress, version: int, last: int) -> TransactionInfo:
        try:
            return self.transaction_info(address, version)
        except StorageError as error:
            if version == last or error.kind in {"transient", "configuration"}:
                raise
            return TransactionInfo(version, None, None, UNREADABLE)

    def index_coverage(self, handle: SnapshotHandle) -> dict[str, Coverage]:
        """Return, for each index by name, whether it covers every row."""
        return {name: extent.coverage for name, extent in index_extents(handle).items()}

    def list_refs(self, address: TableAddress) -> tuple[RefInfo, ...]:
        """Return the refs of a table by name.

        Raises:
            StorageError: the table does not exist (kind `not_found`), or the store failed.
        """
        root = self.open_head(TableAddress(address.uri))
        with translated(f"refs of {address.uri}"):
            listed = listed_refs(root._dataset)
        return tuple(
            RefInfo(
                name,
                ref["parent_branch"],
                ref["parent_version"],
                ref["branch_identifier"][-1][1],
                ref["create_at"] * 1_000_000,
            )
            for name, ref in sorted(listed.items())
        )

    def ref_start(self, address: TableAddress) -> RefStart | None:
        """Return where a ref of a table starts; `None` if there is no such ref. It is looked up once.

        Raises:
            StorageError: the table does not exist (kind `not_found`), or the store failed.
        """
        known = self.ref_starts.find(address)
        if known is None:
            for ref in self.list_refs(address):
                self.ref_starts.learn(
                    TableAddress(address.uri, ref.name), RefStart(ref.parent, ref.parent_version)
                )
            known = self.ref_starts.find(address)
        return known

    def io_stats(self) -> IoStats:
        """Return requests and bytes of every handle so far, those already closed included."""
        for handle in list(self._live):
            self._counter.add(handle._dataset)
        return self._counter.total()

    def open_unshared(self, address: TableAddress, version: int | None = None) -> LanceDataset:
        """Open a dataset for another module of `storage` that moves it: no other caller gets this object."""
        return self._open(address, version)

    def forget(self, address: TableAddress) -> None:
        """Drop what is kept about a place that is gone."""
        self._handles.forget(lambda key: key[0] == address)
        self._probes.forget(lambda uri: uri == address.open_uri)
        self._newest.forget(address)
        self.ref_starts.forget(address)
        self.known_ids.forget(address)
        self._written.forget(lambda uri: uri == address.open_uri)

    def forget_versions(self, address: TableAddress, versions: Collection[int]) -> None:
        """Drop what is kept about versions that are gone."""
        self._handles.forget(lambda key: key[0] == address and key[1] in versions)
        self._probes.forget(lambda uri: uri == address.open_uri)

    def keep_recent(self, address: TableAddress, files: RecentFiles) -> None:
        """Have what is opened from now on use rows of small fragments that are in memory."""
        with self._lock:
            self._recent[address.open_uri] = {**self._recent.get(address.open_uri, {}), **files}

    def keep_written(self, address: TableAddress, files: RecentFiles) -> None:
        """Have what is opened from now on use rows that were just written, whatever becomes of the write."""
        if files:
            with self._lock:
                kept = newest_files({**self._written_files(address), **files})
                self._written.put(address.open_uri, kept)

    def _written_files(self, address: TableAddress) -> RecentFiles:
        return self._written.get(address.open_uri) or {}

    def recent_files(self, address: TableAddress, version: int) -> RecentFiles:
        """Return rows of the small fragments of a table; new ones of others are read if the version is open.

        Raises:
            StorageError: the store failed.
        """
        known = self._recent.get(address.open_uri, {})
        handle = self._handles.get((address, version))
        if handle is None:
            return known
        with translated(f"read {address.open_uri}"):
            files = refreshed(handle._dataset, known, self._written_files(address))
        self._recent[address.open_uri] = files
        return files

    def count_io(self, dataset: LanceDataset) -> None:
        """Add what a dataset outside the handles has read and written to `io_stats`."""
        self._counter.add(dataset)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options of the object store; none for a local disk."""
        return self._storage_options

    def adopt(self, address: TableAddress, dataset: LanceDataset) -> SnapshotHandle:
        """Make a handle of a dataset that another module of `storage` has just committed."""
        if address.local_path is None:
            self._newest.saw_newest(address, dataset.version)
        return self._keep(address, self._at_home(address, dataset))

    def _open(self, address: TableAddress, version: int | None) -> LanceDataset:
        if address.local_path is None:
            return self._open_in_store(address, version)
        newest = self._newest.find(address) if version is None else None
        if newest is not None:
            try:
                return self._open_version(address, newest)
            except StorageError as error:
                if error.kind != "not_found":  # removed since, by a cleanup: let the library look
                    raise
        dataset = self._open_version(address, version)
        self._newest.saw(address, dataset.version)
        return dataset

    def _open_in_store(self, address: TableAddress, version: int | None) -> LanceDataset:
        """Open with as few requests as possible: what is open already can be had again without any."""
        if version is not None:
            return self._open_version(address, version)
        newest = self._newest.find(address)
        known = None if newest is None else self._handles.get((address, newest))
        if known is None:
            known = self._keep(address, self._open_version(address, None))
            self._newest.saw_newest(address, known.version)
        return known._own_dataset()

    def _open_version(self, address: TableAddress, version: int | None) -> LanceDataset:
        self._refuse_special_files(address)
        what = f"{address.open_uri} at version {version}" if version else address.open_uri
        with translated(f"open {what}"):
            dataset = lance.dataset(
                address.open_uri,
                version=version,
                storage_options=self._storage_options,
                session=self._session,
            )
        if dataset.version == 0 or version not in {None, dataset.version}:
            # A version file full of zeros opens as version 0 without an error.
            raise StorageError(f"open {what}: the version file is hollow", kind="permanent")
        return self._at_home(address, dataset)

    def _refuse_special_files(self, address: TableAddress) -> None:
        """Look once at what a folder was handed over with; a ref shares files with its table's other refs."""
        folder = TableAddress(address.uri).local_path
        with_refs = address.ref is not None
        if folder is None or self._looked_at.get(address.uri, -1) >= with_refs:
            return
        refuse_special_files(folder, with_refs=with_refs)
        self._looked_at[address.uri] = with_refs

    def _at_home(self, address: TableAddress, dataset: LanceDataset) -> LanceDataset:
        return at_home(address, dataset, storage_options=self._storage_options, session=self._session)

    def _keep(self, address: TableAddress, dataset: LanceDataset) -> SnapshotHandle:
        recent = {**self._recent.get(address.open_uri, {}), **self._written_files(address)}
        handle = SnapshotHandle(address, dataset.version, dataset, recent)
        kept = self._handles.keep((address, handle.version), handle)
        self._probes.put(address.open_uri, kept)
        with self._lock:
            self._live.add(kept)
        if len(self._counter) > FINISHED_MAX:
            self._counter.total()
        weakref.finalize(handle, self._counter.add, dataset).atexit = False
        return kept


class _IoCounter:
    """Adds up what handles read and wrote.

    The garbage collector tells it about a closed one, at any moment and in any thread: `add` takes no lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = IoStats()
        self._finished: deque[IoStats] = deque()

    def add(self, dataset: LanceDataset) -> None:
        grown = dataset.io_stats_incremental()
        self._finished.append(
            IoStats(grown.read_iops, grown.read_bytes, grown.write_iops, grown.written_bytes)
        )

    def __len__(self) -> int:
        return len(self._finished)

    def total(self) -> IoStats:
        with self._lock:
            while self._finished:
                self._total += self._finished.popleft()
            return self._total
