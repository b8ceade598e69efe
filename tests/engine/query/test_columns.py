"""Comparisons, orders, sums and encodings of columns, apart from any graph."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.bound import Operator
from omnigraph.core.arrays import Values
from omnigraph.exec.operators.comparison import compare
from omnigraph.exec.operators.operand import Constant
from omnigraph.exec.operators.order import SortKey, sorted_positions
from omnigraph.exec.operators.tail import _exact_sums
from omnigraph.graph.encode import json_values, python_values

INTEGERS = [0, 1, -1, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0**53, 2.0**63, -(2.0**63), 1e300, math.inf, -math.inf, math.nan]
UNSIGNED = [0, 1, 2**53 + 1, 2**63, 2**64 - 1]
PYTHON = {
    Operator.EQ: lambda left, right: left == right,
    Operator.NE: lambda left, right: left != right,
    Operator.LT: lambda left, right: left < right,
    Operator.LE: lambda left, right: left <= right,
    Operator.GT: lambda left, right: left > right,
    Operator.GE: lambda left, right: left >= right,
}


def column(values: Sequence[object], type_: pa.DataType) -> Values:
    return pa.array(values, type_)


@pytest.mark.parametrize("operator", PYTHON)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (column(INTEGERS, pa.int64()), column(FLOATS, pa.float64())),
        (column(FLOATS, pa.float64()), column(INTEGERS, pa.int64())),
        (column(UNSIGNED, pa.uint64()), column(FLOATS, pa.float64())),
        (column(UNSIGNED, pa.uint64()), column(INTEGERS, pa.int64())),
        (column(INTEGERS, pa.int64()), column(UNSIGNED, pa.uint64())),
        (column([0.5, 0.1, None], pa.float32()), column([0.5, 0.1, 1.0], pa.float64())),
        (column([1, -1, None], pa.int32()), column([1.0, -1.0, 2.0], pa.float32())),
    ],
)
def test_numbers_of_two_types_compare_by_value(left: Values, right: Values, operator: Operator) -> None:
    pairs = [(x, y) for x in range(len(left)) for y in range(len(right))]
    taken_left, taken_right = left.take([x for x, _ in pairs]), right.take([y for _, y in pairs])

    found = compare(taken_left, operator, taken_right, len(pairs))

    expected = [
        x is not None and y is not None and PYTHON[operator](x, y)
        for x, y in zip(taken_left.to_pylist(), taken_right.to_pylist(), strict=True)
    ]
    assert found.tolist() == expected


def test_a_dictionary_answers_as_its_values_do() -> None:
    plain = pa.array(["b", None, "a", "b", "c"])
    encoded = plain.dictionary_encode()

    for operator in (*PYTHON, Operator.STRING_CONTAINS, Operator.STARTS_WITH):
        for values in (plain, encoded):
            found = compare(values, operator, Constant("b"), 5)
            assert found.tolist() == compare(plain, operator, Constant("b"), 5).tolist()
            assert not found[1]


def test_lists_with_nulls_and_without_items() -> None:
    lists = pa.array([["a", None], None, [], ["b", "a"]], pa.list_(pa.utf8()))

    assert compare(lists, Operator.CONTAINS, Constant("a"), 4).tolist() == [True, False, False, True]
    needles = pa.array(["a", "a", "a", "c"])
    assert compare(lists, Operator.CONTAINS, needles, 4).tolist() == [True, False, False, False]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-3, 3)),
            st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])),
            st.one_of(st.none(), st.sampled_from(["", "a", "b", "é"])),
        ),
        max_size=12,
    ),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.one_of(st.none(), st.integers(0, 15)),
    st.integers(1, 40),
)
def test_rows_are_ordered_as_a_sort_of_tuples_would(
    rows: list[tuple[Any, ...]], descending: tuple[bool, ...], limit: int | None, repeat: int
) -> None:
    rows = rows * repeat
    types = (pa.int64(), pa.float64(), pa.utf8())
    columns = [pa.array([row[place] for row in rows], type_) for place, type_ in enumerate(types)]
    keys = [
        SortKey(lambda positions, values=values: values.take(positions), is_descending)  # type: ignore[misc]
        for values, is_descending in zip(columns, descending, strict=True)
    ]
    keys.append(SortKey(lambda positions: positions))

    found = sorted_positions(len(rows), keys, limit).tolist()

    expected = list(range(len(rows)))
    for place in reversed(range(3)):
        expected.sort(key=lambda row: _rank(rows[row][place]), reverse=False)
        if descending[place]:
            ranks = sorted({_rank(row[place]) for row in rows}, reverse=True)
            expected.sort(key=lambda row: ranks.index(_rank(rows[row][place])))
    assert found == (expected if limit is None else expected[:limit])


def _rank(value: float | str | None) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value + 0.0 if isinstance(value, float) else value)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=6))
def test_a_sum_does_not_depend_on_the_order(values: list[float]) -> None:
    sums = {
        float(_exact_sums(np.array(order), None, np.zeros(len(values), np.int64), 1)[0])
        for order in permutations(values)
    }

    assert len(sums) == 1
    exact = float(sum(Fraction(value) for value in values))
    assert sums.pop() == pytest.approx(exact, rel=1e-15, abs=1e-30)


def test_a_weighted_sum_is_the_sum_of_the_repeats() -> None:
    values, weights = np.array([0.1, 0.7, -3.3]), np.array([3, 1, 1_000_000])
    repeated = np.repeat(values, weights)

    weighted = _exact_sums(values, weights, np.zeros(3, np.int64), 1)

    assert weighted == _exact_sums(repeated, None, np.zeros(len(repeated), np.int64), 1)


def test_a_group_of_tiny_values_counts_beside_one_of_huge_values() -> None:
    values = np.array([5e-324, 5e-324, 9.2e18, 1e-20])

    sums = _exact_sums(values, None, np.array([0, 0, 1, 2]), 3)

    assert sums.tolist() == [1e-323, 9.2e18, 1e-20]


def test_values_become_json() -> None:
    moments = pa.array([0, -1, None, 1_609_459_200_123], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    vectors = pa.array([[1.0, math.nan], None], pa.list_(pa.float32(), 2))
    entities = pa.StructArray.from_arrays([pa.array(["x"]), moments.slice(3)], ["id", "at"])

    assert json_values(moments) == [
        "1970-01-01T00:00:00.000Z",
        "1969-12-31T23:59:59.999Z",
        None,
        "2021-01-01T00:00:00.123Z",
    ]
    assert json_values(pa.array([math.nan, math.inf, -math.inf, 0.1, None])) == [
        "NaN", "Infinity", "-Infinity", 0.1, None,
    ]  # fmt: skip
    assert json_values(pa.array([0.1], pa.float32())) == [0.1]
    assert json_values(pa.array([2**53 - 1, 2**53, -(2**53)])) == [
        2**53 - 1, "9007199254740992", "-9007199254740992",
    ]  # fmt: skip
    assert json_values(vectors) == [[1.0, "NaN"], None]
    assert json_values(entities) == [{"id": "x", "at": "2021-01-01T00:00:00.123Z"}]
    assert json_values(pa.array([["a"], None, []], pa.list_(pa.utf8()))) == [["a"], None, []]


def test_a_moment_keeps_its_time_of_day_in_python() -> None:
    moments = pa.array([1_609_459_200_123], pa.int64()).cast(pa.timestamp("ms", "UTC"))

    (moment,) = python_values(moments)

    assert str(moment) == "2021-01-01 00:00:00.123000+00:00"


def test_nearly_all_rows_tie_for_the_last_places() -> None:
    values = pa.array([1] * 255 + [0] * 5)

    found = sorted_positions(260, [SortKey(values.take), SortKey(lambda positions: positions)], 10)

    assert found.tolist() == [255, 256, 257, 258, 259, 0, 1, 2, 3, 4]
