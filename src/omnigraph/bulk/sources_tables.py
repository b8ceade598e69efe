"""Parquet and Arrow files: their pieces, and the rows of a piece as tables."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.files import is_object, open_input
from omnigraph.bulk.sources_model import Format, Slice, SourceInput, Survey
from omnigraph.bulk.sources_packed import IPC_FILE_MAGIC, unpacked_size
from omnigraph.bulk.sources_text import size_of, too_packed, unreadable
from omnigraph.validate.records import UNLIMITED, ReadLimits

BATCH_ROWS = 65_536  # what is held as columns at a time


def plan_parquet(source: SourceInput, target_bytes: int, limits: ReadLimits = UNLIMITED) -> Iterator[Slice]:
    """Yield slices of whole row groups; a file without rows is one slice.

    Raises:
        BadRequest: the file is no Parquet.
        ResourceLimit: its pages unpack to more than they may.
    """
    size = size_of(source)  # says more clearly than Parquet that there is no such file
    with _reading(source), _parquet(source) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        sizes, rows = [group.total_byte_size for group in groups], [group.num_rows for group in groups]
    _refuse_packed(source, size, sum(sizes), limits)
    number = before = start = 0
    for end in _cuts(sizes, target_bytes):
        yield Slice(source, number, start, end, sum(sizes[start:end]), before)
        before += sum(rows[start:end])
        number, start = number + 1, end


def plan_arrow(source: SourceInput, target_bytes: int, limits: ReadLimits = UNLIMITED) -> Iterator[Slice]:
    """Yield slices of whole batches; how many rows lie before one is for a survey to say.

    Raises:
        BadRequest: the file is no Arrow.
        ResourceLimit: its buffers unpack to more than they may.
    """
    size = size_of(source)
    with _reading(source), open_input(source.location) as file:
        _refuse_packed(source, size, unpacked_size(cast("IO[bytes]", file), size), limits)
        file.seek(0)
        is_whole = size <= target_bytes or not is_random_access(file)
        count = 0 if is_whole else pa.ipc.open_file(file).num_record_batches
    if is_whole or not count:
        yield Slice(source, 0, 0, None, size)
        return
    start = 0
    for number, end in enumerate(_cuts([size // count] * count, target_bytes)):
        yield Slice(source, number, start, end, size * (end - start) // count)
        start = end


def survey_arrow(slice_: Slice) -> Survey:
    """Count the rows of a slice of an Arrow file.

    Raises:
        BadRequest: the file is no Arrow.
    """
    with _reading(slice_.source), open_input(slice_.source.location) as file:
        few = pa.ipc.IpcReadOptions(included_fields=[0])  # rows are counted, whatever they hold
        reader = pa.ipc.open_file(file, options=few)
        return Survey(sum(reader.get_batch(number).num_rows for number in range(*_bounds(slice_, reader))))


def read_schema(source: SourceInput) -> pa.Schema:
    """Return the columns of a file.

    Raises:
        BadRequest: the file is not what its name says.
    """
    with _reading(source), open_input(source.location) as file:
        if source.format is Format.PARQUET:
            schema = pq.read_schema(file)
        else:
            is_random = is_random_access(file)
            schema = (pa.ipc.open_file(file) if is_random else pa.ipc.open_stream(file)).schema
        _ = schema.names  # are texts, too
        schema.empty_table()  # refuses a type that cannot be read
        return schema


def read_tables(slice_: Slice, columns: Sequence[str] | None) -> Iterator[pa.Table]:
    """Yield the rows of a slice, some at a time; none of the columns is all of them.

    Raises:
        BadRequest: the file is not what its name says.
    """
    batches = _parquet_batches(slice_, columns) if slice_.source.format is Format.PARQUET else None
    for batch in batches or _arrow_batches(slice_):
        table = pa.Table.from_batches([batch])
        yield table if columns is None else table.select(list(columns))


def is_random_access(file: pa.NativeFile) -> bool:
    """Return whether an Arrow file has its batches listed; a stream has not."""
    magic = file.read(len(IPC_FILE_MAGIC))
    file.seek(0)
    return magic == IPC_FILE_MAGIC


def _parquet_batches(slice_: Slice, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    assert slice_.end is not None, "row groups are counted"
    with _reading(slice_.source), _parquet(slice_.source) as file:
        yield from file.iter_batches(
            BATCH_ROWS,
            row_groups=list(range(slice_.start, slice_.end)),
            columns=None if columns is None else list(columns),
            use_threads=False,
        )


def _arrow_batches(slice_: Slice) -> Iterator[pa.RecordBatch]:
    with _reading(slice_.source), open_input(slice_.source.location) as file:
        if not is_random_access(file):
            yield from pa.ipc.open_stream(file)
            return
        reader = pa.ipc.open_file(file)
        for number in range(*_bounds(slice_, reader)):
            yield reader.get_batch(number)


def _bounds(slice_: Slice, reader: pa.RecordBatchFileReader) -> tuple[int, int]:
    return slice_.start, reader.num_record_batches if slice_.end is None else slice_.end


@contextmanager
def _parquet(source: SourceInput) -> Iterator[pq.ParquetFile]:
    """Open a file; of one in a store the ranges that are needed are fetched ahead, together."""
    with (
        open_input(source.location) as file,
        pq.ParquetFile(file, pre_buffer=is_object(source.location)) as it,
    ):
        yield it


def _refuse_packed(source: SourceInput, size: int, unpacked: int, limits: ReadLimits) -> None:
    most = limits.unpacked_max(size)
    if most and unpacked > most:
        raise too_packed(source, limit=most, actual=unpacked)


def _cuts(sizes: Sequence[int], target_bytes: int) -> Iterator[int]:
    """Yield the place behind each run of pieces that reaches the target; at least one place."""
    filled = 0
    for place, size in enumerate(sizes, 1):
        filled += size
        if filled >= target_bytes and place < len(sizes):
            yield place
            filled = 0
    yield len(sizes)


@contextmanager
def _reading(source: SourceInput) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise unreadable(source, error) from error
