"""The conditions of `commit list --filter KEY=VALUE`."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta

import click

from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import branch_name

CommitCondition = Callable[[GraphCommit], bool]

KEYS = ("actor", "branch", "since", "until", "merge")  # as the help of the command lists them
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_LENGTH = len("2026-01-31")


def all_of(filters: Iterable[str]) -> CommitCondition:
    """Return the condition that is met where all filters match.

    Raises:
        click.UsageError: a key is unknown, or a value cannot be read.
    """
    conditions = [_condition(text) for text in filters]
    return lambda commit: all(condition(commit) for condition in conditions)


def _condition(text: str) -> CommitCondition:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--filter '{text}' is not KEY=VALUE")
    match key:
        case "actor":
            return lambda commit: commit.actor_id == value
        case "branch":
            return lambda commit: branch_name(commit.manifest_branch) == value
        case "since":
            first = _micros(text, value, time.min)
            return lambda commit: commit.created_at >= first
        case "until":
            last = _micros(text, value, time.max)
            return lambda commit: commit.created_at <= last
        case "merge":
            if value not in {"true", "false"}:
                raise click.UsageError(f"--filter '{text}': merge is true or false")
            return lambda commit: (commit.merged_parent_commit_id is not None) == (value == "true")
        case _:
            raise click.UsageError(f"--filter '{key}': unknown key; known are {', '.join(KEYS)}")


def _micros(text: str, value: str, of_day: time) -> int:
    """Return a moment; a day alone means its first or last one, and without an offset the time is UTC."""
    try:
        if len(value) <= _DAY_LENGTH:
            at = datetime.combine(date.fromisoformat(value), of_day)
        else:
            at = datetime.fromisoformat(value)
    except ValueError:
        raise click.UsageError(
            f"--filter '{text}': write a time as 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
