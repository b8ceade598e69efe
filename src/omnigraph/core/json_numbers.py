"""Numbers as JSON has them, on every surface (`surfaces` 0.3).

J1  A number has the fewest digits that read back as the same number of its type: a float of 32 bits has up to
    nine, though as a double it may have seventeen.
J2  What a reader with double numbers would not read exactly is a text: large integers, and floats that are no
    numbers.
"""

from math import inf, isfinite, isnan

import pyarrow as pa

from omnigraph.core.arrays import Values
from omnigraph.core.limits import JSON_INTEGER_MAX


def json_integers(column: Values) -> list[object]:
    """Return integers of up to 64 bits (J2)."""
    return [_integer(value) for value in column.to_pylist()]


def json_floats(column: Values) -> list[object]:
    """Return floats of 32 or 64 bits (J1, J2)."""
    return [_float(value) for value in fewest_digits(column).to_pylist()]


def fewest_digits(column: Values) -> Values:
    """Return floats as doubles; one of 32 bits as the double with the fewest digits that mean it (J1)."""
    if not pa.types.is_float32(column.type):
        return column
    shortest: Values = column.cast(pa.utf8()).cast(pa.float64())
    return shortest


def _integer(value: int | None) -> int | str | None:
    return value if value is None or abs(value) <= JSON_INTEGER_MAX else str(value)


def _float(value: float | None) -> float | str | None:
    if value is None or isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value == inf else "-Infinity"
