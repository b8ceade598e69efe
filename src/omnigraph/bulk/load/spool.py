"""Inputs that are not files, as files that executors can read, for the duration of one load."""

from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.connect.leftovers import SPOOL
from omnigraph.bulk.files import open_output, remove_folder
from omnigraph.bulk.sources.sources import Format, Slice, SourceInput
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.task_notes import TaskNotes
from omnigraph.validate.soundness import refuse_damage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER = SPOOL + "{}"  # under the graph root, which every executor sees
NOTES, KEYS = "notes", "keys"
ROWS_PER_BATCH = 65_536


class Spool:
    """Gathers the inputs of one load; what was written for it is gone when the block ends."""

    def __init__(self, jobs: Jobs, root: GraphRoot) -> None:
        """Take the place of the graph; nothing is written before there is something to write."""
        self._jobs, self._root = jobs, root
        self._folder = root.child(FOLDER.format(jobs.operation_id))
        self._is_used = False
        self._rows_before: dict[str, int] = {}  # by path: rows of the same input in other files
        self.sources: list[SourceInput] = []

    def __enter__(self) -> "Spool":
        """Return the spool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was written."""
        if self._is_used:
            remove_folder(self._folder)

    def notes(self) -> TaskNotes:
        """Return where tasks note what they write.

        Raises:
            StorageError: the place for it cannot be made.
        """
        self._is_used = True
        notes = TaskNotes(self._root.uri, f"{FOLDER.format(self._jobs.operation_id)}/{NOTES}")
        notes.begin()
        return notes

    @property
    def keys_folder(self) -> str:
        """Where tasks keep key columns of rows that are written nowhere else."""
        return self._path(KEYS)

    def take_source(self, file: int, source: SourceInput) -> None:
        """Take a file as it is."""
        self.sources.append(replace(source, file=file))

    def take_records(self, file: int, name: str | None, data: bytes) -> None:
        """Write NDJSON text to a file."""
        path = self._path(f"{file}.ndjson")
        with open_output(path) as sink:
            sink.write(data)
        self.sources.append(SourceInput(path, Format.NDJSON, name, file=file))

    def take_table(self, file: int, name: str | None, table_key: str, table: pa.Table) -> None:
        """Write a table to a file.

        Raises:
            ValidationError: its values are damaged; writing them could end the process.
        """
        refuse_damage(table, table_key, file=file, file_name=name)
        path = self._path(f"{file}.arrow")
        with open_output(path) as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=ROWS_PER_BATCH)
        self.sources.append(SourceInput(path, Format.ARROW, name, table_key=table_key, file=file))

    def take_frame(self, file: int, name: str | None, table_key: str, frame: "DataFrame") -> None:
        """Let the executors write a DataFrame, each partition to its own file.

        Raises:
            SparkUnavailable: the job failed.
        """
        folder = self._path(f"{file}")
        schema = frame.limit(0).toArrow().schema.serialize().to_pybytes()

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import uuid

            from pyspark import TaskContext

            context = TaskContext.get()
            number = 0 if context is None else context.partitionId()
            path = f"{folder}/{number}-{uuid.uuid4()}.arrow"
            rows = 0
            with open_output(path) as sink:
                writer = None
                for batch in batches:
                    plain = _plain(batch)
                    writer = writer or pa.ipc.new_file(sink, plain.schema)
                    writer.write_batch(plain)
                    rows += plain.num_rows
                (writer or pa.ipc.new_file(sink, _plain_schema(schema))).close()
            yield pa.RecordBatch.from_pydict({"number": [number], "path": [path], "rows": [rows]})

        made = self._jobs.collect(frame.mapInArrow(write, "number long, path string, rows long"))
        before = 0
        for row in made.sort_by("number").to_pylist():
            self._rows_before[row["path"]] = before
            before += row["rows"]
            self.sources.append(SourceInput(row["path"], Format.ARROW, name, table_key=table_key, file=file))

    def in_order(self, slices: tuple[Slice, ...]) -> tuple[Slice, ...]:
        """Return the slices with lines that are counted on from one file of an input to the next."""
        return tuple(self._shifted(slice_) for slice_ in slices)

    def _shifted(self, slice_: Slice) -> Slice:
        before = self._rows_before.get(slice_.source.path, 0)
        if not before:
            return slice_
        return replace(slice_, lines_before=slice_.lines_before + before, number=slice_.number + before)

    def _path(self, name: str) -> str:
        self._is_used = True
        return f"{self._folder}/{name}"


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose whole decimals are integers, as Spark has no unsigned ones."""
    target = _plain_schema(batch.schema.serialize().to_pybytes())
    return batch if target == batch.schema else batch.cast(target)


def _plain_schema(serialised: bytes) -> pa.Schema:
    schema = pa.ipc.read_schema(pa.py_buffer(serialised))
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema])


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if not pa.types.is_decimal128(type_) or type_.scale != 0:
        return type_
    return pa.uint64() if type_.precision > 18 else pa.int64()
