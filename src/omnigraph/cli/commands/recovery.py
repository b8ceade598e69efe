"""`omnigraph recovery`: what became of interrupted writes."""

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed, storage_options, uri_argument
from omnigraph.cli.whole_numbers import WholeNumber


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def recovery() -> None:
    """List what was recovered after interrupted writes."""


@recovery.command("list", cls=ReadCommand)
@uri_argument
@click.option("--limit", type=WholeNumber(min=0), metavar="N", help="List at most N.")
@storage_options
@json_option
def list_recoveries(*, limit: int | None, addressed: Addressed, as_json: bool) -> None:
    """List the finished recoveries of the graph at URI, newest first.

    A recovery runs by itself, before the next write; this shows what became of each table.
    """
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.history import render_recoveries
    from omnigraph.wire.documents import recovery_document

    with open_for_reading(target) as graph:
        records = graph.recoveries()[:limit]
    if as_json:
        print_document({"recoveries": [recovery_document(record) for record in records]})
    else:
        click.echo(render_recoveries(records))
