"""The arrays that the dense structures are made of, and how many values fit in one."""

from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.arrays import Ints, Mask, Positions, RowIds, SlotArray, Values
from omnigraph.core.limits import I32_MAX

__all__ = [
    "Ints",
    "Mask",
    "Positions",
    "RowIds",
    "SlotArray",
    "Values",
    "check_slots",
    "empty_slots",
    "linked",
    "plain",
    "taken",
    "words",
]

N = TypeVar("N", bound="np.generic[Any]")


def empty_slots() -> SlotArray:
    """Return no slots."""
    return np.empty(0, np.int32)


def check_slots(count: int) -> None:
    """Make sure that slots fit their 32 bits."""
    assert count <= I32_MAX, f"{count} rows of one table do not fit 32-bit slots"


def linked(place: Ints, nodes: SlotArray, right: SlotArray) -> Mask:
    """Return for each place whether one of the nodes that were found for it is the right one."""
    found = np.zeros(len(right), np.bool_)
    found[place[nodes == right[place]]] = True
    return found


def plain(values: "pa.ChunkedArray[Any] | Values") -> Values:
    """Return many pieces as one array."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    if values.num_chunks == 1:
        return cast("Values", values.chunk(0))
    return values.combine_chunks()


def taken(values: Values, index: Positions) -> Values:
    """Return values by position; null where it is -1."""
    return values.take(cast("pa.Int64Array", pa.array(index, mask=index < 0)))


def words(buffer: pa.Buffer | None, dtype: "np.dtype[N]") -> "npt.NDArray[N]":
    """Return the numbers in an Arrow buffer; without one, no numbers."""
    return np.empty(0, dtype) if buffer is None else np.frombuffer(memoryview(buffer), dtype)
