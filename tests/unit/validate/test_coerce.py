"""Values of JSON and of statements to typed columns."""

import base64
import math
from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.arrow_schema import arrow_type
from omnigraph.catalog.model import Property
from omnigraph.core.errors import ExecutionError
from omnigraph.core.temporal import parse_date, parse_datetime
from omnigraph.core.values import Scalar, ValueType
from omnigraph.validate.coerce import coerce_column

NAIVE = datetime(1970, 1, 1)  # noqa: DTZ001 - a moment without a zone is a case of its own
VECTOR = ValueType(Scalar.VECTOR, dimension=2)


def coerce(scalar: Scalar | ValueType, *values: object) -> tuple[list[object], list[tuple[int, str]]]:
    """Return the stored values, dates as numbers, and the problems."""
    type_ = scalar if isinstance(scalar, ValueType) else ValueType(scalar)
    column, problems = coerce_column(values, Property("p", type_, 1), "T.p")
    assert column.type == arrow_type(type_)
    assert len(column) == len(values)
    numbers = {Scalar.DATE: pa.int32(), Scalar.DATETIME: pa.int64()}
    if not type_.is_list and type_.scalar in numbers:
        column = column.cast(numbers[type_.scalar])
    return column.to_pylist(), problems


def refused(scalar: Scalar | ValueType, value: object) -> str:
    """Return why a value is refused, the same alone and beside a good null."""
    stored, problems = coerce(scalar, None, value, None)
    assert stored == [None, None, None]
    assert [row for row, _ in problems] == [1]
    assert problems[0][1].startswith("T.p: ")
    return problems[0][1].removeprefix("T.p: ")


@pytest.mark.parametrize("scalar", [scalar for scalar in Scalar if scalar is not Scalar.VECTOR])
def test_null_stays_null(scalar: Scalar) -> None:
    assert coerce(scalar, None, None) == ([None, None], [])
    assert coerce(scalar) == ([], [])


@pytest.mark.parametrize(
    ("scalar", "low", "high"),
    [
        (Scalar.I32, -(2**31), 2**31 - 1),
        (Scalar.I64, -(2**63), 2**63 - 1),
        (Scalar.U32, 0, 2**32 - 1),
        (Scalar.U64, 0, 2**64 - 1),
    ],
)
def test_an_integer_fits_its_width_or_is_named(scalar: Scalar, low: int, high: int) -> None:
    assert coerce(scalar, low, high, None) == ([low, high, None], [])
    assert refused(scalar, low - 1) == f"{low - 1} does not fit {scalar}"
    assert refused(scalar, high + 1) == f"{high + 1} does not fit {scalar}"
    assert "more than 128 bits" in refused(scalar, 10**50_000)


@pytest.mark.parametrize("scalar", [Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64])
@pytest.mark.parametrize("value", [1.0, 1.5, True, "x", "1.0", " 1", "\u0661", [], {}, b"1"])
def test_nothing_else_is_an_integer(scalar: Scalar, value: object) -> None:
    assert refused(scalar, value).startswith(f"expected {scalar}, got ")


def test_decimal_strings_are_for_the_64_bit_integers() -> None:
    assert coerce(Scalar.I64, "-9223372036854775808", 5) == ([-(2**63), 5], [])
    assert coerce(Scalar.U64, "18446744073709551615") == ([2**64 - 1], [])
    assert refused(Scalar.U64, "-1") == "-1 does not fit U64"
    assert refused(Scalar.I32, "5") == "expected I32, got string '5'"
    assert refused(Scalar.U32, "5") == "expected U32, got string '5'"


def test_one_wrong_value_does_not_touch_the_others() -> None:
    stored, problems = coerce(Scalar.I32, 1, "x", None, 2**40, 5)

    assert stored == [1, None, None, None, 5]
    assert problems == [(1, "T.p: expected I32, got string 'x'"), (3, "T.p: 1099511627776 does not fit I32")]


