"""Incoming values, from JSON or from the statements of a mutation, to typed Arrow columns.

C1  A value is converted or refused, never altered: no truncated float, no wrapped integer, no text read as a
    number except the decimal strings of 64-bit integers.
C2  Null stays null, also as an item of a list. Whether null is allowed, and whether a float is finite or a
    year has four digits, is decided by the value checks.

The usual case, a column whose values all have the expected Python type, is one call into Arrow; only a column
with something else in it is converted value by value.
"""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from datetime import date
from itertools import chain
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import arrow_type
from omnigraph.catalog.model import Property
from omnigraph.core.arrays import Positions
from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.errors import ExecutionError
from omnigraph.core.limits import I32_MAX, I32_MIN, I64_MAX, I64_MIN
from omnigraph.core.temporal import days_of, millis_of, parse_date, parse_datetime
from omnigraph.core.values import FLOATS, INTEGER_WIDTHS, INTEGERS, Scalar, ValueType, json_name
from omnigraph.validate.columns import Column
from omnigraph.validate.references import BLOB_PREFIX, coerce_references
from omnigraph.validate.values import quote

Problems = list[tuple[int, str]]

_VALUES_AT_ONCE = 4_096  # between two looks at whether anybody still wants them
_DECIMAL_INTEGER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_UTC_TIMESTAMP = (  # what Arrow reads as `parse_datetime` does; other spellings are read one by one
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{3})?Z$"
)


class BeyondPython:
    """Represents an Arrow value that Python has no object for; it fits no type."""


class _Refusal(Exception):
    """Why one value does not fit."""


def coerce_column(values: Sequence[object], item: Property, where: str) -> tuple[Column, Problems]:
    """Return the column of a property, and the rows whose value was refused, each with the reason (C1, C2).

    A refused value is null in the column. `where` opens every message: `<Type>.<prop>`.
    """
    if item.is_external:
        column, problems = coerce_references(values, item)
    elif item.type.is_list or item.type.is_vector:
        column, problems = _lists(values, item.type)
    else:
        column, problems = _scalars(values, item.type.scalar)
    return column, [(row, f"{where}: {reason}") for row, reason in problems]


def _scalars(values: Sequence[object], scalar: Scalar) -> tuple[Column, Problems]:
    kinds = set(map(type, values)) - {type(None)}
    column = _direct(values, scalar, kinds)
    return _each(values, scalar) if column is None else (column, [])


def _direct(values: Sequence[object], scalar: Scalar, kinds: set[type]) -> Column | None:
    """Return the column in one call, or `None` where values must be converted one by one."""
    given: Column = values
    type_ = arrow_type(ValueType(scalar))
    try:
        if not kinds:
            return pa.array([None] * len(values), type_)
        if kinds <= _PLAIN.get(scalar, set()):
            return pa.array(given, type_)
        if scalar in FLOATS and kinds <= {int, float}:
            return pa.array(given, pa.float64()).cast(type_, safe=False)
        if scalar is Scalar.DATE and kinds == {int}:
            return pa.array(given, pa.int32()).cast(type_)
        if scalar is Scalar.DATETIME and kinds == {int}:
            return pa.array(given, pa.int64()).cast(type_)
        if scalar is Scalar.DATE and kinds == {str}:
            return pa.array(given, pa.utf8()).cast(type_)
        if scalar is Scalar.DATETIME and kinds == {str}:
            return _utc_timestamps(pa.array(given, pa.utf8()))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        pass  # one of them does not fit: the slow path says which
    return None


_PLAIN: dict[Scalar, set[type]] = {
    Scalar.STRING: {str},
    Scalar.BOOL: {bool},
    Scalar.BLOB: {bytes},
    **{scalar: {int} for scalar in INTEGERS},
}


def _utc_timestamps(texts: Column) -> Column | None:
    if not pc.all(pc.match_substring_regex(texts, _UTC_TIMESTAMP)).as_py():
        return None
    return texts.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).cast(pa.date64())


def _each(values: Sequence[object], scalar: Scalar) -> tuple[Column, Problems]:
    convert = _converter(scalar)
    converted: list[object] = []
    problems: Problems = []
    for row, value in enumerate(values):
        if not row % _VALUES_AT_ONCE:
            check_cancelled()
        try:
            converted.append(None if value is None else convert(value))
        except _Refusal as refusal:
            problems.append((row, str(refusal)))
            converted.append(None)
    type_ = arrow_type(ValueType(scalar))
    stored = _STORED.get(scalar, type_)
    whole: Column = pa.array(converted, stored)
    return whole.cast(type_, safe=False), problems


_STORED: dict[Scalar, pa.DataType] = {
    Scalar.F32: pa.float64(),
    Scalar.DATE: pa.int32(),
    Scalar.DATETIME: pa.int64(),
}


def _converter(scalar: Scalar) -> Callable[[object], object]:
    if scalar in INTEGERS:
        return lambda value: _integer(value, scalar)
    if scalar in FLOATS:
        return lambda value: _float(value, scalar)
    return {
        Scalar.STRING: _text,
        Scalar.BOOL: _bool,
        Scalar.DATE: _days,
        Scalar.DATETIME: _millis,
        Scalar.BLOB: _blob,
    }[scalar]


