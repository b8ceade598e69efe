"""Typed equality of rows: what counts as the same value.

E1  Null equals null and nothing else; an empty text or list is not null.
E2  Lists are equal when they have the same length and equal items in order, nulls in the same places.
E3  Floating-point numbers, also those in vectors, are equal when their bits are: 0.0 and -0.0 are two values,
    because results show them differently. Every NaN equals every other NaN.
E4  Texts and blobs are compared byte by byte.
"""

from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import Mask

AnyColumn: TypeAlias = "Any"  # an Arrow array; the stubs know too little of nested ones


def rows_equal(before: pa.Table, after: pa.Table) -> pa.BooleanArray:
    """Return row by row whether two tables with equal ids and columns have equal values (E1-E4)."""
    equal = np.ones(before.num_rows, np.bool_)
    for name in before.column_names:
        equal &= _equal(before[name].combine_chunks(), after[name].combine_chunks())
    return pa.array(equal, pa.bool_())


def _equal(one: AnyColumn, other: AnyColumn) -> Mask:
    null_one, null_other = _mask(one.is_null()), _mask(other.is_null())
    return np.where(null_one | null_other, null_one & null_other, _values_equal(one, other))


def _values_equal(one: AnyColumn, other: AnyColumn) -> Mask:
    """Compare values; the result where either is null does not count."""
    type_ = one.type
    if pa.types.is_fixed_size_list(type_):
        return _fixed_lists_equal(one, other)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _lists_equal(one, other)
    if pa.types.is_floating(type_):
        return _bits_equal(one, other)
    same: AnyColumn = pc.equal(one, other)
    return _mask(same.fill_null(False))


def _bits_equal(one: AnyColumn, other: AnyColumn) -> Mask:
    a, b = _numbers(one), _numbers(other)
    bits = np.uint32 if a.dtype == np.float32 else np.uint64
    same: Mask = (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
    return same


def _numbers(column: AnyColumn) -> npt.NDArray[Any]:
    return np.ascontiguousarray(column.fill_null(0.0).to_numpy(zero_copy_only=False))


def _fixed_lists_equal(one: AnyColumn, other: AnyColumn) -> Mask:
    width = one.type.list_size
    start = [column.offset * width for column in (one, other)]
    flat = [
        column.values.slice(at, len(column) * width) for column, at in zip((one, other), start, strict=True)
    ]
    items = _equal(*flat).reshape(len(one), width)
    return cast("Mask", items.all(axis=1))


def _lists_equal(one: AnyColumn, other: AnyColumn) -> Mask:
    lengths, other_lengths = _lengths(one), _lengths(other)
    equal: Mask = lengths == other_lengths
    has_items = equal & (lengths > 0)  # a null counts as empty, and its result does not count
    if has_items.any():
        flat = [column.filter(pa.array(has_items)).flatten() for column in (one, other)]
        starts = np.concatenate([[0], np.cumsum(lengths[has_items])[:-1]])
        equal[has_items] = np.logical_and.reduceat(_equal(*flat), starts)
    return equal


def _lengths(column: AnyColumn) -> npt.NDArray[np.int64]:
    lengths: AnyColumn = pc.list_value_length(column)
    return cast("npt.NDArray[np.int64]", lengths.fill_null(0).to_numpy().astype(np.int64))


def _mask(column: AnyColumn) -> Mask:
    mask: Mask = column.to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask
