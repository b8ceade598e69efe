"""Text in byte ranges: whole records, each in the slice where its first byte lies.

X1  However a file is cut, its slices give every record once, in order, with the line it begins at.
X2  A record ends at a line feed; in CSV at one outside of quotes. The last record needs none.
X3  Memory is bounded by a block, or by the longest record.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from omnigraph.bulk.files import file_size, is_object, open_input
from omnigraph.bulk.sources_model import Format, Slice, SourceInput, Survey
from omnigraph.core.errors import BadRequest
from omnigraph.validate.records import BLOCK_BYTES

LINE_END, QUOTE = b"\n", b'"'
_HEADER_BYTES = 65_536


def read_blocks(slice_: Slice, *, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a slice, several at a time, with the line that the first of them begins at (X1).

    Raises:
        BadRequest: the file cannot be read.
    """
    is_csv = slice_.source.format is Format.CSV
    with open_text(slice_.source) as stream:
        position, line, pending = _first_record(stream, slice_, is_csv=is_csv, block_bytes=block_bytes)
        end = slice_.end
        if end is not None and position >= end:
            return
        while chunk := stream.read(max(block_bytes, len(pending))):
            pending += chunk
            if end is not None and position + len(pending) >= end:
                cut = _end_of_record(pending, end - position - 1, is_csv=is_csv)
                if cut:
                    yield line, pending[:cut]
                    return
                continue
            cut = _last_end(pending, is_csv=is_csv)
            if cut:
                yield line, pending[:cut]
                line += pending.count(LINE_END, 0, cut)
                position += cut
                pending = pending[cut:]
        if pending:
            yield line, pending


def read_first_record(source: SourceInput) -> bytes:
    """Return the bytes of the first record of CSV, with its end.

    Raises:
        BadRequest: the file cannot be read.
    """
    data = b""
    with open_text(source) as stream:
        while chunk := stream.read(max(_HEADER_BYTES, len(data))):
            data += chunk
            cut = _first_end(data, 0, is_quoted=False, is_csv=True)
            if cut:
                return data[:cut]
    return data


def survey_text(slice_: Slice, *, block_bytes: int = BLOCK_BYTES) -> Survey:
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
            quotes += chunk.count(QUOTE) if is_csv else 0  # NDJSON is full of them, and they say nothing
            left -= len(chunk)
    return Survey(lines, quotes)


def size_of(source: SourceInput) -> int:
    """Return the bytes of a file as it lies there.

    Raises:
        BadRequest: it is not there.
    """
    try:
        return file_size(source.location)
    except OSError as error:
        raise unreadable(source, error) from error


@contextmanager
def open_text(source: SourceInput) -> Iterator[IO[bytes]]:
    """Open a text file, unpacked.

    Raises:
        BadRequest: it cannot be read.
    """
    packing = source.compression
    try:
        with _opened(source.location) as file:
            plain = file if packing is None else pa.CompressedInputStream(file, packing.value)
            yield cast("IO[bytes]", plain)
    except OSError as error:
        raise unreadable(source, error) from error


def _opened(location: str) -> BufferedReader | pa.NativeFile:
    return open_input(location) if is_object(location) else Path(location).open("rb")


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
    """Go to the first byte behind a header; a packed stream can only be read."""
    if slice_.source.compression is None:
        stream.seek(slice_.start)
    else:
        stream.read(slice_.start)


def _end_of_record(records: bytes, place: int, *, is_csv: bool) -> int:
    """Return where the record ends that holds the byte at a place, or zero if it is not all there (X2)."""
    is_quoted = is_csv and records.count(QUOTE, 0, place) % 2 == 1
    return _first_end(records, place, is_quoted=is_quoted, is_csv=is_csv)


def _first_end(text: bytes, start: int, *, is_quoted: bool, is_csv: bool) -> int:
    """Return the place behind the first record end at or after `start`, or zero."""
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
    """Return the place behind the last record end, or zero; the text begins with a record."""
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
