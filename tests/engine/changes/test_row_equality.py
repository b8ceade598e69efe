"""What counts as the same value."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.changes.row_equality import rows_equal

ITEMS = pa.list_(pa.field("item", pa.utf8()))
VECTOR = pa.list_(pa.field("item", pa.float32()), 2)
FLOATS = pa.list_(pa.field("item", pa.float64()))
QUIET, OTHER = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)

CASES: dict[str, tuple[pa.DataType, list[object], list[object], list[bool]]] = {
    "null is no empty text": (pa.utf8(), [None, "", None], ["", "", None], [False, True, True]),
    "texts differ in a mark": (pa.utf8(), ["é", "a"], ["e\u0301", "a"], [False, True]),
    "a null list is no empty one": (ITEMS, [None, [], None], [[], [], None], [False, True, True]),
    "a null item is an item": (ITEMS, [["a", None], [None]], [["a"], [None]], [False, True]),
    "order counts": (ITEMS, [["a", "b"], ["a", "b"]], [["b", "a"], ["a", "b"]], [False, True]),
    "an empty item is an item": (ITEMS, [["ab", ""], []], [["a", "b"], [""]], [False, False]),
    "nan equals nan": (pa.float64(), [math.nan, math.nan], [math.nan, 1.0], [True, False]),
    "zeros have a sign": (pa.float64(), [0.0, -0.0], [-0.0, -0.0], [False, True]),
    "numbers in lists": (FLOATS, [[0.0], [math.nan, 1.0]], [[-0.0], [math.nan, 1.0]], [False, True]),
    "vectors by bits": (VECTOR, [[1, 2], [0.0, 1]], [[1, 2], [-0.0, 1]], [True, False]),
    "a null vector": (VECTOR, [None, None], [[0, 0], None], [False, True]),
    "a null component": (VECTOR, [[None, 1], [None, 1]], [[0, 1], [None, 1]], [False, True]),
    "blobs by content": (pa.large_binary(), [b"", None, b"ab"], [None, None, b"ab"], [False, True, True]),
    "truth": (pa.bool_(), [True, None, False], [True, False, False], [True, False, True]),
    "moments": (pa.date64(), [1, 86_400_001], [1, 86_400_002], [True, False]),
    "large integers": (pa.uint64(), [2**64 - 1, 2**63], [2**64 - 1, 2**63 + 1], [True, False]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_equal_as_the_type_says(name: str) -> None:
    type_, before, after, expected = CASES[name]

    assert _equal(_column(type_, before), _column(type_, after)) == expected
    assert _equal(_column(type_, after), _column(type_, before)) == expected


def test_any_two_nans_are_equal() -> None:
    before, after = pa.array([QUIET], pa.float32()), pa.array([OTHER], pa.float32())

    assert _equal(before, after) == [True]


def test_slices_and_chunks_are_compared_by_their_rows() -> None:
    vectors = pa.array([[9, 9], [1, 2], [3, 4]], VECTOR).slice(1)
    lists = pa.array([["x"], ["a", "b"], None], ITEMS).slice(1)
    before = pa.table({"v": vectors, "l": lists})
    after = pa.concat_tables([before.slice(0, 1), before.slice(1)])

    assert rows_equal(before, after).to_pylist() == [True, True]


def test_a_row_is_equal_when_all_of_its_values_are() -> None:
    before = pa.table({"id": ["a", "b", "c"], "n": [1, 2, None], "t": ["x", "y", "z"]})
    after = pa.table({"id": ["a", "b", "c"], "n": [1, 3, None], "t": ["x", "y", "w"]})

    assert rows_equal(before, after).to_pylist() == [True, False, False]
    assert rows_equal(before.slice(0, 0), after.slice(0, 0)).to_pylist() == []


def _column(type_: pa.DataType, values: Sequence[object]) -> "pa.Array[pa.Scalar[pa.DataType]]":
    if pa.types.is_date64(type_):  # Arrow drops the time of day on the way in
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)


def _equal(
    before: "pa.Array[pa.Scalar[pa.DataType]]", after: "pa.Array[pa.Scalar[pa.DataType]]"
) -> list[bool]:
    return [bool(value) for value in rows_equal(pa.table({"v": before}), pa.table({"v": after})).to_pylist()]


def test_slices_of_vectors_are_compared_from_where_they_begin() -> None:
    vectors = pa.list_(pa.float32(), 2)
    before = pa.table({"v": pa.array([[1, 2], [3, 4], [5, 6]], vectors)}).slice(1)
    after = pa.table({"v": pa.array([[3, 4], [0, 0]], vectors)})

    assert rows_equal(before, after).to_pylist() == [True, False]
