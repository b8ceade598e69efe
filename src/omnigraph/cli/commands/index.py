"""`omnigraph index`: the declared indexes of a graph."""

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import GraphCommand, ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.progress import working
from omnigraph.cli.target import Addressed, address_options, uri_argument

_BY_THE_ENGINE = "does not apply to maintenance: index builds are recorded as omnigraph:maintenance"


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def index() -> None:
    """Build missing indexes, or show which exist."""


@index.command("ensure", cls=GraphCommand, refuses={"--as": _BY_THE_ENGINE})
@uri_argument
@branch_option
@address_options
@json_option
def ensure(*, branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Build the declared indexes that the graph at URI lacks, as one commit."""
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.writes import render_index_result, render_pending
    from omnigraph.wire.documents import index_result_document

    addressed.announce("index ensure", target)
    with open_for_writing(target) as graph, working("building indexes", quiet=addressed.quiet):
        result = graph.ensure_indices(branch=branch)
    if result.pending:
        tell(render_pending(result.pending))
    if as_json:
        print_document(index_result_document(result, uri=target.uri, branch=branch))
    else:
        click.echo(render_index_result(result))


@index.command("status", cls=ReadCommand)
@uri_argument
@branch_option
@address_options
@json_option
def status(*, branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Show how much of its table each declared index of the graph at URI covers."""
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.writes import render_index_status
    from omnigraph.wire.documents import index_status_document

    addressed.announce("index status", target)
    with open_for_reading(target) as graph:
        tables = graph.index_status(branch=branch)
    if as_json:
        print_document(index_status_document(tables, uri=target.uri, branch=branch))
    else:
        click.echo(render_index_status(tables))
