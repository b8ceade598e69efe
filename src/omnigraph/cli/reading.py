"""What commands that run a read share: at most one state of the graph is named."""

import click

from omnigraph.cli.given_query import GivenQuery

_VERSION_DIGITS_MAX = 19  # an int64; a commit id is longer and hardly ever all digits

snapshot_option = click.option(
    "--snapshot", metavar="ID", help="A past state: the id of a commit, or a manifest version of main."
)


def check_reading(given: GivenQuery, branch: str | None, snapshot: str | None) -> None:
    """Refuse combinations that make no sense.

    Raises:
        click.UsageError: flags that cannot be combined.
    """
    given.check_usage()
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot cannot be combined: a snapshot implies its branch")


def snapshot_of(text: str | None) -> str | int | None:
    """Return a manifest version as a number, and anything else as the id of a commit."""
    is_version = text is not None and text.isascii() and text.isdigit() and len(text) <= _VERSION_DIGITS_MAX
    return int(text) if text is not None and is_version else text
