"""Values of Python programs as the JSON values of a load; no library is imported to tell them apart.

W1  A value is stored as it is or refused: a `Decimal` that a float cannot repeat, NaN, a moment without a
    zone, an object inside of an object. Digits of a moment below the millisecond are cut, as everywhere.
"""

import base64
import dataclasses
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any
from uuid import UUID

from omnigraph.core.temporal import format_datetime, millis_of
from omnigraph.core.values import FLOATS, INTEGERS, Scalar, ValueType, named, shown
from omnigraph.validate.references import BLOB_PREFIX

INTEGER_BITS_MAX = 128  # above every integer that a graph holds: the reader names those that it refuses
_NAT = "NaT is not a time: give None where nothing is known"
_PLAIN = frozenset({str, bool, type(None)})


class Unstorable(Exception):
    """Why a value cannot be loaded."""


def plain_value(value: object, type_: ValueType | None) -> object:
    """Return a value as JSON has it, for a property of a type; without one, whatever fits best (W1).

    Raises:
        Unstorable: it cannot be stored as it is.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return plain_value(value.value, type_)
    match value:
        case bool():
            return value
        case int():
            return _integer(int(value))
        case float():
            return _float(float(value))
        case str():
            return str(value)
        case Decimal():
            return _decimal(value, None if type_ is None else type_.scalar)
        case UUID():
            return str(value)
        case date():
            return _time(value, type_)
        case bytes() | bytearray() | memoryview():
            return _bytes(bytes(value), type_)
        case list() | tuple():
            return _items(value, type_)
        case _ if type(value).__module__ == "numpy":
            return _of_numpy(value, type_)
        case _:
            raise Unstorable(_why_not(value))


def is_object(value: object) -> bool:
    """Return whether a value is an instance of a dataclass or of a pydantic model."""
    return not isinstance(value, type) and (
        dataclasses.is_dataclass(value) or hasattr(type(value), "__pydantic_fields__")
    )


def _of_numpy(value: Any, type_: ValueType | None) -> object:  # noqa: ANN401 - a number, a time or an array
    """Return a value of numpy; its times are numbers of a unit, and `tolist` would make integers of some."""
    if value.dtype.kind in "mV":  # spans of time, and records
        raise Unstorable(f"{value.dtype} is not a type that a property holds")
    if value.dtype.kind == "M":
        if bool((value != value).any()):  # noqa: PLR0124 - so is NaT told, as NaN
            raise Unstorable(_NAT)
        if value.dtype != "datetime64[D]":
            raise Unstorable(
                f"{value.dtype} has no time zone, so it is no moment: give aware datetimes; "
                "days are of the type datetime64[D]"
            )
    plain = value.tolist()
    if type(plain) is type(value):  # a float of more digits than Python's
        raise Unstorable(_why_not(value))
    return plain_value(plain, type_)


def _integer(value: int) -> int:
    if value.bit_length() > INTEGER_BITS_MAX:
        raise Unstorable(f"an integer of more than {INTEGER_BITS_MAX} bits fits no property")
    return value


def _float(value: float) -> float:
    if not isfinite(value):
        raise Unstorable(f"{value} is not a number that a graph holds: give None where nothing is known")
    return value


def _decimal(value: Decimal, scalar: Scalar | None) -> object:
    if scalar is None or scalar is Scalar.STRING:
        return str(value)
    if scalar in INTEGERS and value.is_finite() and value == value.to_integral_value():
        return _integer(int(value))
    if scalar in FLOATS | {Scalar.VECTOR} and value.is_finite():
        number = float(value)
        if Decimal(_shortest(number, scalar)) == value:
            return number
    raise Unstorable(f"{shown(value)} cannot be a {scalar} without losing a digit: round it first")


def _shortest(number: float, scalar: Scalar) -> str:
    if scalar is Scalar.F64:
        return repr(number)
    import numpy as np  # late: of most programs no Decimal is for a single-precision float

    return str(np.format_float_positional(np.float32(number), unique=True, trim="-"))


def _time(value: date, type_: ValueType | None) -> str:
    if type_ is not None and type_.scalar is Scalar.STRING:
        raise Unstorable(f"{named(value)} is not a String: give the text that is meant, as of isoformat()")
    if not isinstance(value, datetime):
        return value.isoformat()
    if type(value).__name__ == "NaTType":  # what pandas has in place of a missing moment
        raise Unstorable(_NAT)
    if value.utcoffset() is None:
        raise Unstorable(
            f"{value.isoformat()} has no time zone, so it is no moment: give an aware datetime, such as "
            "datetime.now(UTC), or value.replace(tzinfo=UTC) if it is in UTC"
        )
    try:
        moment = value.astimezone(UTC)
    except OverflowError:
        raise Unstorable(f"{value.isoformat()} is outside of the years 1 to 9999 in UTC") from None
    return moment.isoformat() if moment.microsecond % 1_000 else format_datetime(millis_of(moment))


def _bytes(value: bytes, type_: ValueType | None) -> str:
    if type_ is not None and type_.scalar is not Scalar.BLOB:
        raise Unstorable(f"bytes are not a {type_.scalar}: decode them first")
    return BLOB_PREFIX + base64.b64encode(value).decode()


def _items(values: "list[Any] | tuple[Any, ...]", type_: ValueType | None) -> list[object]:
    item = None if type_ is None else ValueType(Scalar.F32 if type_.is_vector else type_.scalar)
    try:
        return [plain_value(value, item) for value in values]
    except RecursionError:  # it may contain itself
        raise Unstorable("a list is nested too deeply") from None


def _why_not(value: object) -> str:
    if isinstance(value, Mapping) or is_object(value):
        return (
            f"{named(value)} is nested, and a property holds a value or a list of values: make it a node "
            "of a type of its own with an edge to it, or give each of its fields a property"
        )
    return f"{named(value)} is not a value that a property holds"
