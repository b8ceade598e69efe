"""Staged writes: everything is written to disk, nothing is visible, until one commit of the table.

W1  Staging moves no HEAD; what it wrote is unreferenced until the commit, and reclaimed if none comes.
W2  A staged write is committed at most once, and only onto the very version it was prepared for.
W3  A commit that is reported as done is at `read_version + 1` and carries our uuid.
W4  Where it is unknown whether a commit landed, that is what is reported, never that it did not.
W5  A commit names only files that are there, to their end.
"""

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.core.errors import CommitConflict, RecoveryRequired, StaleCommit, StorageError
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.core.together import both
from omnigraph.storage.files.whole import check_whole
from omnigraph.storage.tables import carried, shapes
from omnigraph.storage.tables.carried import RowNumbers
from omnigraph.storage.tables.create import commit_first_version
from omnigraph.storage.tables.index import IndexRequest, PendingColumn
from omnigraph.storage.tables.index_build import DueIndex, StagedIndex, build_all, due_indexes
from omnigraph.storage.tables.known_ids import ROWS_MAX, UNCHANGED, IdChange
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, classify, translate, translated
from omnigraph.storage.tables.recent_rows import as_written
from omnigraph.storage.tables.rows import ReplacedRows, row_addresses
from omnigraph.storage.tables.staged import CommittedTable, StagedWrite, index_files, new_files
from omnigraph.storage.tables.table import SnapshotHandle, TableAddress, TableStore

__all__ = ["CommittedTable", "IndexRequest", "PendingColumn", "StagedWrite", "TableStager"]

OPERATION_ID_PROPERTY = "omnigraph.operation_id"
WRITER_KIND_PROPERTY = "omnigraph.writer_kind"
_NONE: RowNumbers = np.array([], np.uint64)


