"""Where one value of a binary column lies in a data file, found without reading the value.

The library decodes whole values, and whoever wants a part of a long one would hold all of it. So the few
kilobytes that say where values begin are read here, and nothing else.

V1  Only layouts that this module knows are answered: of file version 2.2, values that are stored as they are.
    For any other the answer is `None`, and the caller asks the library for the whole value.
V2  Every number that is read from a file is compared with the length of the file before it is used: a damaged
    file gives `None` or a place inside the file.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.storage.files.version_file import fields

FILE_VERSION = (2, 2)
ReadBytes = Callable[[int, int], bytes]  # the bytes of a file from one position to another

_FOOTER = struct.Struct("<QQQIIHH4s")  # where metadata and their list are; counts; version; magic
_PLACE = struct.Struct("<QQ")
_LONG, _SHORT = struct.Struct("<Q"), struct.Struct("<I")
_METADATA_BYTES_MAX = 16 * 1024 * 1024  # of one column: hundreds of thousands of pages
_PAGE, _STARTS, _SIZES, _ROWS, _ENCODING = 2, 1, 2, 3, 4  # in the message of a column; in that of a page
_DIRECT, _INNER, _ANY_VALUE = 2, 1, 2  # from the encoding of a page to the message of its layout
_LAYERS = 5  # of a constant
_REP_BITS, _DEF_BITS, _FIXED_BITS, _LENGTH_BITS, _ITEMS, _SHOWN, _VALUES, _ZIP_LAYERS = range(1, 9)
_PLAIN = b"\x12\x06\n\x04\n\x02\x08\x40"  # variable width, 64-bit lengths, neither compressed
_ALWAYS, _NULLABLE = b"\x01", b"\x03"  # layers: whether a value may be null
_VALUE_HEAD = _SHORT.size * 3 + _LONG.size * 2  # before the value of a constant: counts, sizes, offsets


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """Where the bytes of a value are in their file; nowhere, if the value is null."""

    start: int
    length: int
    is_null: bool = False


NULL_PLACE = ValuePlace(0, 0, is_null=True)


@dataclass(frozen=True, slots=True)
class _Page:
    buffers: tuple[tuple[int, int], ...]  # start and size of each
    rows: int
    layout: int
    details: memoryview


def find_value(read: ReadBytes, file_bytes: int, column: int, row: int) -> ValuePlace | None:
    """Return where the value of a row is, by the number of its column in the file; `None` if unknown (V1)."""

    def inside(start: int, end: int) -> bytes:
        if not 0 <= start <= end <= file_bytes:  # V2
            raise ValueError("outside of the file")
        return read(start, end)

    try:
        page, at = _page_of(inside, file_bytes, column, row)
        if page.layout not in _KNOWN:
            return None
        found = _KNOWN[page.layout](inside, page, at)
        return None if found is None or found.start + found.length > file_bytes else found
    except (ValueError, LookupError, TypeError, struct.error):
        return None  # not what this module knows (V1)


def _page_of(read: ReadBytes, file_bytes: int, column: int, row: int) -> tuple[_Page, int]:
    """Return the page that holds a row, and the row's place in it."""
    footer = read(max(0, file_bytes - _FOOTER.size), file_bytes)
    _, places, _, _, columns, major, minor, magic = _FOOTER.unpack(footer)
    if (major, minor) != FILE_VERSION or magic != b"LANC" or not 0 <= column < columns:
        raise ValueError("another kind of file")
    at = places + column * _PLACE.size
    start, size = _PLACE.unpack(read(at, at + _PLACE.size))
    if size > _METADATA_BYTES_MAX:
        raise ValueError("too many pages")
    for number, value in fields(memoryview(read(start, start + size))):
        if number != _PAGE or isinstance(value, int):
            continue
        page = _page(value)
        if row < page.rows:
            return page, row
        row -= page.rows
    raise LookupError("no such row")


def _page(message: memoryview) -> _Page:
    values = dict(fields(message))
    layout = _message(_message(_message(_message(values, _ENCODING), _DIRECT), _INNER), _ANY_VALUE)
    ((kind, details),) = layout.items()
    if isinstance(details, int):
        raise TypeError("a layout is a message")
    starts, sizes = _numbers(values.get(_STARTS)), _numbers(values.get(_SIZES))
    return _Page(tuple(zip(starts, sizes, strict=True)), _number(values, _ROWS), kind, details)


