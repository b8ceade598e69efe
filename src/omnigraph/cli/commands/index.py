"""`omnigraph index`: the declared indexes of a graph."""

from collections.abc import Sequence

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import (
    READS_HAVE_NO_ACTOR,
    GraphCommand,
    address_options,
    branch_option,
    json_option,
    uri_argument,
)
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.progress import working
from omnigraph.cli.target import announce, resolve

_BY_THE_ENGINE = "does not apply to maintenance: index builds are recorded as omnigraph:maintenance"


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def index() -> None:
    """Build missing indexes, or show which exist."""


@index.command("ensure", cls=GraphCommand, refuses={"--as": _BY_THE_ENGINE})
@uri_argument
@branch_option
@address_options
@json_option
def ensure(
    *,
    uri: str | None,
    branch: str | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,
    as_json: bool,
) -> None:
    """Build the declared indexes that the graph at URI lacks, as one commit."""
    target = resolve(uri, uris, stores)
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.documents import index_result_document
    from omnigraph.cli.render.writes import render_index_result, render_pending

    announce("index ensure", target, quiet=quiet)
    with open_for_writing(target) as graph, working("building indexes", quiet=quiet):
        result = graph.ensure_indices(branch=branch)
    if result.pending:
        tell(render_pending(result.pending))
    if as_json:
        print_document(index_result_document(result, uri=target.uri, branch=branch))
    else:
        click.echo(render_index_result(result))


@index.command("status", cls=GraphCommand, refuses={"--as": READS_HAVE_NO_ACTOR})
@uri_argument
@branch_option
@address_options
@json_option
def status(
    *,
    uri: str | None,
    branch: str | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,
    as_json: bool,
) -> None:
    """Show how much of its table each declared index of the graph at URI covers."""
    target = resolve(uri, uris, stores)
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.documents import index_status_document
    from omnigraph.cli.render.writes import render_index_status

    announce("index status", target, quiet=quiet)
    with open_for_reading(target) as graph:
        tables = graph.index_status(branch=branch)
    if as_json:
        print_document(index_status_document(tables, uri=target.uri, branch=branch))
    else:
        click.echo(render_index_status(tables))
