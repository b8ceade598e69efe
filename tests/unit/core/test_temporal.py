"""`Date` and `DateTime`: the text of 1.3 of the languages specification."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.core.errors import ExecutionError
from omnigraph.core.temporal import (
    days_of,
    format_date,
    format_datetime,
    millis_of,
    parse_date,
    parse_datetime,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000

INVALID = [
    "",
    "x",
    "2021",
    "2021-1-1",
    "2021-01-1",
    "20210101",
    "21-01-01",
    "12021-01-01",
    "-2021-01-01",
    "+2021-01-01",
    "2021/01/01",
    "2021-00-01",
    "2021-13-01",
    "2021-01-00",
    "2021-01-32",
    "2021-04-31",
    "2021-02-29",
    "1900-02-29",
    "0000-01-01",
    " 2021-01-01",
    "2021-01-01 ",
    "2021-01-01\n",
    "202\N{ARABIC-INDIC DIGIT ONE}-01-01",
    "2021-01-01T",
    "2021-01-01Z",
    "2021-01-01T12",
    "2021-01-01T12:00",
    "2021-01-01T12:00Z",
    "2021-01-01T12:00:00.",
    "2021-01-01T12:00:00.Z",
    "2021-01-01T12:00:00.1234567890Z",
    "2021-01-01T12:00:00,5Z",
    "2021-01-01  12:00:00Z",
    "2021-01-01_12:00:00Z",
    "2021-01-01T24:00:00Z",
    "2021-01-01T23:60:00Z",
    "2021-01-01T23:59:61Z",
    "2021-01-01T12:00:00 Z",
    "2021-01-01T12:00:00+1:00",
    "2021-01-01T12:00:00+0100",
    "2021-01-01T12:00:00+01",
    "2021-01-01T12:00:00+24:00",
    "2021-01-01T12:00:00+99:99",
    "2021-01-01T12:00:00+01:60",
    "2021-01-01T12:00:00Z+01:00",
    "1609459200000",
]
OUT_OF_RANGE = ["0001-01-01T00:00:00+00:01", "0001-01-01 10:00:00+12:00", "9999-12-31T23:59:59-00:01"]


def millis(*parts: int) -> int:
    return (datetime(*parts, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        ("1970-01-03", 2),
        ("1969-12-31", -1),
        ("2000-02-29", 11016),
        ("0001-01-01", -719162),
        ("9999-12-31", 2932896),
        ("2020-05-01T00:00:00Z", 18383),
        ("2020-05-01 00:00:00.000000000", 18383),
        ("2020-05-01T23:00:00-01:00", 18384),
        ("1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_a_date_is_a_day_or_its_midnight_in_utc(text: str, days: int) -> None:
    assert parse_date(text) == days


@pytest.mark.parametrize(
    "text",
    [
        "2020-05-01T23:59:59Z",
        "2020-05-01T00:00:00.001",
        "2020-05-01T00:00:00.000000001Z",
        "2020-05-01 00:00:00+01:00",
    ],
)
def test_a_time_of_day_is_no_date(text: str) -> None:
    with pytest.raises(ExecutionError, match="a Date has no time of day") as caught:
        parse_date(text)

    assert f"invalid Date {text!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("2021-01-31", millis(2021, 1, 31)),
        ("2021-01-31T12:30:15Z", millis(2021, 1, 31, 12, 30, 15)),
        ("2021-01-31 12:30:15Z", millis(2021, 1, 31, 12, 30, 15)),
        ("2021-01-31T12:30:15", millis(2021, 1, 31, 12, 30, 15)),
        ("2021-01-31T12:30:15+02:30", millis(2021, 1, 31, 10, 0, 15)),
        ("2021-01-31T22:30:15-02:30", millis(2021, 2, 1, 1, 0, 15)),
        ("2021-01-31T12:30:15-00:00", millis(2021, 1, 31, 12, 30, 15)),
        ("2021-01-31T12:30:15+23:59", millis(2021, 1, 30, 12, 31, 15)),
        ("2020-02-29T00:00:00Z", millis(2020, 2, 29)),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01T00:00:00Z", -62135596800000),
        ("9999-12-31T23:59:59.999Z", 253402300799999),
        ("0001-01-01T00:00:00-23:59", -62135596800000 + (24 * 60 - 1) * 60_000),
        ("9999-12-31T23:59:59.999+00:01", 253402300799999 - 60_000),
    ],
)
def test_a_timestamp_is_an_instant_in_utc(text: str, expected: int) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        ("", 0),
        (".1", 100),
        (".12", 120),
        (".123", 123),
        (".1239", 123),
        (".000999999", 0),
        (".999999999", 999),
        (".001000000", 1),
    ],
)
def test_a_fraction_of_up_to_nine_digits_is_cut_to_milliseconds(fraction: str, expected: int) -> None:
    assert parse_datetime(f"1970-01-01T00:00:00{fraction}Z") == expected
    assert parse_datetime(f"1969-12-31T23:59:59{fraction}") == expected - 1_000


@pytest.mark.parametrize("text", INVALID)
def test_anything_else_is_no_date_and_is_quoted(text: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        parse_date(text)

    assert "invalid Date " in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", INVALID)
def test_anything_else_is_no_timestamp_and_is_quoted(text: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        parse_datetime(text)

    assert "invalid DateTime " in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", OUT_OF_RANGE)
def test_an_instant_whose_utc_year_has_not_four_digits_is_refused(text: str) -> None:
    with pytest.raises(ExecutionError, match="invalid Date "):
        parse_date(text)
    with pytest.raises(ExecutionError, match="invalid DateTime "):
        parse_datetime(text)


def test_a_long_text_is_quoted_in_part() -> None:
    with pytest.raises(ExecutionError) as caught:
        parse_date("9" * 10_000)

    assert len(str(caught.value)) < 200


@given(st.dates())
def test_a_date_survives_its_text(day: date) -> None:
    text = day.isoformat()

    assert format_date(parse_date(text)) == text


@given(st.datetimes())
def test_a_timestamp_survives_its_text(moment: datetime) -> None:
    text = f"{moment:%H:%M:%S}.{moment.microsecond // 1_000:03d}Z"
    text = f"{moment.date().isoformat()}T{text}"

    assert format_datetime(parse_datetime(text)) == text
    assert millis_of(moment) == parse_datetime(text)
    if moment.time() == time():
        assert parse_date(text) == days_of(moment) == parse_datetime(text) // DAY_MS


def test_a_moment_of_python_has_the_zone_it_says_or_utc() -> None:
    paris = datetime(2021, 6, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    nowhere = datetime(2021, 6, 1)  # noqa: DTZ001 - what Python users have

    assert days_of(paris) == days_of(date(2021, 6, 1)) == days_of(nowhere)
    assert millis_of(paris) == millis_of(date(2021, 6, 1)) == days_of(paris) * DAY_MS
    with pytest.raises(ExecutionError, match=r"invalid Date '2021-06-01T00:00:00\.000001'"):
        days_of(nowhere + timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62135596800000, "0001-01-01T00:00:00.000Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_timestamp_is_written_with_four_year_digits_and_milliseconds(value: int, text: str) -> None:
    assert format_datetime(value) == text