@final
class TableStager:
    """Stages and commits writes of tables; safe to share between threads."""

    def __init__(self, store: TableStore) -> None:
        """Take the store that opens the tables."""
        self._store = store

    def stage_create_table(self, address: TableAddress, schema: pa.Schema) -> StagedWrite:
        """Prepare an empty table; nothing is written before the commit."""
        operation = LanceOperation.Overwrite(schema, [])
        return StagedWrite(address, 0, _new_uuid(), "create_table", 0, 0, (), operation, None)

    def stage_append(self, handle: SnapshotHandle, table: pa.Table) -> StagedWrite:
        """Prepare rows whose ids the table does not have."""
        return self.stage_append_chunks(handle, [table])

    def stage_append_chunks(self, handle: SnapshotHandle, chunks: Iterable[pa.Table]) -> StagedWrite:
        """Prepare rows whose ids the table does not have, written chunk by chunk as they come."""
        dataset, schema = handle._dataset, handle.schema
        fragments = [part for chunk in chunks for part in self._write(handle, _conform(chunk, schema))]
        return _addition(handle, fragments, new_files(handle.address, dataset, new=fragments))

    def stage_fragments(
        self, handle: SnapshotHandle, fragments: Sequence[Mapping[str, object] | str]
    ) -> StagedWrite:
        """Prepare rows that other processes wrote as fragments of this table, given by their descriptions.

        The processes that wrote the files sync them: they are not among `files`.
        """
        texts = [text if isinstance(text, str) else json.dumps(text) for text in fragments]
        read = [FragmentMetadata.from_json(text) for text in texts]
        return _by_others(_addition(handle, read, ()), handle, read)

    def stage_overwrite_fragments(
        self, handle: SnapshotHandle, schema: pa.Schema, fragments: Sequence[str]
    ) -> StagedWrite:
        """Prepare new content under a full schema from fragments that other processes wrote and synced."""
        read = [FragmentMetadata.from_json(text) for text in fragments]
        added = sum(fragment.physical_rows for fragment in read)
        operation = LanceOperation.Overwrite(schema, read)
        staged = staged_on(handle, "overwrite", operation, (), added=added, removed=handle.row_count)
        return _by_others(staged, handle, read)

    def stage_upsert_fragments(
        self,
        handle: SnapshotHandle,
        fragments: Sequence[str],
        *,
        removed: Sequence[int],
        updated: Sequence[str],
        replaced_rows: int,
    ) -> StagedWrite:
        """Prepare rows that other processes wrote and synced, and the deletions of those they replace.

        A written row carries the row id of a committed one exactly when that one is deleted.
        """
        new = [FragmentMetadata.from_json(text) for text in fragments]
        if handle.fragment_count == 0:
            return _by_others(_addition(handle, new, (), "upsert"), handle, new)
        changed = [FragmentMetadata.from_json(text) for text in updated]
        operation = shapes.replacement(handle._dataset, removed=list(removed), updated=changed, new=new)
        added = sum(fragment.physical_rows for fragment in new) - replaced_rows
        return _by_others(staged_on(handle, "upsert", operation, (), added=added), handle, new, changed)

    def stage_upsert(self, handle: SnapshotHandle, table: pa.Table) -> StagedWrite:
        """Prepare rows that replace those with the same id, and are added where there is none.

        Replaced rows keep their row id and the version that created them. The ids of `table` are distinct.
        """
        rows = _conform(table, handle.schema)
        assert len(rows["id"].unique()) == rows.num_rows, "the ids of an upsert are distinct"
        if handle.fragment_count == 0:
            fragments = self._write(handle, rows)
            files = new_files(handle.address, handle._dataset, new=fragments)
            return _addition(handle, fragments, files, "upsert")
        rows, row_ids, places = self._in_order(handle, rows, None)
        fragments, deleted = both(
            lambda: self._write_replacing(handle, rows, row_ids, places),
            lambda: shapes.delete_addresses(handle._dataset, places),
            at_once=handle.address.local_path is None,
        )
        staged = self._upsert(handle, fragments, deleted, added=rows.num_rows - len(places))
        return staged if rows.num_rows > ROWS_MAX else replace(staged, ids=IdChange(written=_ids(rows)))

    def stage_upsert_chunks(
        self, handle: SnapshotHandle, chunks: Iterable[tuple[pa.Table, ReplacedRows | None]]
    ) -> StagedWrite:
        """Prepare the same for rows that are written chunk by chunk as they come.

        With each chunk come the rows that it replaces, all of them, in order; where those are not known they
        are looked up. No id is in two chunks, and the table has fragments.
        """
        fragments: list[FragmentMetadata] = []
        addresses: list[RowNumbers] = []
        added = 0
        for chunk, replaced in chunks:
            rows, row_ids, places = self._in_order(handle, _conform(chunk, handle.schema), replaced)
            fragments += self._write_replacing(handle, rows, row_ids, places)
            addresses.append(places)
            added += rows.num_rows - len(places)
        deleted = shapes.delete_addresses(handle._dataset, np.concatenate(addresses))
        return self._upsert(handle, fragments, deleted, added=added)

    def _upsert(
        self,
        handle: SnapshotHandle,
        fragments: list[FragmentMetadata],
        deleted: tuple[list[int], list[FragmentMetadata]],
        *,
        added: int,
    ) -> StagedWrite:
        """Prepare written rows in place of deleted ones."""
        dataset, (removed, updated) = handle._dataset, deleted
        operation = shapes.replacement(dataset, removed=removed, updated=updated, new=fragments)
        files = new_files(handle.address, dataset, new=fragments, updated=updated)
        return staged_on(handle, "upsert", operation, files, added=added)

    def _in_order(
        self, handle: SnapshotHandle, rows: pa.Table, replaced: ReplacedRows | None
    ) -> tuple[pa.Table, RowNumbers, RowNumbers]:
        """Return the rows that replace others first, by row id; with the row ids and addresses of those."""
        if replaced is not None:
            row_ids, places = replaced.row_ids.astype(np.uint64), _places(handle, replaced)
            order = np.argsort(row_ids)
            return rows.take(order), row_ids[order], places[order]
        ids = _ids(rows)
        if self._store.has_none(handle, ids):
            return rows, _NONE, _NONE
        found = self._store.rows_by_id(handle, ids, ["id"], with_row_id=True, with_row_address=True)
        found = found.sort_by("_rowid")
        matched = pc.index_in(found["id"], value_set=rows["id"].combine_chunks()).to_numpy()
        fresh = np.setdiff1d(np.arange(rows.num_rows), matched, assume_unique=True)
        taken = rows.take(np.concatenate([matched, fresh]))
        return taken, _numbers(found, "_rowid"), _numbers(found, "_rowaddr")

    def _write_replacing(
        self, handle: SnapshotHandle, rows: pa.Table, row_ids: RowNumbers, places: RowNumbers
    ) -> list[FragmentMetadata]:
        """Write rows of which the first replace others, in the order of row ids."""
        count = len(row_ids)
        if not carried.is_long(row_ids):
            written = self._write(handle, rows)
            for fragment, start in _starts(written):
                if start < count:
                    carried.carry_inline(fragment, row_ids[start : start + fragment.physical_rows])
            return written
        written = self._write(handle, rows.slice(0, count))
        created_at = carried.created_versions(handle, row_ids, places)
        for fragment, start in _starts(written):
            part = slice(start, start + fragment.physical_rows)
            file = carried.RowIdFile(handle.address.open_uri, self._store.storage_options)
            file.write(fragment, row_ids[part], created_at[part])
        return written + self._write(handle, rows.slice(count))

    def _write(self, handle: SnapshotHandle, rows: pa.Table) -> list[FragmentMetadata]:
        """Write rows as fragments; a store is not asked later on for the few that are just written."""
        written = shapes.write_rows(handle._dataset, rows)
        if handle.address.local_path is None:
            self._store.keep_written(handle.address, as_written(handle._dataset, written, rows))
        return written

    def stage_overwrite(
        self, handle: SnapshotHandle, schema: pa.Schema, table: pa.Table | None
    ) -> StagedWrite:
        """Prepare new content under a full schema; all indexes of the table go with the old one."""
        dataset = handle._dataset
        fragments: list[FragmentMetadata] = []
        operation: LanceOperation.BaseOperation = LanceOperation.Overwrite(schema, [])
        if table is not None and table.num_rows:
            with translated(f"overwrite {handle.address.open_uri}"):
                written = write_fragments(
                    _conform(table, schema),
                    dataset,
                    mode="overwrite",
                    max_rows_per_file=MAX_FRAGMENT_ROWS,
                    return_transaction=True,
                )
            assert isinstance(written, Transaction)
            operation = written.operation
            assert isinstance(operation, LanceOperation.Overwrite)
            fragments = list(operation.fragments)
        added = sum(fragment.physical_rows for fragment in fragments)
        files = new_files(handle.address, dataset, new=fragments)
        return staged_on(handle, "overwrite", operation, files, added=added, removed=handle.row_count)

    def stage_overwrite_chunks(
        self, handle: SnapshotHandle, schema: pa.Schema, chunks: Iterable[pa.Table]
    ) -> StagedWrite:
        """Prepare new content under a full schema, written chunk by chunk as it comes."""
        writes = [self.stage_overwrite(handle, schema, chunk) for chunk in chunks]
        fragments: list[FragmentMetadata] = []
        for write in writes:
            assert isinstance(write._operation, LanceOperation.Overwrite)
            fragments += write._operation.fragments
        added = sum(write.rows_added for write in writes)
        files = tuple(file for write in writes for file in write.files)
        operation = LanceOperation.Overwrite(schema, fragments)
        return staged_on(handle, "overwrite", operation, files, added=added, removed=handle.row_count)

    def stage_delete(self, handle: SnapshotHandle, ids: Sequence[str]) -> StagedWrite | None:
        """Prepare the removal of rows by id; nothing is staged if none of them exists."""
        found = self._store.rows_by_id(handle, ids, ["id"], with_row_address=True)
        if found.num_rows == 0:
            return None
        removed, updated = shapes.delete_addresses(handle._dataset, _numbers(found, "_rowaddr"))
        operation = shapes.deletion(handle._dataset, removed=removed, updated=updated)
        files = new_files(handle.address, handle._dataset, new=(), updated=updated)
        return staged_on(
            handle, "delete", operation, files, removed=found.num_rows, ids=IdChange(removed=ids)
        )

    def stage_create_indices(
        self,
        handle: SnapshotHandle,
        requests: Sequence[IndexRequest],
        anew: Collection[str] = (),
        advance: Callable[[int], None] = lambda _rows: None,
    ) -> tuple[StagedWrite | None, tuple[PendingColumn, ...]]:
        """Prepare all missing indexes of a table as one commit, and those named in `anew` a second time.

        Any other index that exists is left alone, however little it covers. Without rows there is nothing to
        build. Returns what was staged, if anything, and the columns that cannot be indexed yet.
        """
        due, pending = due_indexes(handle, requests, anew)
        built = build_all(handle, due, advance)
        return (self.stage_indexes(handle, due, built) if built else None), pending

    def stage_indexes(
        self, handle: SnapshotHandle, due: Sequence[DueIndex], built: Sequence[StagedIndex]
    ) -> StagedWrite:
        """Prepare indexes that were built, in this process or in others, as one commit.

        Those that they replace go with it.
        """
        replaced = [segment for index in due for segment in index.replaced]
        operation = LanceOperation.CreateIndex(list(built), replaced)
        return staged_on(
            handle, "create_indices", operation, index_files(handle.address, built), ids=UNCHANGED
        )

    def stage_unset(self, handle: SnapshotHandle, keys: Sequence[str]) -> StagedWrite:
        """Prepare the removal of keys from the configuration of a table."""
        removed = LanceOperation.UpdateMap(dict.fromkeys(keys), replace=False)
        return staged_on(handle, "unset", LanceOperation.UpdateConfig(config_updates=removed), ())

    def commit_staged(self, staged: StagedWrite, *, operation_id: str, writer_kind: str) -> CommittedTable:
        """Make a staged write the table's next version (W2, W3).

        Raises:
            CommitConflict: another writer came first; nothing of ours landed.
            StaleCommit: it landed, but not on the version it was prepared for; it must not be published.
            RecoveryRequired: it failed, and whether it landed is unknown (W4).
            StorageError: it failed and did not land.
            InvariantViolation: this write was already handed to a commit.
        """
        properties = {OPERATION_ID_PROPERTY: operation_id, WRITER_KIND_PROPERTY: writer_kind}
        return self._make_next(staged, operation_id, properties)

    def _make_next(
        self, staged: StagedWrite, operation_id: str, properties: dict[str, str]
    ) -> CommittedTable:
        staged._claim()
        check_whole((*staged.files, *staged.others_files))  # W5
        transaction = Transaction(staged.read_version, staged._operation, staged.transaction_uuid, properties)
        try:
            dataset = self._commit(staged, transaction)
        except LANCE_ERRORS as error:
            if classify(error) == "incompatible":
                raise _refused(staged) from error
            return self._after_failure(staged, operation_id, error)
        try:
            return self._verified(staged, dataset)
        except StorageError as unreadable:
            raise _unknown(staged, operation_id, unreadable) from unreadable

    def _verified(self, staged: StagedWrite, dataset: LanceDataset) -> CommittedTable:
        """Make sure that the version that came out is ours (W3)."""
        # A table that did not exist was committed outside the session; reopening it joins the shared cache.
        if staged._base is None:
            committed = self._store.open_at(staged.address, dataset.version)
        else:
            committed = self._store.adopt(staged.address, dataset)
        found = committed.transaction_uuid
        if found is None:
            raise StorageError(f"version {committed.version} does not say who made it", kind="unknown")
        if found != staged.transaction_uuid:
            raise _stale(staged, committed.version)
        return self._committed(staged, committed)

    def _commit(self, staged: StagedWrite, transaction: Transaction) -> LanceDataset:
        if staged._base is not None:
            return LanceDataset.commit(staged._base, transaction, max_retries=0)
        return commit_first_version(self._store, staged.address, transaction)

    def _committed(self, staged: StagedWrite, committed: SnapshotHandle) -> CommittedTable:
        expected = staged.read_version + 1
        if committed.version != expected:
            raise _stale(staged, committed.version)
        if staged.ids is not None:
            self._store.known_ids.advance(staged.address, staged.read_version, expected, staged.ids)
        rows, uuid = committed.row_count, staged.transaction_uuid
        return CommittedTable(staged.address, expected, rows, uuid, staged.commit_files, staged.sums)

    def _after_failure(self, staged: StagedWrite, operation_id: str, error: Exception) -> CommittedTable:
        """Find out what became of a commit that raised (W4).

        A conflict is looked into as well: a write that is repeated after a lost answer conflicts with itself.
        """
        try:
            head = self._head_version(staged.address)
            for version in range(staged.read_version + 1, head + 1):
                found = self._store.transaction_info(staged.address, version).uuid
                if found == staged.transaction_uuid:
                    return self._committed(staged, self._store.open_at(staged.address, version))
                if found is None:
                    raise StorageError(f"version {version} does not say who made it", kind="unknown")
        except StorageError as unreadable:
            raise _unknown(staged, operation_id, unreadable) from error
        if classify(error) == "conflict" or (staged._base is None and head > 0):
            raise _refused(staged) from error
        raise translate(error, f"commit {staged.kind} of {staged.address.open_uri}") from error

    def _head_version(self, address: TableAddress) -> int:
        """Return the newest version; zero while there is no table."""
        return self._store.open_head(address).version if self._store.exists(address) else 0


