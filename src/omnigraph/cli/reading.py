"""What commands that read with a query share: the text must be given, and one state of the graph named."""

import click

from omnigraph.cli.given_query import GivenQuery
from omnigraph.core.errors import UnsupportedError

_VERSION_DIGITS_MAX = 19  # an int64; the id of a commit is longer and hardly ever all digits

snapshot_option = click.option(
    "--snapshot", metavar="ID", help="A past state: the id of a commit, or a manifest version of main."
)


def check_reading(given: GivenQuery, branch: str | None, snapshot: str | None) -> None:
    """Refuse what cannot be meant, and a name without a text.

    Raises:
        click.UsageError: flags that exclude each other, or no query at all.
        UnsupportedError: a stored query is asked for.
    """
    given.check_usage()
    if branch is not None and snapshot is not None:
        raise click.UsageError(
            "--branch and --snapshot exclude each other: a snapshot names its branch itself"
        )
    if given.has_source:
        return
    if given.name is None:
        raise click.UsageError("give the query by either --query FILE or -e TEXT")
    raise UnsupportedError(
        f"'{given.name}' without a text is a stored query, and stored queries need a server: "
        "give the text with --query FILE or -e TEXT"
    )


def snapshot_of(text: str | None) -> str | int | None:
    """Return a manifest version as a number, and anything else as the id of a commit."""
    is_version = text is not None and text.isascii() and text.isdigit() and len(text) <= _VERSION_DIGITS_MAX
    return int(text) if text is not None and is_version else text
