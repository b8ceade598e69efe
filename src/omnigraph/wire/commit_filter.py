"""The conditions that lists of commits are narrowed by, the same on the command line and over HTTP."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol

from omnigraph.core.errors import BadRequest

MAIN = "main"


class CommitLike(Protocol):
    """What conditions look at: a commit of the engine, or one that a server listed."""

    def is_by(self, actor: str) -> bool: ...  # noqa: D102 - as `GraphCommit` says

    @property
    def manifest_branch(self) -> str | None: ...  # noqa: D102

    @property
    def created_at_micros(self) -> int: ...  # noqa: D102

    @property
    def merged_parent_commit_id(self) -> str | None: ...  # noqa: D102


CommitCondition = Callable[[CommitLike], bool]

KEYS = ("actor", "branch", "since", "until", "merge")  # as the help of the command lists them
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_LENGTH = len("2026-01-31")


def commit_condition(key: str, value: str) -> CommitCondition:
    """Return the condition that is met by the commits meant.

    Raises:
        BadRequest: the key is unknown, or the value cannot be read.
    """
    match key:
        case "actor":
            return lambda commit: commit.is_by(value)
        case "branch":
            return lambda commit: (commit.manifest_branch or MAIN) == value
        case "since":
            first = _micros(value, time.min)
            return lambda commit: commit.created_at_micros >= first
        case "until":
            last = _micros(value, time.max)
            return lambda commit: commit.created_at_micros <= last
        case "merge":
            if value not in {"true", "false"}:
                raise BadRequest("merge is true or false")
            return lambda commit: (commit.merged_parent_commit_id is not None) == (value == "true")
        case _:
            raise BadRequest(f"unknown key '{key}'; known are {', '.join(KEYS)}")


def _micros(value: str, of_day: time) -> int:
    """Return a moment; a day alone means its first or last one, and without an offset the time is UTC."""
    try:
        if len(value) <= _DAY_LENGTH:
            at = datetime.combine(date.fromisoformat(value), of_day)
        else:
            at = datetime.fromisoformat(value)
        return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise BadRequest("write a time as 2026-01-31 or 2026-01-31T12:00:00Z") from None
