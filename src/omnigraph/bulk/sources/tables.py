"""Parquet and Arrow files: their pieces, and the rows of a piece as tables."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.files import is_object, open_input
from omnigraph.bulk.sources.model import Format, Slice, SliceSurvey, SourceInput
from omnigraph.bulk.sources.packed import IPC_FILE_MAGIC, unpacked_size
from omnigraph.bulk.sources.text import size_of, too_packed, unreadable
from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.limits import EXPANSION_FLOOR_BYTES
from omnigraph.validate.expansion import expanded_bytes, longest_bytes, within_memory
from omnigraph.validate.records import UNLIMITED, ReadLimits
from omnigraph.validate.tables import foreign_type

_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
BATCH_ROWS = 65_536  # what is held as columns at a time
_CAUTIOUS_ROWS = 64  # of texts that repeat in ways that cannot be kept: a megabyte each is within bounds


def plan_parquet(source: SourceInput, target_bytes: int, limits: ReadLimits = UNLIMITED) -> Iterator[Slice]:
    """Yield slices of whole row groups; a file without rows is one slice.

    Raises:
        BadRequest: the file is not Parquet.
        ResourceLimit: its pages unpack to more than they may.
    """
    size = size_of(source)  # reports a missing file more clearly than Parquet does
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
    """Yield slices of whole batches; a survey finds out how many rows come before each.

    Raises:
        BadRequest: the file is not Arrow.
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


def survey_arrow(slice_: Slice) -> SliceSurvey:
    """Count the rows of a slice of an Arrow file.

    Raises:
        BadRequest: the file is not Arrow.
    """
    with _reading(slice_.source), open_input(slice_.source.location) as file:
        few = pa.ipc.IpcReadOptions(included_fields=[0])  # rows are counted, whatever they hold
        reader = pa.ipc.open_file(file, options=few)
        return SliceSurvey(
            sum(reader.get_batch(number).num_rows for number in range(*_bounds(slice_, reader)))
        )


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
            if not is_random:
                _require_end(file)
            schema = (pa.ipc.open_file(file) if is_random else pa.ipc.open_stream(file)).schema
        _ = schema.names  # decodes them: they are texts too
        known = [item for item in schema if foreign_type(item) is None]  # others are refused by their names
        pa.schema(known).empty_table()  # refuses a type that cannot be read
        return schema


def _require_end(file: pa.NativeFile) -> None:
    """Refuse a stream without its end: cut between two batches it would pass for a shorter one."""
    file.seek(max(0, file.size() - len(_END_OF_STREAM)))
    end = file.read(len(_END_OF_STREAM))
    file.seek(0)
    if end != _END_OF_STREAM:
        raise pa.ArrowInvalid("the stream was cut off: its mark of the end is missing")


class Growth:
    """How much memory the rows of a file have taken so far, measured, not as the file claims."""

    def __init__(self, source: SourceInput, limits: ReadLimits) -> None:
        """Take the file, whose size decides how much is allowed."""
        self._source, self._bytes = source, 0
        self._most = limits.unpacked_max(size_of(source)) if limits.expansion_max else 0

    def take(self, table: pa.Table) -> None:
        """Count rows that are sound, before they are copied.

        Raises:
            ResourceLimit: they take too much.
        """
        if not self._most:
            return
        self._bytes += expanded_bytes(table)
        if self._bytes > self._most:
            raise too_packed(self._source, limit=self._most, actual=self._bytes)


def read_tables(slice_: Slice, columns: Sequence[str] | None) -> Iterator[pa.Table]:
    """Yield the rows of a slice, some at a time; `None` for the columns means all of them.

    Raises:
        BadRequest: the file is not what its name says.
    """
    batches = _parquet_batches(slice_, columns) if slice_.source.format is Format.PARQUET else None
    for batch in batches or _arrow_batches(slice_):
        check_cancelled()
        table = pa.Table.from_batches([batch])
        yield table if columns is None else table.select(list(columns))


