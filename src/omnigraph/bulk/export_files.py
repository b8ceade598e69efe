"""Rows into files: NDJSON, CSV or Parquet, each file whole or not there.

A file is written under a name of its own and renamed when it is complete and on the disk: nobody reads half
of one, and a second attempt at the same file changes nothing.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from omnigraph.bulk.export_values import csv_batch, json_lines, parquet_batch
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.errors import BadRequest

ROW_GROUP_ROWS = 131_072  # as large as a fragment; a load takes row groups as pieces


class ExportFormat(StrEnum):
    """What an export writes."""

    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"

    @property
    def suffix(self) -> str:
        """The suffix by which a load knows the format."""
        return ".jsonl" if self is ExportFormat.NDJSON else f".{self.value}"


def write_rows(
    batches: Iterable[pa.RecordBatch], type_: NodeType | EdgeType, format_: ExportFormat, file: IO[bytes]
) -> int:
    """Write the rows of one type to an open file and return how many there were."""
    match format_:
        case ExportFormat.NDJSON:
            return _write_lines(batches, type_, file)
        case ExportFormat.CSV:
            return _write_csv(batches, type_, file)
        case ExportFormat.PARQUET:
            return _write_parquet(batches, type_, file)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name when the block ends well, and not at all otherwise.

    Raises:
        BadRequest: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror or error}") from error


def _write_lines(batches: Iterable[pa.RecordBatch], type_: NodeType | EdgeType, file: IO[bytes]) -> int:
    rows = 0
    for batch in batches:
        file.write(json_lines(batch, type_))
        rows += batch.num_rows
    return rows


def _write_csv(batches: Iterable[pa.RecordBatch], type_: NodeType | EdgeType, file: IO[bytes]) -> int:
    rows = 0
    schema = csv_batch(_no_rows(type_), type_).schema
    with pa_csv.CSVWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(csv_batch(batch, type_))
            rows += batch.num_rows
    return rows


def _write_parquet(batches: Iterable[pa.RecordBatch], type_: NodeType | EdgeType, file: IO[bytes]) -> int:
    rows = 0
    schema = parquet_batch(_no_rows(type_), type_).schema
    with pq.ParquetWriter(file, schema) as writer:
        for group in _groups(batches):
            converted = [parquet_batch(batch, type_) for batch in group]
            writer.write_table(pa.Table.from_batches(converted, schema), row_group_size=ROW_GROUP_ROWS)
            rows += sum(batch.num_rows for batch in group)
    return rows


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if group and rows + batch.num_rows > ROW_GROUP_ROWS:
            yield group
            group, rows = [], 0
        group.append(batch)
        rows += batch.num_rows
    if group:
        yield group


def _no_rows(type_: NodeType | EdgeType) -> pa.RecordBatch:
    schema = arrow_schema(type_)
    return pa.RecordBatch.from_arrays([pa.array([], item.type) for item in schema], schema=schema)
