"""`omnigraph optimize`: the tables of a graph in their best layout."""

import click

from omnigraph.cli.options import GraphCommand, branch_option, json_option
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.target import Addressed, storage_options, uri_argument

_BY_THE_ENGINE = "does not apply to maintenance: it is recorded as omnigraph:maintenance"


@click.command("optimize", cls=GraphCommand, refuses={"--as": _BY_THE_ENGINE})
@uri_argument
@branch_option
@storage_options
@json_option
def optimize(*, branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Bring the tables of a branch of the graph at URI into their best layout, as one commit.

    Small data files are folded and deleted rows left out, indexes are merged and missing ones built. No row
    changes and no version goes. A second run finds nothing to do, and makes no commit. Tables that a branch
    has never written are those of where it comes from, and are left alone.
    """
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.maintenance import render_optimize, table_progress
    from omnigraph.cli.render.writes import render_pending
    from omnigraph.wire.documents import optimize_document, pending_document

    addressed.announce("optimize", target)
    with (
        open_for_writing(target) as graph,
        table_progress(quiet=addressed.quiet, as_json=as_json) as progress,
    ):
        result = graph.optimize(branch=branch, progress=progress)
    pending = [index for table in result.tables for index in table.pending_indexes]
    if pending:
        tell(render_pending(pending_document(pending)))
    if as_json:
        print_document(optimize_document(result, uri=target.uri, branch=branch))
    else:
        click.echo(render_optimize(result, branch))
