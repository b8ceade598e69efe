"""Text in byte ranges: whole records, each in the slice that has its first byte.

X1  However a file is cut, its slices give every record once, in order, with the line it begins at.
X2  A record ends at a line feed; in CSV at one outside quotes. The last record needs none.
X3  Memory is bounded by a block, or by the longest record, and that by a limit.
X4  A packed file is read up to a limit for what it may hold, however much more there is in it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import IO, cast

import pyarrow as pa

from omnigraph.bulk.files import file_size, is_object, open_input
from omnigraph.bulk.sources.model import Format, Slice, SliceSurvey, SourceInput
from omnigraph.core.errors import BadRequest, ResourceLimit
from omnigraph.core.regular_file import open_regular
from omnigraph.validate.records import (
    BLOCK_BYTES,
    EXPANSION_FLOOR_SETTING,
    EXPANSION_SETTING,
    UNLIMITED,
    ReadLimits,
)

LINE_END, QUOTE = b"\n", b'"'
_HEADER_BYTES = 65_536


def read_blocks(
    slice_: Slice, *, block_bytes: int = BLOCK_BYTES, limits: ReadLimits = UNLIMITED
) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a slice, several at a time, with the line that the first of them begins at (X1).

    Raises:
        BadRequest: the file cannot be read.
        ResourceLimit: a record, or what the file unpacks to, is above a limit (X3, X4).
    """
    for line, block in _blocks(slice_, block_bytes, limits):
        if limits.line_bytes_max and len(block) > limits.line_bytes_max:
            _refuse_long(slice_.source, line, block, limits)
        yield line, block


def _blocks(slice_: Slice, block_bytes: int, limits: ReadLimits) -> Iterator[tuple[int, bytes]]:
    is_csv = slice_.source.format is Format.CSV
    with open_text(slice_.source, limits) as stream:
        position, line, pending = _first_record(stream, slice_, is_csv=is_csv, block_bytes=block_bytes)
        end = slice_.end
        if end is not None and position >= end:
            return
        while chunk := stream.read(_wanted(block_bytes, pending, limits)):
            pending += chunk
            if end is not None and position + len(pending) >= end:
                cut = _end_of_record(pending, end - position - 1, is_csv=is_csv)
                if cut:
                    yield line, pending[:cut]
                    return
                begun = _last_end(pending, is_csv=is_csv)
                at = line + pending.count(LINE_END, 0, begun)
                limits.check_line(len(pending) - begun, file_name=slice_.source.name, line=at)
                continue
            cut = _last_end(pending, is_csv=is_csv)
            if cut:
                yield line, pending[:cut]
                line += pending.count(LINE_END, 0, cut)
                position += cut
                pending = pending[cut:]
            limits.check_line(len(pending), file_name=slice_.source.name, line=line)
        if pending:
            yield line, pending


def read_first_record(source: SourceInput, limits: ReadLimits = UNLIMITED) -> bytes:
    """Return the bytes of the first record of CSV, with its end.

    Raises:
        BadRequest: the file cannot be read.
        ResourceLimit: the record is above a limit (X3).
    """
    data = b""
    with open_text(source, limits) as stream:
        while chunk := stream.read(_wanted(_HEADER_BYTES, data, limits)):
            data += chunk
            cut = _first_end(data, 0, is_quoted=False, is_csv=True)
            limits.check_line(cut or len(data), file_name=source.name, line=1)
            if cut:
                return data[:cut]
    return data


def survey_text(slice_: Slice, *, block_bytes: int = BLOCK_BYTES) -> SliceSurvey:
    """Count the line ends, and in CSV the quotes, between the bounds of a slice of plain text.

    Raises:
        BadRequest: the file cannot be read.
    """
    assert slice_.end is not None, "a packed file is one slice"
    is_csv = slice_.source.format is Format.CSV
    lines = quotes = 0
    with open_text(slice_.source) as stream:
        stream.seek(slice_.start)
        left = slice_.end - slice_.start
        while left > 0 and (chunk := stream.read(min(block_bytes, left))):
            lines += chunk.count(LINE_END)
            quotes += chunk.count(QUOTE) if is_csv else 0  # NDJSON is full of them, and they mean nothing
            left -= len(chunk)
    return SliceSurvey(lines, quotes)


def size_of(source: SourceInput) -> int:
    """Return the bytes of a file as it is stored.

    Raises:
        BadRequest: it is not there.
    """
    try:
        return file_size(source.location)
    except OSError as error:
        raise unreadable(source, error) from error


@contextmanager
def open_text(source: SourceInput, limits: ReadLimits = UNLIMITED) -> Iterator[IO[bytes]]:
    """Open a text file, unpacked.

    Raises:
        BadRequest: it cannot be read.
        ResourceLimit: it holds more than a packed file may (X4).
    """
    packing = source.compression
    try:
        with _opened(source.location) as file:
            if packing is None:
                yield cast("IO[bytes]", file)
            else:
                bound = limits.unpacked_max(file_size(source.location))
                unpacked = _Unpacked(pa.CompressedInputStream(file, packing.value), source, bound)
                yield cast("IO[bytes]", unpacked)
    except OSError as error:
        raise unreadable(source, error) from error