def is_random_access(file: pa.NativeFile) -> bool:
    """Return whether an Arrow file lists its batches; a stream does not."""
    magic = file.read(len(IPC_FILE_MAGIC))
    file.seek(0)
    return magic == IPC_FILE_MAGIC


def _parquet_batches(slice_: Slice, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    assert slice_.end is not None, "row groups are counted"
    source, groups = slice_.source, list(range(slice_.start, slice_.end))
    with _reading(source):
        reading = packed_texts(source, groups)
        with _parquet(source, reading.dictionaries) as file:
            yield from file.iter_batches(
                reading.batch_rows,
                row_groups=groups,
                columns=None if columns is None else list(columns),
                use_threads=False,
            )


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """How to read texts that are stored once in a file and occur many times in its rows.

    `dictionaries` are columns that are kept as such, and `batch_rows` is so small that others cannot grow
    much, however often a batch repeats the longest text that there may be.
    """

    dictionaries: tuple[str, ...] = ()
    batch_rows: int = BATCH_ROWS


def packed_texts(source: SourceInput, groups: Sequence[int]) -> PackedTexts:
    """Return how the texts of row groups of a Parquet file are read.

    Only columns that could grow are looked at; for these the dictionary is read, not the footer believed.

    Raises:
        OSError: the file cannot be read.
    """
    with _parquet(source) as file:
        suspects = _suspects(file, groups)
    if not suspects:
        return PackedTexts()
    kept: set[str] = set()
    batch_rows = BATCH_ROWS
    with _parquet(source, suspects) as file:
        for name in suspects:
            try:
                longest = max(_longest_entry(file, group, name) for group in groups)
            except OSError:
                batch_rows = _CAUTIOUS_ROWS  # Arrow makes no dictionary of texts with shared beginnings
                continue
            if longest * BATCH_ROWS <= EXPANSION_FLOOR_BYTES:
                continue
            if "." in name:
                batch_rows = _CAUTIOUS_ROWS  # how many of them a row has is unknown
            else:
                kept.add(name)
    return PackedTexts(tuple(sorted(kept)), batch_rows)


def _suspects(file: pq.ParquetFile, groups: Sequence[int]) -> list[str]:
    """Return the columns of texts, where they could grow beyond what is held at a time.

    What the footer says about a single column is not read: where it is damaged, that ends the process.
    """
    sizes = [(group.num_rows, group.total_byte_size) for group in map(file.metadata.row_group, groups)]
    if all(min(BATCH_ROWS, rows) * size <= EXPANSION_FLOOR_BYTES for rows, size in sizes):
        return []
    columns = map(file.schema.column, range(len(file.schema)))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _longest_entry(file: pq.ParquetFile, group: int, name: str) -> float:
    """Return the bytes of the longest text in a column's dictionary, which comes with its first row."""
    batch = next(iter(file.iter_batches(1, row_groups=[group], columns=[name], use_threads=False)), None)
    if batch is None:
        return 0
    values: Any = batch.column(0)
    while not pa.types.is_dictionary(values.type):
        if not pa.types.is_list(values.type):
            return 0  # a type that is not a text to Arrow
        values = values.values
    return longest_bytes(values.dictionary)


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
def _parquet(source: SourceInput, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a file; for one in a store, the ranges that are needed are fetched ahead, together."""
    with (
        open_input(source.location) as file,
        pq.ParquetFile(
            file,
            pre_buffer=is_object(source.location),
            read_dictionary=list(dictionaries) or None,
        ) as it,
    ):
        yield it


def _refuse_packed(source: SourceInput, size: int, unpacked: int, limits: ReadLimits) -> None:
    most = limits.unpacked_max(size)
    if most and unpacked > most:
        raise too_packed(source, limit=most, actual=unpacked)


def _cuts(sizes: Sequence[int], target_bytes: int) -> Iterator[int]:
    """Yield the place after each run of pieces that reaches the target; at least one place."""
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
        with within_memory(source.path):
            yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise unreadable(source, error) from error