@pytest.mark.parametrize("scalar", [Scalar.F32, Scalar.F64])
def test_integers_become_floats(scalar: Scalar) -> None:
    assert coerce(scalar, 1, 2.5, None) == ([1.0, 2.5, None], [])
    assert coerce(scalar, 2**60, 0.5) == ([float(2**60), 0.5], [])
    assert refused(scalar, "1") == f"expected {scalar}, got string '1'"
    assert refused(scalar, True) == f"expected {scalar}, got boolean"
    assert refused(scalar, 10**400) == f"a number of this size does not fit {scalar}"


def test_an_f32_is_rounded_and_what_is_too_large_is_left_to_the_value_checks() -> None:
    stored, problems = coerce(Scalar.F32, 0.1, 1e39)

    assert stored[0] == pytest.approx(0.1, abs=1e-8)
    assert stored[0] != 0.1
    assert stored[1] == math.inf
    assert problems == []


def test_texts_and_booleans_are_strict() -> None:
    assert coerce(Scalar.STRING, "a", "", "é") == (["a", "", "é"], [])
    assert coerce(Scalar.BOOL, True, False) == ([True, False], [])
    assert refused(Scalar.STRING, 1) == "expected String, got number"
    assert refused(Scalar.STRING, b"x") == "expected String, got bytes"
    assert coerce(Scalar.BOOL, True, 1)[0] == [True, None]
    assert refused(Scalar.BOOL, 1) == "expected Bool, got number"
    assert refused(Scalar.BOOL, "true") == "expected Bool, got string 'true'"
    assert "surrogate" in refused(Scalar.STRING, "\ud800")


def test_a_date_is_text_a_number_of_days_or_a_date() -> None:
    stored, problems = coerce(
        Scalar.DATE,
        "1970-01-02",
        5,
        date(1970, 1, 3),
        "1970-01-01T22:00:00-02:00",
        NAIVE - timedelta(days=1),
    )

    assert stored == [1, 5, 2, 1, -1]
    assert problems == []
    assert coerce(Scalar.DATE, 1, -1)[0] == [1, -1]
    assert coerce(Scalar.DATE, "2000-02-29", "0001-01-01")[0] == [11016, -719162]
    assert refused(Scalar.DATE, "2001-02-29") == "invalid Date '2001-02-29': write YYYY-MM-DD"
    assert "a Date has no time of day" in refused(Scalar.DATE, NAIVE - timedelta(hours=1))
    assert "a Date has no time of day" in refused(Scalar.DATE, "1970-01-01T23:00:00-02:00")
    assert refused(Scalar.DATE, 1.0) == "expected Date, got number 1.0"
    assert refused(Scalar.DATE, True) == "expected Date, got boolean"
    assert refused(Scalar.DATE, 2**31) == "2147483648 does not fit Date"


def test_a_datetime_is_text_a_number_of_milliseconds_or_a_moment() -> None:
    east = timezone(timedelta(hours=2))

    stored, problems = coerce(
        Scalar.DATETIME,
        "1970-01-01T00:00:01Z",
        5,
        datetime(1970, 1, 1, 2, 0, 0, 7_999, tzinfo=east),
        NAIVE + timedelta(seconds=3),
        date(1970, 1, 2),
        "1970-01-02",
        "1970-01-01 00:00:00.123456789",
    )

    assert stored == [1_000, 5, 7, 3_000, 86_400_000, 86_400_000, 123]
    assert problems == []
    assert coerce(Scalar.DATETIME, 7, -7)[0] == [7, -7]
    assert coerce(Scalar.DATETIME, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))[0] == [-1]
    assert refused(Scalar.DATETIME, "noon").startswith("invalid DateTime 'noon'")
    assert refused(Scalar.DATETIME, 2**63).endswith("does not fit DateTime")


_PARTS = st.sampled_from(["1970-01-01", "2024-02-30", "9999-12-31", "0000-01-01", "2024-02-29", "24-1-1", ""])
_TIMES = st.sampled_from(
    ["", "T00:00:00", " 23:59:59", "T24:00:00", "T12:60:00", "T12:00", "T12:00:60", "t00:00:00"]
)
_FRACTIONS = st.sampled_from(["", ".1", ".123", ".123456789", "."])
_ZONES = st.sampled_from(["", "Z", "z", "+02:00", "-23:59", "+24:00", " "])


