"""The `__manifest` dataset: creating it, reading it, and the one fenced write that publishes.

M1  A publish is one strict update of the shape that tables have: new rows, the rows that they replace deleted
    by address, and the anchor. Of two on one version Lance refuses the later one; nothing is read for it.
M2  A publish is made on the version that its handle was opened at, or that the publish before made. Versions
    that a trim removed in between would let two publishes pass: nobody publishes on an old handle.
M3  A reader takes whole fragments: those it has already seen need not be read again.
M4  Keys are not compared here: whoever publishes knows the state, and refuses a key that it has.
M5  A fold is an update of that shape, too, and gives rows new row ids: the sequences of a version stay short,
    whatever the number of commits. Publishes in flight are refused by it, and it by them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import LanceFragment

from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import (
    CommitConflict,
    RecoveryRequired,
    RowLevelCasContention,
    StaleCommit,
    StorageError,
)
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.core.together import both
from omnigraph.storage.damage.manifest_survey import refuse_damage, refuse_missing
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.dataset_file import remove_transactions
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.tables import shapes
from omnigraph.storage.tables.create import create_dataset
from omnigraph.storage.tables.filter import Compare, IsNull, Or, to_lance
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, classify, translate, translated
from omnigraph.storage.tables.layout import auto_cleanup_keys
from omnigraph.storage.tables.recent_publishes import kept_columns
from omnigraph.storage.tables.stage import TableStager, staged_on
from omnigraph.storage.tables.staged import StagedWrite, files_added, new_files
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.newest import Mark, read_mark, write_mark

if TYPE_CHECKING:
    from omnigraph.storage.tables.older_manifest import OlderManifests

ROW_ADDRESS = "_rowaddr"  # the further column of a read with places
_WITHOUT_ROWS = frozenset({"config", "reserve"})  # commits that a publish may land behind


@dataclass(frozen=True, eq=False)
class ManifestHandle:
    """One version of `__manifest`, opened for one attempt; opaque."""

    address: TableAddress
    version: int
    fragment_ids: tuple[int, ...]
    schema_metadata: dict[str, str]
    opened_at: float  # seconds of the boot-time clock, which goes on while the machine sleeps
    _dataset: LanceDataset = field(repr=False)
    files: tuple[str, ...] = ()  # what a publish wrote that made this version, if local; unknown otherwise

    def fragments(self, known: Mapping[int, str]) -> dict[int, str]:
        """Return the data files of all fragments by number; those of known numbers are not looked at."""
        return {number: known.get(number) or self.data_file(number) for number in self.fragment_ids}

    def data_file(self, number: int) -> str:
        """Return the name of a fragment's data file, which no other fragment ever had."""
        fragment = self._dataset.get_fragment(number)
        return "" if fragment is None else "/".join(map(data_file_name, fragment.data_files()))


