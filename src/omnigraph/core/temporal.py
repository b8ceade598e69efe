"""`Date` and `DateTime` values: days and milliseconds since the epoch, and their text.

Accepted text: `YYYY-MM-DD`, or a full RFC 3339 timestamp with `T` or one space, 0 to 9 fraction digits and an
optional zone (UTC when missing).
"""

import re
from datetime import UTC, date, datetime, timedelta

from omnigraph.core.errors import ExecutionError

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_MIN_MS = (date.min.toordinal() - _EPOCH_DAY) * _DAY_MS  # years 1 to 9999: those with four digits
_MAX_MS = (date.max.toordinal() + 1 - _EPOCH_DAY) * _DAY_MS - 1
_PATTERN = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?",
    re.ASCII,
)


def parse_date(text: str) -> int:
    """Return days since the epoch; a timestamp must be midnight in UTC, nothing is truncated.

    Raises:
        ExecutionError: the text is not a date, or has a time of day.
    """
    millis = _parse(text)
    if millis is None:
        raise ExecutionError(f"invalid Date {_quote(text)}: write YYYY-MM-DD")
    if millis % _DAY_MS or _has_fraction(text):
        raise ExecutionError(time_of_day(text))
    return millis // _DAY_MS


def parse_datetime(text: str) -> int:
    """Return milliseconds since the epoch in UTC; a bare day is its midnight, smaller digits are cut.

    Raises:
        ExecutionError: the text is not a timestamp.
    """
    millis = _parse(text)
    if millis is None:
        raise ExecutionError(f"invalid DateTime {_quote(text)}: write RFC 3339, such as 2021-01-31T12:00:00Z")
    return millis


def days_of(value: date) -> int:
    """Return days since the epoch; a moment (UTC without a zone) must be midnight in UTC.

    Raises:
        ExecutionError: it has a time of day.
    """
    if not isinstance(value, datetime):
        return value.toordinal() - _EPOCH_DAY
    days, rest = divmod(_since_epoch(value), timedelta(days=1))
    if rest:
        raise ExecutionError(time_of_day(value.isoformat()))
    return days


def time_of_day(text: str) -> str:
    """Return why a moment is not a `Date`."""
    return f"invalid Date {_quote(text)}: a Date has no time of day, and this is not midnight in UTC"


def millis_of(value: date) -> int:
    """Return milliseconds since the epoch; a moment without a zone is in UTC, a bare day is its midnight."""
    if not isinstance(value, datetime):
        return days_of(value) * _DAY_MS
    return _since_epoch(value) // timedelta(milliseconds=1)


def moment_of_micros(micros: int) -> datetime:
    """Return the moment that many microseconds after the epoch, in UTC; years beyond 1 to 9999 are these."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:  # of a damaged file: what shows it must not fail
        millis = _MIN_MS if micros < 0 else _MAX_MS
        return _EPOCH + timedelta(milliseconds=millis)


def _since_epoch(value: datetime) -> timedelta:
    return (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH


def format_date(days: int) -> str:
    """Return `YYYY-MM-DD`."""
    return date.fromordinal(_EPOCH_DAY + days).isoformat()


def format_datetime(millis: int) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    moment = _EPOCH + timedelta(milliseconds=millis)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{millis % 1_000:03d}Z".zfill(24)


def _parse(text: str) -> int | None:
    match = _PATTERN.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return None
    millis = (moment - _EPOCH) // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0")[:3])
    millis -= _zone_minutes(zone) * 60_000
    return millis if _MIN_MS <= millis <= _MAX_MS else None


def _has_fraction(text: str) -> bool:
    """Return whether a timestamp has fraction digits, which may go below the millisecond."""
    match = _PATTERN.fullmatch(text)
    return match is not None and (match[7] or "").strip("0") != ""


def _zone_minutes(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return -minutes if zone[0] == "-" else minutes


def _quote(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