@given(texts=st.lists(st.tuples(_PARTS, _TIMES, _FRACTIONS, _ZONES).map("".join), min_size=1, max_size=4))
def test_columns_of_dates_are_read_as_single_ones_are(texts: list[str]) -> None:
    for scalar, parse in ((Scalar.DATE, parse_date), (Scalar.DATETIME, parse_datetime)):
        expected: list[int | None] = []
        for text in texts:
            try:
                expected.append(parse(text))
            except ExecutionError:
                expected.append(None)

        stored, problems = coerce(scalar, *texts)

        year_zero = {position for position, text in enumerate(texts) if text.startswith("0000")}
        for position, value in enumerate(expected):
            if position not in year_zero:  # judged by the value checks
                assert stored[position] == value
        assert {row for row, _ in problems} - year_zero == {
            row for row, value in enumerate(expected) if value is None and row not in year_zero
        }


def test_a_blob_is_base64_or_bytes() -> None:
    encoded = "base64:" + base64.b64encode(b"\x00\xff").decode()

    assert coerce(Scalar.BLOB, encoded, "base64:", b"raw", None) == ([b"\x00\xff", b"", b"raw", None], [])
    assert coerce(Scalar.BLOB, b"raw")[0] == [b"raw"]
    assert "a Blob cannot be a URI" in refused(Scalar.BLOB, "s3://bucket/key")
    assert "not base64" in refused(Scalar.BLOB, "base64:a")
    assert "not base64" in refused(Scalar.BLOB, "base64:é")
    assert refused(Scalar.BLOB, 1) == "expected Blob, got number"


def test_lists_keep_their_nulls_for_the_value_checks() -> None:
    words = ValueType(Scalar.STRING, is_list=True)

    assert coerce(words, ["a"], [], None, ("b", "c"), [None]) == (
        [["a"], [], None, ["b", "c"], [None]],
        [],
    )
    assert refused(words, "a") == "expected [String], got string 'a'"
    assert refused(words, ["a", 1, 2]) == "item 2: expected String, got number"


def test_a_list_with_a_wrong_item_is_refused_once_and_alone() -> None:
    stored, problems = coerce(ValueType(Scalar.I64, is_list=True), [1], [2, "x", True], ["3"], 4, [], None)

    assert stored == [[1], None, [3], None, [], None]
    assert problems == [
        (1, "T.p: item 2: expected I64, got string 'x'"),
        (3, "T.p: expected [I64], got number"),
    ]


def test_lists_hold_every_scalar() -> None:
    assert coerce(ValueType(Scalar.DATE, is_list=True), ["1970-01-02", 5])[0] == [
        [date(1970, 1, 2), date(1970, 1, 6)]
    ]
    assert coerce(ValueType(Scalar.F32, is_list=True), [1, 2.5], [])[0] == [[1.0, 2.5], []]
    assert coerce(ValueType(Scalar.BOOL, is_list=True), [True, False])[0] == [[True, False]]


def test_a_vector_has_its_length_and_numbers_only() -> None:
    assert coerce(VECTOR, [1, 2.5], None, (0.0, 1.0)) == ([[1.0, 2.5], None, [0.0, 1.0]], [])
    assert coerce(VECTOR) == ([], [])
    assert refused(VECTOR, [1.0]) == "expected 2 numbers for Vector(2), got 1"
    assert refused(VECTOR, [1.0, "x"]) == "item 2: expected F32, got string 'x'"
    assert refused(VECTOR, "[1,2]") == "expected Vector(2), got string '[1,2]'"


def test_a_refused_vector_leaves_the_others_in_place() -> None:
    stored, problems = coerce(VECTOR, [1, 2], [3], [4, True], [5, 6])

    assert stored == [[1.0, 2.0], None, None, [5.0, 6.0]]
    assert [row for row, _ in problems] == [1, 2]


@pytest.mark.parametrize("text", ["base64:QU!JD", "base64:QUJD\n", "base64:QU JD"])
def test_characters_that_are_not_base64_are_not_passed_over(text: str) -> None:
    assert "is not base64" in refused(Scalar.BLOB, text)
