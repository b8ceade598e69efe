"""Fragments that other processes write: the part of storage that runs inside the tasks of a bulk operation.

G1  A task writes files that no reader sees, syncs them, and then describes them; only descriptions that reach
    the driver can be committed.
G2  Every file is noted where the driver looks for files of tasks that never reported, if notes are kept.
G3  Beside each fragment is a file with the place of each of its rows in the input, until the driver removes
    it. It is never part of a version.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.core.arrays import RowIds
from omnigraph.core.input_lines import InputLines
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.storage.control.durability import Durability, Syncer
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.sums import FileSum, Summer
from omnigraph.storage.files.whole import check_lengths
from omnigraph.storage.tables import carried, shapes
from omnigraph.storage.tables.column_work import ColumnWork
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.pinned import PinnedTable, own_store
from omnigraph.storage.tables.rows import row_addresses
from omnigraph.storage.tables.staged import fragment_files
from omnigraph.storage.tables.task_notes import TaskNotes

READ_ROWS = 65_536  # what is held as columns at a time
FragmentMode = Literal["append", "overwrite"]


@dataclass(frozen=True, slots=True)
class TaskTable:
    """How a task writes rows of a table; `pinned` says which table, and at which version.

    `schema` is the serialised Arrow schema, so that the description can be sent with the schema's metadata.
    """

    pinned: PinnedTable
    root: str
    schema: bytes
    mode: FragmentMode
    durability: Durability
    notes: TaskNotes | None = None
    is_summed: bool = False  # whether what is written is reported with its checksum

    @property
    def address(self) -> TableAddress:
        """Where the rows are written."""
        return self.pinned.address

    def summer(self) -> Summer:
        """Return what takes the sums of the files written."""
        is_local = self.address.local_path is not None
        return Summer(self.root if is_local else None, is_on=self.is_summed)

    def writing(self) -> AbstractContextManager[None]:
        """Count as a writing task for the duration of a block, where notes are kept."""
        return nullcontext() if self.notes is None else self.notes.writing()


@dataclass(frozen=True, slots=True)
class WrittenFragment:
    """One fragment that a task wrote: description, rows, bytes in memory, and the file of their places.

    `sums` are those of its files, taken when they were written; `lines` are the parts of the input that its
    rows are from.
    """

    description: str
    rows: int
    size: int = 0
    places: str | None = None
    sums: tuple[FileSum, ...] = ()
    lines: tuple[InputLines, ...] = ()


class FragmentWriter:
    """Writes the fragments of one table in one task; `sync` comes before the driver is told of them (G1)."""

    def __init__(self, table: TaskTable) -> None:
        """Open the table at the version that the write is prepared on.

        Raises:
            HistoricalVersionReclaimed: the version was cleaned up.
            StorageError: it cannot be read.
        """
        self._table = table
        store = own_store(table.address)
        self._handle = table.pinned.open(store)
        self._schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
        is_local = table.address.local_path is not None
        self._syncer = Syncer(table.durability, is_local, table.root if is_local else None)
        self._options = store.storage_options
        self._summer = table.summer()
        self._unsynced: list[str] = []

    def write(
        self, rows: pa.Table, places: pa.Table | None = None, *, row_ids: RowIds | None = None
    ) -> WrittenFragment:
        """Write rows as one fragment; `row_ids` are those of the rows that they replace, and give the order.

        Raises:
            StorageError: the store failed.
            SparkUnavailable: the operation was cancelled.
        """
        assert 0 < rows.num_rows <= MAX_FRAGMENT_ROWS, "one fragment holds them"
        uri, notes = self._table.address.open_uri, self._table.notes
        if notes is not None:
            notes.check()
        if row_ids is not None:
            assert places is None, "rows that replace others have been placed before"
            order = np.argsort(row_ids)
            rows, row_ids = rows.take(order), row_ids[order]
        with translated(f"write rows of {uri}"):
            written = write_fragments(
                rows.select(self._schema.names).cast(self._schema),
                self._handle._dataset,  # no other code has its store
                mode=self._table.mode,
                max_rows_per_file=MAX_FRAGMENT_ROWS,
            )
        assert isinstance(written, list)
        (fragment,) = written
        beside = None
        if places is not None:
            beside = f"{uri}/data/{uuid.uuid4()}.lance"
        if notes is not None:  # the name of the second file is known before it is there
            notes.note([*_data_files(self._table.address, fragment), *([beside] if beside else [])])
        if row_ids is not None:
            self._carry(fragment, row_ids.astype(np.uint64))
        if beside is not None and places is not None:
            with (
                translated(f"write places of {uri}"),
                LanceFileWriter(beside, places.schema, storage_options=self._options) as file,
            ):
                file.write_batch(places)
        root = self._table.address.local_path
        files = [] if root is None else fragment_files(root, fragment)
        if root is not None:
            check_lengths(root, [fragment])
        self._unsynced += files
        description = json.dumps(fragment.to_json())
        sums = self._summer.sum(files)
        return WrittenFragment(description, fragment.physical_rows, rows.nbytes, beside, sums)

    def _carry(self, fragment: FragmentMetadata, row_ids: carried.RowNumbers) -> None:
        """Give the rows of a new fragment their row ids, in the version or in a file (G2)."""
        if not carried.is_long(row_ids):
            carried.carry_inline(fragment, row_ids)
            return
        addresses = row_addresses(self._handle, row_ids.astype(np.int64))
        created_at = carried.created_versions(self._handle, row_ids, addresses)
        file = carried.RowIdFile(self._table.address.open_uri, self._options)
        if self._table.notes is not None:
            self._table.notes.note([file.path])
        file.write(fragment, row_ids, created_at)

    def sync(self) -> None:
        """Make what was written durable.

        Raises:
            StorageError: the system failed.
        """
        self._syncer.sync(self._unsynced, stage="staged")
        self._unsynced.clear()


def read_written(
    address: TableAddress, fragment: WrittenFragment, columns: Sequence[str], *, with_places: bool = True
) -> Iterator[tuple[pa.Table, pa.Table | None]]:
    """Yield columns of a fragment that is not committed, with the places of the rows where asked.

    Raises:
        StorageError: the store failed.
    """
    options = own_store(address).storage_options
    path = data_paths(address, fragment)[0]
    with translated(f"read written rows of {address.open_uri}"):
        rows = (
            LanceFileReader(path, storage_options=options, columns=list(columns))
            .read_all(batch_size=READ_ROWS)
            .to_table()
        )
        places = None
        if with_places and fragment.places is not None:
            places = (
                LanceFileReader(fragment.places, storage_options=options)
                .read_all(batch_size=READ_ROWS)
                .to_table()
            )
    for start in range(0, rows.num_rows, READ_ROWS):
        yield rows.slice(start, READ_ROWS), None if places is None else places.slice(start, READ_ROWS)


@dataclass(frozen=True, slots=True)
class WrittenColumns:
    """A committed fragment with what a task wrote for it: its description, its new files, and their sums."""

    fragment: int
    description: str
    files: tuple[str, ...]
    sums: tuple[FileSum, ...]


def write_columns(table: TaskTable, work: ColumnWork, number: int) -> WrittenColumns:
    """Write what a fragment needs for other columns, and sync it (G1).

    Raises:
        HistoricalVersionReclaimed: the version was cleaned up.
        StorageError: the store failed.
        SparkUnavailable: the operation was cancelled.
    """
    handle, notes, uri = table.pinned.open(), table.notes, table.address.open_uri
    present = handle._dataset.get_fragment(number)
    known = set() if present is None else {data_file_name(file) for file in present.metadata.files}
    with table.writing():
        if notes is not None:
            notes.check()
        made = work.on(handle, number)
        names = [name for file in made.files if (name := data_file_name(file)) not in known]
        paths = tuple(f"{uri}/data/{name}" for name in names)
        if notes is not None:
            notes.note(paths)
    root = table.address.local_path
    files = [] if root is None else [f"{root}/data/{name}" for name in names]
    Syncer(table.durability, root is not None, None if root is None else table.root).sync(
        files, stage="staged"
    )
    return WrittenColumns(number, json.dumps(made.to_json()), paths, table.summer().sum(files))


def data_paths(address: TableAddress, fragment: WrittenFragment) -> list[str]:
    """Return the paths of the files of a fragment that a task wrote: rows, then row ids if they are long."""
    return _data_files(address, FragmentMetadata.from_json(fragment.description))


def _data_files(address: TableAddress, fragment: FragmentMetadata) -> list[str]:
    return [f"{address.open_uri}/data/{file.path}" for file in fragment.files]


def deletion_paths(address: TableAddress, descriptions: Iterable[str]) -> list[str]:
    """Return the paths of the deletion files of fragments that a task changed."""
    fragments = map(FragmentMetadata.from_json, descriptions)
    found = ((fragment.id, fragment.deletion_file) for fragment in fragments)
    return [f"{address.open_uri}/{file.path(number)}" for number, file in found if file is not None]


def delete_committed(
    table: TaskTable, addresses: Sequence[int]
) -> tuple[list[int], list[str], tuple[FileSum, ...]]:
    """Write the deletion files for rows and sync them.

    Returns the emptied fragments, the changed ones, and the sums of the files.

    Raises:
        HistoricalVersionReclaimed: the version was cleaned up.
        StorageError: the store failed.
    """
    dataset = table.pinned.open()._dataset
    removed, updated = shapes.delete_addresses(dataset, np.array(addresses, dtype=np.uint64))
    changed = [json.dumps(fragment.to_json()) for fragment in updated]
    if table.notes is not None:
        table.notes.note(deletion_paths(table.address, changed))
    root = table.address.local_path
    if root is None:
        return removed, changed, ()
    files = [path for fragment in updated for path in fragment_files(root, fragment)]
    deletions = [path for path in files if "/_deletions/" in path]
    Syncer(table.durability, is_local=True, root=table.root).sync(deletions, stage="staged")
    return removed, changed, table.summer().sum(deletions)


def rewrite_written(
    table: TaskTable,
    fragment: WrittenFragment,
    *,
    offsets: "npt.NDArray[np.int64]",
    row_ids: pa.Int64Array,
) -> list[WrittenFragment]:
    """Write some rows of an uncommitted fragment again: those that carry a row id first, on their own.

    Raises:
        StorageError: the store failed.
    """
    writer = FragmentWriter(table)
    columns = pa.ipc.read_schema(pa.py_buffer(table.schema)).names
    whole = pa.concat_tables([rows for rows, _ in read_written(table.address, fragment, columns)])
    has_id = np.asarray(row_ids.is_valid())
    order = np.argsort(offsets, kind="stable")
    replacing, fresh = order[has_id[order]], order[~has_id[order]]
    made = []
    if len(replacing):
        ids = row_ids.take(pa.array(replacing)).to_numpy()
        made.append(writer.write(whole.take(offsets[replacing]), row_ids=ids))
    if len(fresh):
        made.append(writer.write(whole.take(offsets[fresh])))
    writer.sync()
    return made
