"""`omnigraph snapshot`: what the newest view of a graph consists of."""

import click

from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, address_options, uri_argument


@click.command(cls=ReadCommand)
@uri_argument
@branch_option
@address_options
@json_option
def snapshot(*, branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Show the version of the graph at URI, and every table with its version and rows."""
    target = addressed.resolve()
    from omnigraph.cli.access import reach_for_reading
    from omnigraph.cli.render.history import render_snapshot

    with reach_for_reading(target) as graph:
        newest = graph.snapshot(addressed.on_branch(branch))
    if as_json:
        print_document(newest)
    else:
        print_lines([render_snapshot(newest)])
