"""One comparison over columns in memory: which rows is it true for?

M1  Null is never a match: the answer is a plain mask, false where either side is null.
M2  Numbers compare by mathematical value, whatever their types; a float constant is rounded to an F32 column.
M3  The answer is that of the same comparison in a filter of a table scan.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.bound import Operator
from omnigraph.core.arrays import Mask, Values
from omnigraph.exec.operators.operand import Constant, ConstantValue
from omnigraph.storage.tables.filter import Compare, IsIn, to_arrow_mask
from omnigraph.storage.tables.filter import LeafOperator as Comparing

COMPARING: dict[Operator, Comparing] = {
    Operator.EQ: "eq",
    Operator.NE: "ne",
    Operator.GT: "gt",
    Operator.LT: "lt",
    Operator.GE: "ge",
    Operator.LE: "le",
}
MIRRORED: dict[Operator, Operator] = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.GT: Operator.LT,
    Operator.LT: Operator.GT,
    Operator.GE: Operator.LE,
    Operator.LE: Operator.GE,
}
_FUNCTIONS: dict[Operator, str] = {
    Operator.EQ: "equal",
    Operator.NE: "not_equal",
    Operator.GT: "greater",
    Operator.LT: "less",
    Operator.GE: "greater_equal",
    Operator.LE: "less_equal",
}
_TEXT_TESTS: dict[Operator, Callable[[str, str], bool]] = {
    Operator.STRING_CONTAINS: lambda text, needle: needle in text,
    Operator.STARTS_WITH: lambda text, needle: text.startswith(needle),
}
_PLAIN: dict[Operator, Callable[[object, object], bool]] = {
    Operator.EQ: lambda left, right: left == right,
    Operator.NE: lambda left, right: left != right,
    Operator.GT: lambda left, right: bool(left > right),  # type: ignore[operator]
    Operator.LT: lambda left, right: bool(left < right),  # type: ignore[operator]
    Operator.GE: lambda left, right: bool(left >= right),  # type: ignore[operator]
    Operator.LE: lambda left, right: bool(left <= right),  # type: ignore[operator]
}
NumberArray: TypeAlias = npt.NDArray[Any]  # floats, signed or unsigned integers of 64 bits
_I64_END = 2.0**63


def compare(left: Values | Constant, operator: Operator, right: Values | Constant, size: int) -> Mask:
    """Return for which rows a comparison is true."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return np.full(size, compare_constants(left.value, operator, right.value), np.bool_)
    for side in (left, right):
        if isinstance(side, Constant) and side.value is None:
            return np.zeros(size, np.bool_)
    if operator is Operator.CONTAINS:
        return _contains(left, right, size)
    if operator in _TEXT_TESTS:
        return _text_test(left, operator, right)
    if isinstance(right, Constant):
        assert not isinstance(left, Constant)
        return _with_constant(left, operator, right.value)
    if isinstance(left, Constant):
        return _with_constant(right, MIRRORED[operator], left.value)
    return _columns(left, operator, right)


def compare_constants(left: ConstantValue, operator: Operator, right: ConstantValue) -> bool:
    """Return whether a comparison of two constants is true."""
    if left is None or right is None:
        return False
    if operator is Operator.CONTAINS:
        return isinstance(left, tuple) and right in left
    if operator in _TEXT_TESTS:
        return _TEXT_TESTS[operator](str(left), str(right))
    return _PLAIN[operator](left, right)


def as_mask(truth: Values) -> Mask:
    """Return a plain mask of an Arrow one; unknown is not true (M1)."""
    known = truth.fill_null(False) if truth.null_count else truth
    return cast("Mask", known.to_numpy(zero_copy_only=False))


def _with_constant(column: Values, operator: Operator, value: ConstantValue) -> Mask:
    if isinstance(column, pa.DictionaryArray):
        return _by_dictionary(column, lambda values: _with_constant(values, operator, value))
    assert not isinstance(value, tuple)
    batch = pa.RecordBatch.from_arrays([column], ["value"])
    return as_mask(to_arrow_mask(Compare("value", COMPARING[operator], value), batch))


def _by_dictionary(column: "pa.DictionaryArray[Any, Any]", test: Callable[[Values], Mask]) -> Mask:
    """Test each value once; rows look up their answer, and null rows have none."""
    truths = np.append(test(column.dictionary), False)
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(column.dictionary))
    return cast("Mask", truths[indices.to_numpy()])


