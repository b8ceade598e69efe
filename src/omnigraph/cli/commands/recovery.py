"""`omnigraph recovery`: what became of interrupted writes."""

from collections.abc import Sequence

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import (
    READS_HAVE_NO_ACTOR,
    GraphCommand,
    address_options,
    json_option,
    uri_argument,
)
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import resolve


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def recovery() -> None:
    """List what was recovered after interrupted writes."""


@recovery.command("list", cls=GraphCommand, refuses={"--as": READS_HAVE_NO_ACTOR})
@uri_argument
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="List at most N.")
@address_options
@json_option
def list_recoveries(
    *,
    uri: str | None,
    limit: int | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,  # noqa: ARG001 - accepted everywhere; there is no line to leave out
    as_json: bool,
) -> None:
    """List the finished recoveries of the graph at URI, newest first.

    A recovery runs by itself, before the next write; this shows what became of each table.
    """
    target = resolve(uri, uris, stores)
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.documents import recovery_document
    from omnigraph.cli.render.history import render_recoveries

    with open_for_reading(target) as graph:
        records = graph.recoveries()[:limit]
    if as_json:
        print_document({"recoveries": [recovery_document(record) for record in records]})
    else:
        click.echo(render_recoveries(records))
