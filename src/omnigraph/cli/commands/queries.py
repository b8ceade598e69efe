"""`omnigraph queries`: the stored queries of a folder or file, listed or checked against a graph."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, storage_options, uri_argument

if TYPE_CHECKING:
    from omnigraph.catalog.stored_queries import StoredQueries

_queries_option = click.option(
    "--queries",
    "place",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="The stored queries: a folder of .gq files, or one such file.",
)


@click.group(cls=ForwardingGroup)
def queries() -> None:
    """List stored queries, or check them against a graph."""


@queries.command("list", cls=ReadCommand)
@_queries_option
@json_option
def list_(*, place: Path, as_json: bool) -> None:
    """List stored queries with their kinds and parameters; no graph is needed."""
    from omnigraph.cli.render.queries import query_lines
    from omnigraph.wire.documents import stored_query_document

    found = _registry(place)
    if as_json:
        entries = [
            {**stored_query_document(query), "mcp_expose": query.is_exposed}
            for query in found.queries.values()
        ]
        print_document({"queries": entries})
    else:
        print_lines(query_lines(found))


@queries.command(cls=ReadCommand)
@uri_argument
@_queries_option
@storage_options
@json_option
@click.pass_context
def validate(ctx: click.Context, *, place: Path, addressed: Addressed, as_json: bool) -> None:
    """Check every stored query against the schema of the graph at URI.

    Exits with 1 if one of them does not fit, is declared twice, or cannot be read.
    """
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.queries import check_lines
    from omnigraph.wire.documents import registry_check_document

    found = _registry(place)
    with open_for_reading(target) as graph:
        check = found.check(graph.catalog)
    if as_json:
        print_document(registry_check_document(check))
    else:
        print_lines(check_lines(found, check))
    if check.breakages:
        ctx.exit(EXIT_FAILURE)


def _registry(place: Path) -> "StoredQueries":
    from omnigraph.graph.stored_files import given_queries, read_stored

    return read_stored(given_queries(place))