def _addition(
    handle: SnapshotHandle, fragments: list[FragmentMetadata], files: tuple[str, ...], kind: str = "append"
) -> StagedWrite:
    operation = shapes.addition(handle._dataset, fragments)
    added = sum(fragment.physical_rows for fragment in fragments)
    return staged_on(handle, kind, operation, files, added=added)


def _by_others(
    staged: StagedWrite,
    handle: SnapshotHandle,
    new: Iterable[FragmentMetadata],
    updated: Iterable[FragmentMetadata] = (),
) -> StagedWrite:
    """Return a write that knows which files other processes wrote for it: they are looked at, not synced."""
    return replace(staged, others_files=new_files(handle.address, handle._dataset, new=new, updated=updated))


def staged_on(
    handle: SnapshotHandle,
    kind: str,
    operation: LanceOperation.BaseOperation,
    files: tuple[str, ...],
    *,
    added: int = 0,
    removed: int = 0,
    ids: IdChange | None = None,
) -> StagedWrite:
    """Return a write that waits for its commit onto the version of a handle."""
    return StagedWrite(
        handle.address,
        handle.version,
        _new_uuid(),
        kind,
        added,
        removed,
        files,
        _operation=operation,
        _base=handle._dataset,
        ids=ids,
    )


def _refused(staged: StagedWrite) -> CommitConflict:
    reason = "already exists" if staged._base is None else "moved on"
    return CommitConflict(f"{staged.address.open_uri} {reason}: {staged.kind} refused")


