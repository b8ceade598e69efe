"""CSV by RFC 4180, in UTF-8, with a header: blocks of text to columns of text, with the line of each row.

K1  An empty field without quotes is null; a quoted field is a text, even an empty one.
K2  A row begins at the line of its first field; quoted line feeds and blank lines count as lines.
K3  A malformed row is refused at its line, and the rows around it are read.

A block is read by Arrow where that gives one row for each line, which is the usual case, and field by field
otherwise.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from omnigraph.bulk.sources.mapping import RefuseRow
from omnigraph.bulk.sources.model import Slice, SourceInput
from omnigraph.bulk.sources.text import LINE_END, QUOTE, read_blocks, read_first_record
from omnigraph.core.arrays import Positions
from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.errors import BadRequest
from omnigraph.validate.records import UNLIMITED, ReadLimits

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'
_FIELD = re.compile(rb"(" + _QUOTED + rb')|([^,"\r\n]*+)')
_ALL_IN_ORDER = re.compile(rb"(?:(?:" + _QUOTED + rb'|[^,"\r\n]*+)(?:,|\r?\n|\Z))*+')
_BLANK_LINES = re.compile(rb"(?:\r?\n)++")
_Record = tuple[int, list[bytes | None] | str]  # its line, and its fields or what is wrong


@dataclass(frozen=True, slots=True)
class Header:
    """The first record of a file: its columns, and how many bytes and lines it takes."""

    columns: tuple[str, ...]
    size: int
    lines: int


def read_header(source: SourceInput, limits: ReadLimits = UNLIMITED) -> Header:
    """Read the columns of a file.

    Raises:
        BadRequest: the file cannot be read, is empty, or does not begin with a header.
        ResourceLimit: the header is above a limit.
    """
    data = read_first_record(source, limits)
    if data.startswith(BYTE_ORDER_MARK):
        raise BadRequest(f"{source.path} begins with a byte order mark: save it as UTF-8 without one")
    records = list(_records(data, 1))
    if not records:
        raise BadRequest(f"{source.path} is empty: the first line of CSV names the columns")
    _, fields = records[0]
    if isinstance(fields, str):
        raise BadRequest(f"{source.path}:1: {fields}")
    names = tuple((field or b"").decode() for field in fields)
    if "" in names:
        raise BadRequest(f"{source.path}:1: column {names.index('') + 1} has no name")
    return Header(names, len(data), data.count(LINE_END))


def read_csv(
    slice_: Slice, refuse: RefuseRow, limits: ReadLimits = UNLIMITED
) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield the rows of a slice as columns of text, with their lines (K1, K2, K3).

    Raises:
        BadRequest: the file cannot be read.
        ResourceLimit: a row, or what the file unpacks to, is above a limit.
    """
    for line, block in read_blocks(slice_, limits=limits):
        check_cancelled()
        table = _by_arrow(block, len(slice_.header))
        if table is not None:
            lines = np.arange(line, line + table.num_rows, dtype=np.int64)
        else:
            table, lines = _by_field(block, line, len(slice_.header), refuse)
        yield table.rename_columns(list(slice_.header)), lines


def _by_arrow(block: bytes, width: int) -> pa.Table | None:
    """Return the rows of a block, or `None` where lines and rows differ or something is wrong."""
    if QUOTE in block and _ALL_IN_ORDER.fullmatch(block) is None:
        return None
    names = [str(column) for column in range(width)]
    try:
        table = pa_csv.read_csv(
            BytesIO(block),
            read_options=pa_csv.ReadOptions(
                column_names=names, use_threads=False, block_size=min(len(block) + 1, 2**31 - 1)
            ),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.utf8()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    lines = block.count(LINE_END) + (not block.endswith(LINE_END))
    return table if table.num_rows == lines else None


def _by_field(block: bytes, line: int, width: int, refuse: RefuseRow) -> tuple[pa.Table, Positions]:
    rows: list[list[str | None]] = []
    lines: list[int] = []
    for at, fields in _records(block, line):
        if isinstance(fields, str):
            refuse(at, fields)
        elif len(fields) != width:
            refuse(at, f"the row has {len(fields)} fields, but the header has {width}")
        else:
            rows.append([None if field is None else field.decode() for field in fields])
            lines.append(at)
    columns = zip(*rows, strict=True) if rows else [()] * width
    arrays = [pa.array(list(column), pa.utf8()) for column in columns]
    table = pa.Table.from_arrays(arrays, names=[str(column) for column in range(width)])
    return table, np.array(lines, dtype=np.int64)


def _records(block: bytes, line: int) -> Iterator[_Record]:
    """Yield the records of a block that begins with one; blank lines are not records."""
    place = 0
    while place < len(block):
        check_cancelled()  # a block may take seconds, if its rows are not lines
        blanks = _BLANK_LINES.match(block, place)
        if blanks is not None:  # all at once: a file may be nothing else
            line += block.count(LINE_END, place, blanks.end())
            place = blanks.end()
            continue
        fields, behind = _fields(block, place)
        passed = block[place:behind]
        yield line, fields
        line += passed.count(LINE_END)
        place = behind


def _fields(block: bytes, place: int) -> tuple[list[bytes | None] | str, int]:
    """Return the fields of the record at a place, or what is wrong with it, and the place after it."""
    fields: list[bytes | None] = []
    start = place
    while True:
        match = _FIELD.match(block, place)
        assert match is not None, "a field may be empty"
        quoted, plain = match.groups()
        fields.append((plain or None) if quoted is None else quoted[1:-1].replace(b'""', b'"'))
        place = match.end()
        following = block[place : place + 2]
        if following[:1] == b",":
            place += 1
            continue
        if following[:1] in {b"", LINE_END} or following == b"\r\n":
            end = place + (2 if following == b"\r\n" else len(following[:1]))
            return _decodable(fields), end
        if following[:1] == QUOTE and (place == start or block[place - 1 : place] == b","):
            return "the quote of a field is not closed", len(block)
        return _fault(following[:1]), block.find(LINE_END, place) + 1 or len(block)


def _decodable(fields: list[bytes | None]) -> list[bytes | None] | str:
    try:
        for field in fields:
            if field is not None:
                field.decode()
    except UnicodeDecodeError:
        return "invalid UTF-8"
    return fields


def _fault(character: bytes) -> str:
    """Return what is wrong with a record where a field ends with a character that cannot end one."""
    if character == b"\r":
        return "a carriage return without a line feed: put the field in quotes"
    if character == QUOTE:
        return "a quote in a field that does not begin with one: put the field in quotes and double the quote"
    return "text after the closing quote of a field"