class _Unpacked:
    """What a packed file holds, counted while it is read (X4)."""

    def __init__(self, stream: pa.NativeFile, source: SourceInput, bytes_max: int) -> None:
        self._stream, self._source, self._bytes_max = stream, source, bytes_max
        self._bytes = 0

    def read(self, count: int) -> bytes:
        chunk: bytes = self._stream.read(count)
        self._bytes += len(chunk)
        if self._bytes_max and self._bytes > self._bytes_max:
            raise too_packed(self._source, limit=self._bytes_max, actual=self._bytes)
        return chunk


def too_packed(source: SourceInput, *, limit: int, actual: int) -> ResourceLimit:
    """Return the error for a file that holds more than its size suggests (X4)."""
    return ResourceLimit(
        resource=f"bytes that {source.path} unpacks to",
        limit=limit,
        actual=actual,
        setting=f"{EXPANSION_SETTING} (or {EXPANSION_FLOOR_SETTING})",
    )


def _opened(location: str) -> BufferedReader | pa.NativeFile:
    return open_input(location) if is_object(location) else open_regular(location)


def _wanted(block_bytes: int, pending: bytes, limits: ReadLimits) -> int:
    """Return how much to read next: as much as there is of a long record, so that it is copied twice."""
    most = limits.line_bytes_max
    doubled = max(block_bytes, len(pending))
    return min(doubled, max(most, block_bytes)) if most else doubled


def _refuse_long(source: SourceInput, line: int, block: bytes, limits: ReadLimits) -> None:
    """Refuse the first record of a block that is above the limit, if there is one (X3)."""
    is_csv, start = source.format is Format.CSV, 0
    while start < len(block):
        end = _first_end(block, start, is_quoted=False, is_csv=is_csv) or len(block)
        record = block[start:end].rstrip(b"\r\n")
        limits.check_line(len(record), file_name=source.name, line=line)
        line += block.count(LINE_END, start, end)
        start = end


def unreadable(source: SourceInput, error: Exception) -> BadRequest:
    """Return the error for a file that is not there, or not what its name says."""
    strerror = error.strerror if isinstance(error, OSError) else None
    if strerror is not None:
        return BadRequest(f"cannot read {source.path}: {strerror}")
    kind = source.format.value if source.compression is None else source.compression.value
    return BadRequest(f"cannot read {source.path} as {kind}: {error}")


def _first_record(
    stream: IO[bytes], slice_: Slice, *, is_csv: bool, block_bytes: int
) -> tuple[int, int, bytes]:
    """Return where the first record of a slice begins, its line, and what was read of it already."""
    line = 1 + slice_.lines_before
    if slice_.is_first:
        _skip(stream, slice_)
        return slice_.start, line, b""
    assert slice_.end is not None, "only plain text is cut"
    stream.seek(slice_.start - 1)
    if stream.read(1) == LINE_END and not slice_.is_quoted:
        return slice_.start, line, b""
    passed, is_quoted, position = b"", slice_.is_quoted, slice_.start
    while position < slice_.end:
        passed = stream.read(min(block_bytes, slice_.end - position))
        if not passed:
            break
        cut = _first_end(passed, 0, is_quoted=is_quoted, is_csv=is_csv)
        if cut:
            return position + cut, line + passed.count(LINE_END, 0, cut), passed[cut:]
        line += passed.count(LINE_END)
        is_quoted ^= passed.count(QUOTE) % 2 == 1
        position += len(passed)
    return slice_.end, line, b""


def _skip(stream: IO[bytes], slice_: Slice) -> None:
    """Go to the first byte after a header; a packed stream can only be read."""
    if slice_.source.compression is None:
        stream.seek(slice_.start)
    else:
        stream.read(slice_.start)


def _end_of_record(records: bytes, place: int, *, is_csv: bool) -> int:
    """Return the end of the record that holds the byte at a place, or zero if it is incomplete (X2)."""
    is_quoted = is_csv and records.count(QUOTE, 0, place) % 2 == 1
    return _first_end(records, place, is_quoted=is_quoted, is_csv=is_csv)


def _first_end(text: bytes, start: int, *, is_quoted: bool, is_csv: bool) -> int:
    """Return the place after the first record end at or after `start`, or zero."""
    while True:
        found = text.find(LINE_END, start)
        if found < 0:
            return 0
        if not is_csv:
            return found + 1
        is_quoted ^= text.count(QUOTE, start, found) % 2 == 1
        if not is_quoted:
            return found + 1
        start = found + 1


def _last_end(records: bytes, *, is_csv: bool) -> int:
    """Return the place after the last record end, or zero; the text begins with a record."""
    if not is_csv:
        return records.rfind(LINE_END) + 1
    is_quoted = records.count(QUOTE) % 2 == 1
    behind = len(records)
    while (found := records.rfind(LINE_END, 0, behind)) >= 0:
        is_quoted ^= records.count(QUOTE, found, behind) % 2 == 1
        if not is_quoted:
            return found + 1
        behind = found
    return 0