@final
class ManifestTable:
    """Raw operations on manifests; safe to share between threads."""

    def __init__(self, store: TableStore) -> None:
        """Take the store whose options and cache are shared."""
        self._store = store
        self._stager = TableStager(store)

    def create(self, address: TableAddress, rows: pa.Table, schema_metadata: dict[str, str]) -> int:
        """Create a manifest with its first rows and its stamp, in one write; return its version.

        Raises:
            AlreadyExistsError: there is a dataset.
            StorageError: the store failed; whether the manifest was created is unknown.
        """
        schema = rows.schema.with_metadata(schema_metadata)
        return create_dataset(self._store, address, rows.cast(schema))

    def open_fresh(self, address: TableAddress) -> ManifestHandle:
        """Open the newest version, looked up now (M2).

        Raises:
            StorageError: there is no manifest (kind `not_found`), or it cannot be read.
            GraphDamaged: a file that it needs is gone or hollow.
        """
        opened_at = boot_clock()  # before the look: a handle is never younger than it says
        with damage_is_told(address):
            dataset = self._store.open_unshared(address)
        refuse_missing(address, dataset.version)
        return self._handle(address, dataset, opened_at)

    def is_newest(self, handle: ManifestHandle) -> bool:
        """Return whether the version of a handle is the newest one, looked up now; nothing is read.

        Raises:
            StorageError: there is no manifest (kind `not_found`), or the store failed.
            GraphDamaged: newer versions that were acknowledged are gone.
        """
        newest = self.latest_version(handle.address)
        refuse_missing(handle.address, newest)
        return newest == handle.version

    def open_at(self, address: TableAddress, version: int) -> ManifestHandle:
        """Open one version, to look at the past as it is on the disk.

        Raises:
            StorageError: there is no such version (kind `not_found`), or it cannot be read.
        """
        return self._handle(address, self._store.open_unshared(address, version), boot_clock())

    def _handle(self, address: TableAddress, dataset: LanceDataset, opened_at: float) -> ManifestHandle:
        self._store.count_io(dataset)
        fragment_ids = _fragment_ids(dataset)
        with damage_is_told(address), translated(f"read {address.open_uri}"):
            found = dataset.schema.metadata or {}
        metadata = {key.decode(): value.decode() for key, value in found.items()}
        return ManifestHandle(address, dataset.version, fragment_ids, metadata, opened_at, dataset)

    def latest_version(self, address: TableAddress) -> int:
        """Return the number of the newest version; a probe, nothing is read.

        Raises:
            StorageError: there is no manifest (kind `not_found`), or the store failed.
        """
        return self._store.latest_version(address)

    def read(
        self,
        handle: ManifestHandle,
        *,
        fragment_ids: Iterable[int] | None = None,
        columns: Sequence[str] | None = None,
        published_after: int | None = None,
        with_places: bool = False,
    ) -> pa.Table:
        """Return rows: of all fragments or of the given ones, and only what was published after a version.

        Rows without `published_at`, the heads, describe the present and are always included. With places
        there is one further column, `ROW_ADDRESS`.
        """
        dataset = handle._dataset
        chosen = None
        if fragment_ids is not None:
            wanted = set(fragment_ids)
            chosen = [part for part in dataset.get_fragments() if part.fragment_id in wanted]
            if not chosen:
                return _empty(dataset.schema, columns, with_places=with_places)
        if self._store.publishes.is_on and columns is not None and published_after is None:
            return self._read_beside_kept(handle, chosen, columns, with_places=with_places)
        text = None
        if published_after is not None:
            newer = Or((Compare("published_at", "gt", published_after), IsNull("published_at")))
            text = to_lance(newer, dataset.schema)
        with damage_is_told(handle.address), translated(f"read {handle.address.open_uri}"):
            rows = dataset.scanner(
                columns=None if columns is None else list(columns),
                filter=text,
                fragments=chosen,
                with_row_address=with_places,
            ).to_table()
        self._store.count_io(dataset)
        return rows

    def _read_beside_kept(
        self,
        handle: ManifestHandle,
        chosen: Sequence[LanceFragment] | None,
        columns: Sequence[str],
        *,
        with_places: bool,
    ) -> pa.Table:
        """Return columns of all rows of some fragments, those in memory from there, in a scan's order."""
        dataset, publishes = handle._dataset, self._store.publishes
        parts = dataset.get_fragments() if chosen is None else chosen
        kept = publishes.rows_of(parts, columns, dataset.schema)
        others = [part for part in parts if part.fragment_id not in kept]
        schema = _empty(dataset.schema, columns, with_places=True).schema
        pieces = [rows.cast(schema) for rows in kept.values()]
        if others:
            with damage_is_told(handle.address), translated(f"read {handle.address.open_uri}"):
                scanner = dataset.scanner(columns=list(columns), fragments=others, with_row_address=True)
                read = scanner.to_table()
            self._store.count_io(dataset)
            if set(kept_columns(dataset.schema)) <= set(columns):
                publishes.learn(others, read)
            pieces.append(read.select(schema.names).cast(schema))
        together = pa.concat_tables(pieces) if pieces else schema.empty_table()
        places = {part.fragment_id: place for place, part in enumerate(parts)}
        addresses = together[ROW_ADDRESS].to_numpy()
        holders = [places[int(address) >> 32] for address in addresses]
        together = together.take(np.lexsort((addresses, np.array(holders, np.int64))))
        return together if with_places else together.select(list(columns))

    def publish(
        self,
        handle: ManifestHandle,
        rows: pa.Table,
        *,
        commit_id: str,
        replaced: Sequence[int] = (),
    ) -> ManifestHandle:
        """Add rows to the version of the handle alone, in place of those at some addresses (M1).

        Returns the version that came out. It is higher than the next one only above commits without rows: a
        stamp, or the first half of a fold by an earlier build that this publish has made fail.

        Raises:
            RowLevelCasContention: another commit came first; nothing of ours landed.
            StaleCommit: it landed, above rows that it was not prepared for (M2).
            StorageError: it failed; whether it landed is unknown.
        """
        version, files = self._committed(handle, self._staged(handle, rows, replaced), commit_id)
        made = self._store.open_at(handle.address, version)._dataset  # kept by the commit: nothing is read
        if version > handle.version + 1:  # a stamp changes the metadata, an update does not
            return self._handle(handle.address, made, handle.opened_at)
        self._store.count_io(made)
        after = replace(handle, version=version, fragment_ids=_fragment_ids(made), _dataset=made, files=files)
        new = set(after.fragment_ids) - set(handle.fragment_ids)
        if len(new) == 1:
            self._store.publishes.keep_written(after.data_file(new.pop()), rows)
        return after

    def _committed(
        self, handle: ManifestHandle, staged: StagedWrite, operation_id: str
    ) -> tuple[int, tuple[str, ...]]:
        """Commit an update; return the version that came out, and its files if they are known."""
        files = (*staged.files, *staged.commit_files)
        try:
            version = self._stager.commit_staged(
                staged, operation_id=operation_id, writer_kind=staged.kind
            ).version
        except CommitConflict as error:
            raise RowLevelCasContention(f"another publish to {handle.address.open_uri} came first") from error
        except StaleCommit as stale:
            since = self._store.transactions(handle.address, range(handle.version + 1, stale.actual + 1))
            if any(passed.operation not in _WITHOUT_ROWS for passed in since[:-1]):
                raise
            version, files = stale.actual, ()
        except RecoveryRequired as error:
            raise StorageError(str(error), kind="unknown") from error
        finally:
            self._store.count_io(handle._dataset)
        return version, files

    def _staged(self, handle: ManifestHandle, rows: pa.Table, replaced: Sequence[int]) -> StagedWrite:
        dataset = handle._dataset
        addresses = np.array(replaced, dtype=np.uint64)
        new, (removed, updated) = both(
            lambda: shapes.write_rows(dataset, rows.cast(dataset.schema)),
            lambda: shapes.delete_addresses(dataset, addresses),
            at_once=handle.address.local_path is None,
        )
        operation = shapes.replacement(dataset, removed=removed, updated=updated, new=new)
        files = new_files(handle.address, dataset, new=new, updated=updated)
        base = SnapshotHandle(handle.address, handle.version, dataset)
        return staged_on(base, "publish", operation, files, added=rows.num_rows - len(replaced))

    def stamp(self, handle: ManifestHandle, schema_metadata: dict[str, str]) -> int:
        """Set keys of the schema metadata; return the version that came out.

        Raises:
            RowLevelCasContention: another process stamped it first; nothing of ours landed.
            StorageError: it failed; whether it landed is unknown.
        """
        dataset = handle._dataset.checkout_version(handle.version)
        try:
            with refused_as_contention(handle, "stamp"):
                # Inline: schema metadata has no staged form; two stamps refuse each other.
                dataset.update_schema_metadata(dict[str, str | None](schema_metadata))
        finally:
            self._store.count_io(dataset)
        return dataset.version

    def compact(self, address: TableAddress) -> int:
        """Write the rows of all fragments that are not full anew; return the newest version then (M5).

        Raises:
            RowLevelCasContention: a publish came in between; nothing is folded.
            StorageError: the store failed.
        """
        handle = self.open_fresh(address)
        dataset = handle._dataset
        folded = [part for part in dataset.get_fragments() if not _is_full(part)]
        if len(folded) < 2 and not any(part.num_deletions for part in folded):
            return handle.version
        with translated(f"read {address.open_uri}"):
            rows = dataset.scanner(fragments=folded).to_table()
        new = shapes.write_rows(dataset, rows)
        removed = [part.fragment_id for part in folded]
        operation = shapes.replacement(dataset, removed=removed, updated=[], new=new)
        base = SnapshotHandle(address, handle.version, dataset)
        staged = staged_on(base, "fold", operation, new_files(address, dataset, new=new))
        return self._committed(handle, staged, "fold")[0]

    def keep_versions(self, handle: ManifestHandle) -> None:
        """Unset what would have the library remove versions by itself; nothing is done where it is not set.

        Raises:
            RowLevelCasContention: another commit came first; nothing of ours landed.
            StorageError: it failed; whether it landed is unknown.
        """
        keys = auto_cleanup_keys(handle._dataset)
        if keys:
            base = SnapshotHandle(handle.address, handle.version, handle._dataset)
            self._committed(handle, self._stager.stage_unset(base, keys), "unset")

    def remove_transactions(self, address: TableAddress, *, below: int) -> None:
        """Remove the copies of transactions that were prepared on versions below one: nobody reads them.

        Raises:
            StorageError: they cannot be listed or removed.
        """
        remove_transactions(self._store.open_head(address), below=below)

    @property
    def older(self) -> "OlderManifests":
        """What only manifests of earlier formats need."""
        from omnigraph.storage.tables.older_manifest import OlderManifests

        return OlderManifests(self._store)

    @property
    def store(self) -> TableStore:
        """The store whose options and cache are shared."""
        return self._store

    def synced_version(self, address: TableAddress) -> int:
        """Return up to which version a manifest is noted to be on the disk; 0 where nothing is noted."""
        return 0 if address.local_path is None else read_mark(address.local_path).synced

    def noted_sums(self, address: TableAddress, version: int) -> tuple[FileSum, ...]:
        """Return the checksums of what the newest publish wrote to the manifest, where they are noted.

        `version` is the newest one that is there; a note about a newer one tells of what is gone. None tells
        of files elsewhere.

        Raises:
            StorageError: the note cannot be read.
        """
        mark = Mark() if address.local_path is None else read_mark(address.local_path)
        folder = f"{address.uri.rpartition('/')[2]}/"
        own = tuple(item for item in mark.sums if item.path.startswith(folder))
        return own if mark.acknowledged >= version else ()

    def note(
        self, address: TableAddress, version: int, *, is_synced: bool, sums: Sequence[FileSum] = ()
    ) -> None:
        """Note that a manifest is acknowledged up to a version, which the caller may just have synced.

        `sums` are those of the files that it added.

        Raises:
            StorageError: the note could not be written; the versions are there anyway.
        """
        if address.local_path is not None:
            write_mark(address.local_path, version, is_synced=is_synced, sums=sums)

    def files_of(self, address: TableAddress, version: int) -> tuple[str, ...]:
        """Return the local files that a version added, for syncing; none on an object store.

        Raises:
            StorageError: the version cannot be read.
        """
        if address.local_path is None:
            return ()
        after = self._store.open_at(address, version)._dataset
        try:
            before = self._store.open_at(address, version - 1)._dataset
        except StorageError as error:
            if error.kind != "not_found":
                raise
            before = None  # the first version, or the first of a ref
        return files_added(address, before, after)