def _integer(value: object, scalar: Scalar) -> int:
    if isinstance(value, str) and scalar in {Scalar.I64, Scalar.U64} and _DECIMAL_INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(scalar, value)
    low, high = INTEGER_WIDTHS[scalar]
    return _within(value, low, high, scalar)


def _within(value: int, low: int, high: int, scalar: Scalar) -> int:
    if not low <= value <= high:
        shown = value if value.bit_length() <= 128 else "an integer of more than 128 bits"
        raise _Refusal(f"{shown} does not fit {scalar}")
    return value


def _float(value: object, scalar: Scalar) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(scalar, value)
    try:
        return float(value)
    except OverflowError:
        raise _Refusal(f"a number of this size does not fit {scalar}") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        _refuse(Scalar.STRING, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _Refusal("the text is not valid Unicode: it has half of a surrogate pair") from None
    return value


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        _refuse(Scalar.BOOL, value)
    return value


def _days(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _within(value, I32_MIN, I32_MAX, Scalar.DATE)
    return _parsed(value, Scalar.DATE, parse_date, days_of)


def _millis(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _within(value, I64_MIN, I64_MAX, Scalar.DATETIME)
    return _parsed(value, Scalar.DATETIME, parse_datetime, millis_of)


def _parsed(value: object, scalar: Scalar, parse: Callable[[str], int], number: Callable[[date], int]) -> int:
    if not isinstance(value, str | date):
        _refuse(scalar, value)
    try:
        return parse(value) if isinstance(value, str) else number(value)
    except ExecutionError as error:
        raise _Refusal(error.message) from None


def _blob(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str):
        _refuse(Scalar.BLOB, value)
    if not value.startswith(BLOB_PREFIX):
        raise _Refusal(
            f"a Blob cannot be a URI, write {BLOB_PREFIX}<data>: {quote(value)};"
            " a property for references has an @external in the schema"
        )
    try:
        return base64.b64decode(value.removeprefix(BLOB_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise _Refusal(f"the data after '{BLOB_PREFIX}' is not base64") from None


def _refuse(expected: Scalar | ValueType, value: object) -> NoReturn:
    shown = f" {quote(value)}" if isinstance(value, str) else f" {value}" if isinstance(value, float) else ""
    is_beyond = isinstance(value, BeyondPython)
    found = "a point in time outside of the years 1 to 9999" if is_beyond else json_name(value)
    raise _Refusal(f"expected {expected}, got {found}{shown}")


def _lists(values: Sequence[object], type_: ValueType) -> tuple[Column, Problems]:
    """Return a column of lists or vectors; a row with a refused item is refused once."""
    rows: list[Sequence[object] | None] = []
    problems: dict[int, str] = {}
    for row, value in enumerate(values):
        if not row % _VALUES_AT_ONCE:
            check_cancelled()
        try:
            rows.append(None if value is None else _list(value, type_))
        except _Refusal as refusal:
            problems[row] = str(refusal)
            rows.append(None)
    scalar = Scalar.F32 if type_.is_vector else type_.scalar
    flat = _flat(rows, type_)
    items = _direct(flat, scalar, set(map(type, flat)) - {type(None)})
    if items is None:
        for row, value in enumerate(rows):
            reason = None if value is None else _refused_item(value, scalar)
            if reason is not None:
                problems[row], rows[row] = reason, None
        items, _ = _scalars(_flat(rows, type_), scalar)
    absent = pa.array([value is None for value in rows], pa.bool_())
    target: Column = arrow_type(type_)
    if type_.is_vector:
        return pa.FixedSizeListArray.from_arrays(items, type=target, mask=absent), sorted(problems.items())
    offsets: Column = pa.array(_offsets(rows, type_), pa.int32())
    return pa.ListArray.from_arrays(offsets, items, type=target, mask=absent), sorted(problems.items())


def _refused_item(values: Sequence[object], scalar: Scalar) -> str | None:
    """Return why the first item that does not fit does not; what follows it is not looked at."""
    convert = _converter(scalar)
    for number, item in enumerate(values, start=1):
        if not number % _VALUES_AT_ONCE:
            check_cancelled()
        try:
            if item is not None:
                convert(item)
        except _Refusal as refusal:
            return f"item {number}: {refusal}"
    return None


def _list(value: object, type_: ValueType) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        _refuse(type_, value)
    if type_.dimension is not None and len(value) != type_.dimension:
        noun = "number" if type_.dimension == 1 else "numbers"
        raise _Refusal(f"expected {type_.dimension} {noun} for {type_}, got {len(value)}")
    return value


def _flat(rows: Sequence[Sequence[object] | None], type_: ValueType) -> list[object]:
    """Return the items of all rows; Arrow's vectors have items in null rows too."""
    filler = [0.0] * (type_.dimension or 0)
    return list(chain.from_iterable(filler if row is None else row for row in rows))


def _offsets(rows: Sequence[Sequence[object] | None], type_: ValueType) -> Positions:
    lengths = [(type_.dimension or 0) if row is None else len(row) for row in rows]
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