def _stale(staged: StagedWrite, version: int) -> StaleCommit:
    return StaleCommit(
        f"{staged.kind} of {staged.address.open_uri} landed after another commit",
        expected=staged.read_version + 1,
        actual=version,
    )


def _unknown(staged: StagedWrite, operation_id: str, reason: StorageError) -> RecoveryRequired:
    what = f"commit {staged.kind} of {staged.address.open_uri}"
    return RecoveryRequired(operation_id, f"{what}: outcome unknown: {reason}")


def _new_uuid() -> str:
    return str(uuid.uuid4())


def _places(handle: SnapshotHandle, replaced: ReplacedRows) -> RowNumbers:
    if replaced.addresses is None:
        return row_addresses(handle, replaced.row_ids)
    return replaced.addresses.astype(np.uint64)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows in the columns and types of a schema, its metadata included."""
    return table.select(schema.names).cast(schema)


def _ids(rows: pa.Table) -> list[str]:
    return cast("list[str]", rows["id"].to_pylist())


def _numbers(found: pa.Table, column: str) -> RowNumbers:
    return found[column].to_numpy().astype(np.uint64)


def _starts(fragments: Iterable[FragmentMetadata]) -> Iterator[tuple[FragmentMetadata, int]]:
    """Yield fragments that were written together, each with how many rows lie before it."""
    start = 0
    for fragment in fragments:
        yield fragment, start
        start += fragment.physical_rows
