"""`omnigraph snapshot`: what the newest view of a graph consists of."""

from collections.abc import Sequence

import click

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.cli.options import (
    READS_HAVE_NO_ACTOR,
    GraphCommand,
    address_options,
    branch_option,
    json_option,
    uri_argument,
)
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import resolve


@click.command(cls=GraphCommand, refuses={"--as": READS_HAVE_NO_ACTOR})
@uri_argument
@branch_option
@address_options
@json_option
def snapshot(
    *,
    uri: str | None,
    branch: str | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,  # noqa: ARG001 - accepted everywhere; there is no line to leave out
    as_json: bool,
) -> None:
    """Show the version of the graph at URI, and every table with its version and rows."""
    target = resolve(uri, uris, stores)
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.documents import snapshot_document
    from omnigraph.cli.render.history import render_snapshot

    with open_for_reading(target) as graph:
        newest = graph.snapshot(branch)
    if as_json:
        print_document(snapshot_document(newest))
    else:
        click.echo(render_snapshot(newest, INTERNAL_SCHEMA_VERSION))
