"""What commands that run a read share: a query text must be given, and at most one state of the graph."""

import click

from omnigraph.cli.given_query import GivenQuery
from omnigraph.core.errors import UnsupportedError

_VERSION_DIGITS_MAX = 19  # an int64; a commit id is longer and hardly ever all digits

snapshot_option = click.option(
    "--snapshot", metavar="ID", help="A past state: the id of a commit, or a manifest version of main."
)


def check_reading(given: GivenQuery, branch: str | None, snapshot: str | None) -> None:
    """Refuse combinations that make no sense, and a name without a text.

    Raises:
        click.UsageError: flags that cannot be combined, or no query at all.
        UnsupportedError: a stored query is asked for.
    """
    given.check_usage()
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot cannot be combined: a snapshot implies its branch")
    if given.has_source:
        return
    if given.name is None:
        raise click.UsageError("give the query with either --query FILE or -e TEXT")
    raise UnsupportedError(
        f"'{given.name}' without a text is a stored query, and stored queries need a server: "
        "give the text with --query FILE or -e TEXT"
    )


def snapshot_of(text: str | None) -> str | int | None:
    """Return a manifest version as a number, and anything else as the id of a commit."""
    is_version = text is not None and text.isascii() and text.isdigit() and len(text) <= _VERSION_DIGITS_MAX
    return int(text) if text is not None and is_version else text
