"""`omnigraph status`: one look at a graph."""

import click

from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed, storage_options, uri_argument


@click.command(cls=ReadCommand)
@uri_argument
@branch_option
@storage_options
@json_option
def status(*, branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Show the head of the graph at URI, unfinished writes, indexes, sizes, and what maintenance would do.

    It only reads: nothing is healed or removed. Sizes are those of all versions and branches.
    """
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.status import render_status
    from omnigraph.wire.status_document import status_document

    with open_for_reading(target) as graph:
        found = graph.status(branch=branch)
    if as_json:
        print_document(status_document(found, target.uri))
    else:
        click.echo(render_status(found, target.uri))
