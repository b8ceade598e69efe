"""Loads through a server: one input of NDJSON, and what the server's route takes."""

import sys
from collections.abc import Sequence

import click

from omnigraph.cli.interrupt import unless_noted
from omnigraph.cli.sources import STDIN
from omnigraph.client.answer import Document
from omnigraph.client.scope import GraphAddress
from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import open_regular

_NDJSON = (".jsonl", ".ndjson", ".json")
_INSTEAD = {
    "--embed": "a server makes no vectors; give them with the records, or run omnigraph embed on the storage"
}


def refuse_for_server(**flags: object) -> None:
    """Refuse flags that only a load into storage can use.

    Raises:
        click.UsageError: one is given.
    """
    for flag, value in flags.items():
        if value is not None and value is not False:
            instead = _INSTEAD.get(flag, "a server takes one input of NDJSON")
            raise click.UsageError(f"{flag} is for loads into storage: {instead}")


def one_ndjson(names: Sequence[str]) -> bytes:
    """Return the one input to send.

    Raises:
        BadRequest: there are several, it is no file of NDJSON, or it cannot be read.
    """
    if len(names) != 1:
        raise BadRequest("a server takes one input of NDJSON: give --data once, or load into storage")
    name = names[0]
    if name == STDIN:
        return sys.stdin.buffer.read()
    if not name.endswith(_NDJSON):
        raise BadRequest(f"a server takes NDJSON, and {name} does not end in {', '.join(_NDJSON)}")
    try:
        with open_regular(name) as file:
            return file.read()
    except OSError as error:
        raise BadRequest(f"cannot read {name}: {error.strerror}") from error


def load_served(
    target: GraphAddress,
    data: bytes,
    *,
    mode: str,
    branch: str | None,
    from_: str | None,
    index: bool,
    message: str | None,
    dry_run: bool = False,
    strict_columns: bool = False,
) -> Document:
    """Send the input and return what the load did, as a load into storage says it."""
    from omnigraph.cli.access import reach_server

    with unless_noted("nothing was loaded"), reach_server(target) as graph:
        loaded = graph.load(
            data,
            mode=mode,
            branch=branch,
            from_=from_,
            index=index,
            message=message,
            dry_run=dry_run,
            strict_columns=strict_columns,
        )
    return {"uri": target.uri, **loaded}
