"""Rows into files: NDJSON, CSV or Parquet."""

from collections.abc import Iterable
from enum import StrEnum
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from omnigraph.bulk.export.values import csv_batch, json_lines, parquet_batch
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.runs import runs

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
        for group in runs(batches, (lambda batch: batch.num_rows, ROW_GROUP_ROWS)):
            converted = [parquet_batch(batch, type_) for batch in group]
            writer.write_table(pa.Table.from_batches(converted, schema), row_group_size=ROW_GROUP_ROWS)
            rows += sum(batch.num_rows for batch in group)
    return rows


def _no_rows(type_: NodeType | EdgeType) -> pa.RecordBatch:
    schema = arrow_schema(type_)
    return pa.RecordBatch.from_arrays([pa.array([], item.type) for item in schema], schema=schema)
