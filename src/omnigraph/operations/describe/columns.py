"""One property, summed up batch by batch: nulls, distinct values, the smallest and largest, some samples.

V1  Distinct values are counted exactly up to `DISTINCT_EXACT_MAX`; beyond that they are estimated, from the
    smallest hashes of all values, and the result says so. Memory is bounded either way.
V2  The same rows give the same summary, in whatever batches they come, but for the order of samples.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from omnigraph.core.arrays import Values

DISTINCT_EXACT_MAX = 10_000  # a set of so many is counted in no time; more is a number like any other
SKETCH_HASHES = 4_096  # an estimate from so many is off by 1.6 % in most cases, and takes 32 KiB
SAMPLES_MAX = 5  # enough to see what the values look like
TEXT_CHARACTERS_MAX = 80  # of a text that is shown: what it looks like, not what it says
CUT = "…"
_HASHES = 2.0**64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """What was seen; `distinct` is None where it is not counted: lists, vectors and bytes."""

    nulls: int
    distinct: int | None
    is_approximate: bool
    minimum: object
    maximum: object
    samples: tuple[object, ...]


class Summary:
    """The summary of one column so far."""

    def __init__(self, type_: pa.DataType, *, is_unique: bool) -> None:
        """Take the type of the column; values that are known to be unique are not compared."""
        self._is_list = pa.types.is_list(type_)
        self._is_unique = is_unique
        self._count = self._nulls = 0
        self._samples: list[object] = []
        self._exact: Values | None = pa.array([], type_)
        self._sketch = np.array([], np.uint64)
        self._bounds: list[Any] = []

    def add(self, column: Values) -> None:
        """Take the next values."""
        self._count += len(column)
        self._nulls += column.null_count
        known = column.drop_null()
        if not len(known):
            return
        if self._is_list:
            self._sample(known)
            return
        found = known if self._is_unique else pc.unique(known)
        self._sample(found)
        self._bound(found)
        if not self._is_unique:
            self._tell_apart(found)

    def result(self) -> ColumnSummary:
        """Return what was seen."""
        low, high = _shown(self._bounds) if self._bounds else (None, None)
        return ColumnSummary(
            self._nulls, self._distinct(), self._exact is None, low, high, tuple(_shown(self._samples))
        )

    def _sample(self, found: Values) -> None:
        for value in _python(found[: 2 * SAMPLES_MAX]):
            if len(self._samples) < SAMPLES_MAX and value not in self._samples:
                self._samples.append(value)

    def _bound(self, found: Values) -> None:
        if pa.types.is_boolean(found.type):
            return
        # Not by way of a date64 scalar, which loses the time of day.
        ends = pc.min_max(_comparable(found))
        both = pa.array([ends["min"].as_py(), ends["max"].as_py()], ends["min"].type)
        low, high = _python(both.cast(found.type))
        self._bounds = [min([*self._bounds[:1], low]), max([*self._bounds[1:], high])]

    def _tell_apart(self, found: Values) -> None:
        """Count values one by one while there are few of them (V1)."""
        if self._exact is not None:
            together = pc.unique(pa.concat_arrays([self._exact, found]))
            if len(together) <= DISTINCT_EXACT_MAX:
                self._exact = together
                return
            found, self._exact = together, None
        texts = cast("list[str]", _comparable(found).cast(pa.string()).to_pylist())
        hashes = [xxhash.xxh3_64_intdigest(text.encode()) for text in texts]
        self._sketch = np.union1d(self._sketch, np.array(hashes, np.uint64))[:SKETCH_HASHES]

    def _distinct(self) -> int | None:
        if self._is_list:
            return None
        if self._is_unique:
            return self._count - self._nulls
        if self._exact is not None:
            return len(self._exact)
        # The k-th smallest of n hashes lies at about k/n of their range.
        estimate = (len(self._sketch) - 1) * _HASHES / float(self._sketch[-1])
        return min(round(estimate), self._count - self._nulls)


def _comparable(found: Values) -> Values:
    return found.cast(pa.int64()) if pa.types.is_date64(found.type) else found


def _python(found: Values) -> list[Any]:
    """Return values as Python has them; a `DateTime` is an aware one in UTC."""
    if pa.types.is_date64(found.type):
        millis = cast("list[int]", found.cast(pa.int64()).to_pylist())
        return [_EPOCH + timedelta(milliseconds=value) for value in millis]
    if pa.types.is_list(found.type) and pa.types.is_date64(found.type.value_type):
        return [_python(item.values) for item in found]
    return found.to_pylist()


def _shown(values: list[Any]) -> list[Any]:
    return [_cut(value) if isinstance(value, str) else value for value in values]


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS_MAX else text[:TEXT_CHARACTERS_MAX] + CUT