def plain(column: Values) -> Values:
    """Return a column without its dictionary."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def one_zero(column: Values) -> Values:
    """Return floats with one zero for both."""
    return cast("Values", pc.call_function("add", [column, pa.scalar(0.0, column.type)]))


# Texts and lists


def _text_test(left: Values | Constant, operator: Operator, right: Values | Constant) -> Mask:
    if isinstance(right, Constant):
        assert not isinstance(left, Constant)
        needle = str(right.value)
        if isinstance(left, pa.DictionaryArray):
            return _by_dictionary(left, lambda values: _text_test(values, operator, right))
        function = pc.starts_with if operator is Operator.STARTS_WITH else pc.match_substring
        return as_mask(function(left, needle))
    test = _TEXT_TESTS[operator]
    needles = plain(right).to_pylist()
    texts: Sequence[object] = (
        [left.value] * len(needles) if isinstance(left, Constant) else plain(left).to_pylist()
    )
    pairs = zip(texts, needles, strict=True)
    return np.array([n is not None and t is not None and test(str(t), str(n)) for t, n in pairs], np.bool_)


def _contains(left: Values | Constant, right: Values | Constant, size: int) -> Mask:
    if isinstance(left, Constant):
        assert not isinstance(right, Constant)
        assert isinstance(left.value, tuple)
        batch = pa.RecordBatch.from_arrays([plain(right)], ["value"])
        return as_mask(to_arrow_mask(IsIn("value", left.value), batch))
    parents = pc.list_parent_indices(left).to_numpy(zero_copy_only=False)
    items = pc.list_flatten(left)
    if isinstance(right, Constant):
        equal = _with_constant(items, Operator.EQ, right.value)
    else:
        equal = _columns(items, Operator.EQ, plain(right).take(pa.array(parents)))
    found = np.zeros(size, np.bool_)
    found[parents[equal]] = True
    return found


# Two columns


def _columns(left: Values, operator: Operator, right: Values) -> Mask:
    left, right = plain(left), plain(right)
    if left.type != right.type and _is_number(left) and _is_number(right):
        return _numbers(left, operator, right)
    return as_mask(pc.call_function(_FUNCTIONS[operator], [left, right]))


def _is_number(column: Values) -> bool:
    return pa.types.is_integer(column.type) or pa.types.is_floating(column.type)


def _numbers(left: Values, operator: Operator, right: Values) -> Mask:
    """Compare numbers of two types by mathematical value (M2)."""
    known = as_mask(pc.and_(left.is_valid(), right.is_valid()))
    order = _order(_numpy(left), _numpy(right))
    truth = {
        Operator.EQ: order == 0,
        Operator.NE: order != 0,
        Operator.GT: order == 1,
        Operator.LT: order == -1,
        Operator.GE: (order == 0) | (order == 1),
        Operator.LE: (order == 0) | (order == -1),
    }[operator]
    return cast("Mask", truth & known)


def _numpy(column: Values) -> NumberArray:
    column = column.fill_null(0) if column.null_count else column
    if pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False).astype(np.float64)
    return column.to_numpy(zero_copy_only=False).astype(np.uint64 if column.type == pa.uint64() else np.int64)


def _order(left: NumberArray, right: NumberArray) -> npt.NDArray[np.int8]:
    """Return -1, 0 or 1 for smaller, equal and greater; 2 where a NaN makes it none of them."""
    if left.dtype == right.dtype:
        order = (left > right).astype(np.int8) - (left < right).astype(np.int8)
        if left.dtype == np.float64:
            order[np.isnan(left) | np.isnan(right)] = 2
        return order
    if left.dtype == np.float64:
        mirrored = _order(right, left)
        return cast("npt.NDArray[np.int8]", np.where(mirrored == 2, mirrored, -mirrored))
    if right.dtype == np.float64:
        return _order_to_floats(left, cast("npt.NDArray[np.float64]", right))
    # One is signed, the other not: below zero the signed one is smaller, else both fit the unsigned type.
    if left.dtype == np.int64:
        order = _order(left.astype(np.uint64), right)
        return cast("npt.NDArray[np.int8]", np.where(left < 0, np.int8(-1), order))
    return -_order(right, left)


def _order_to_floats(integers: NumberArray, floats: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """Compare integers with the whole part of floats, then let the rest of the float decide."""
    low, high = (0.0, 2.0 * _I64_END) if integers.dtype == np.uint64 else (-_I64_END, _I64_END)
    whole = np.floor(floats)
    inside = (whole >= low) & (whole < high)
    bounded = np.where(inside, whole, 0.0).astype(integers.dtype)
    order = (integers > bounded).astype(np.int8) - (integers < bounded).astype(np.int8)
    order = np.where((order == 0) & (floats > whole), np.int8(-1), order)
    order = np.where(inside, order, np.where(floats < low, np.int8(1), np.int8(-1)))
    return cast("npt.NDArray[np.int8]", np.where(np.isnan(floats), np.int8(2), order))