def _message(outer: dict[int, int | memoryview], number: int) -> dict[int, int | memoryview]:
    inner = outer[number]
    if isinstance(inner, int):
        raise TypeError("a number where a message was expected")
    return dict(fields(inner))


def _number(values: dict[int, int | memoryview], number: int) -> int:
    value = values.get(number, 0)
    if not isinstance(value, int):
        raise TypeError("a message where a number was expected")
    return value


def _bytes(values: dict[int, int | memoryview], number: int) -> bytes:
    value = values[number]
    if isinstance(value, int):
        raise TypeError("a number where bytes were expected")
    return bytes(value)


def _numbers(packed: int | memoryview | None) -> list[int]:
    """Return numbers that follow each other, as a message holds lists of them."""
    if packed is None:
        return []
    if isinstance(packed, int):
        return [packed]
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def _in_full_zip(read: ReadBytes, page: _Page, place: int) -> ValuePlace | None:
    """Values one after the other, each behind its level and length; the second buffer has their starts."""
    details = dict(fields(page.details))
    has_levels = _number(details, _DEF_BITS) == 1
    known = {_DEF_BITS, _LENGTH_BITS, _ITEMS, _SHOWN, _VALUES, _ZIP_LAYERS}
    layers = _NULLABLE if has_levels else _ALWAYS
    is_plain = _bytes(details, _VALUES) == _PLAIN and _bytes(details, _ZIP_LAYERS) == layers
    if not (is_plain and details.keys() <= known) or _number(details, _LENGTH_BITS) != _LONG.size * 8:
        return None
    if _number(details, _ITEMS) != page.rows or (not has_levels and _DEF_BITS in details):
        return None
    (values_at, values_size), (starts_at, starts_size) = page.buffers
    width, rest = divmod(starts_size, page.rows + 1)
    if rest or width not in {1, 2, 4, 8}:
        return None
    both = read(starts_at + place * width, starts_at + (place + 2) * width)
    start, end = (int.from_bytes(both[at : at + width], "little") for at in (0, width))
    head = has_levels + _LONG.size
    if not start < end <= values_size:
        return None
    found = read(values_at + start, values_at + min(start + head, end))
    if has_levels and found[0]:
        return NULL_PLACE if end - start == 1 else None
    (length,) = _LONG.unpack(found[has_levels:])
    return ValuePlace(values_at + start + head, length) if start + head + length == end else None


def _in_constant(read: ReadBytes, page: _Page, place: int) -> ValuePlace | None:
    """One value for all rows of the page, or null; the last of three buffers has a level for each row."""
    details = dict(fields(page.details))
    if details.keys() != {_LAYERS} or len(page.buffers) not in {1, 3}:
        return None
    if len(page.buffers) == 3:
        _, (_, empty), (levels_at, levels_size) = page.buffers
        if _bytes(details, _LAYERS) != _NULLABLE or empty or levels_size != 2 * page.rows:
            return None
        if any(read(levels_at + 2 * place, levels_at + 2 * place + 2)):
            return NULL_PLACE
    elif _bytes(details, _LAYERS) != _ALWAYS:
        return None
    start, size = page.buffers[0]
    head = read(start, start + min(size, _VALUE_HEAD))
    counts, offsets = head[: 3 * _SHORT.size], head[3 * _SHORT.size :]
    parts, offsets_bytes, length = (_SHORT.unpack(counts[at : at + 4])[0] for at in (0, 4, 8))
    begin, end = (_LONG.unpack(part)[0] for part in (offsets[:8], offsets[8:]))
    is_known = (parts, offsets_bytes, begin, end) == (2, 2 * _LONG.size, 0, length)
    return ValuePlace(start + _VALUE_HEAD, length) if is_known and _VALUE_HEAD + length == size else None


_KNOWN = {2: _in_constant, 3: _in_full_zip}  # layouts by their numbers in the message of a page (V1)