@contextmanager
def refused_as_contention(handle: ManifestHandle, what: str) -> Iterator[None]:
    """Turn the library's refusal of an inline commit into ours; `what` says what was being done."""
    try:
        yield
    except LANCE_ERRORS as error:
        if classify(error) in {"conflict", "incompatible"}:
            raise RowLevelCasContention(
                f"another process was first to {what} {handle.address.open_uri}"
            ) from error
        raise translate(error, f"{what} {handle.address.open_uri}") from error


@contextmanager
def damage_is_told(address: TableAddress) -> Iterator[None]:
    """Name the file if a manifest cannot be read because one of its files is gone or hollow."""
    try:
        yield
    except StorageError as error:
        refuse_damage(address, error)
        raise


def _fragment_ids(dataset: LanceDataset) -> tuple[int, ...]:
    return tuple(fragment.fragment_id for fragment in dataset.get_fragments())


def _is_full(fragment: LanceFragment) -> bool:
    """Say whether a fold has nothing to gain from a fragment."""
    return fragment.num_deletions == 0 and fragment.count_rows() >= MAX_FRAGMENT_ROWS


def _empty(schema: pa.Schema, columns: Sequence[str] | None, *, with_places: bool) -> pa.Table:
    chosen = [schema.field(name) for name in (schema.names if columns is None else columns)]
    if with_places:
        chosen.append(pa.field(ROW_ADDRESS, pa.uint64()))
    return pa.schema(chosen).empty_table()
