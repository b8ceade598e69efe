"""The conditions of `commit list --filter KEY=VALUE`."""

from collections.abc import Iterable

import click

from omnigraph.core.errors import BadRequest
from omnigraph.wire.commit_filter import commit_condition


def commit_filters(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return keys and values of conditions that all must hold.

    Raises:
        click.UsageError: a key is unknown, or a value cannot be read.
    """
    return [_filter(text) for text in texts]


def _filter(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--filter '{text}' is not KEY=VALUE")
    try:
        commit_condition(key, value)
    except BadRequest as error:
        raise click.UsageError(f"--filter '{text}': {error}") from error
    return key, value
