"""`omnigraph queries`: the stored queries of files or of a server, listed, or checked against a graph."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import Decorated, ReadCommand, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, address_options, guarded_storage_options, uri_argument
from omnigraph.client.scope import GraphAddress
from omnigraph.core.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.catalog.stored_queries import Remark, StoredQueries
    from omnigraph.client.answer import Document
    from omnigraph.graph.stored_files import DeclaredQueries


def _queries_option(*, required: bool) -> Callable[[Decorated], Decorated]:
    return click.option(
        "--queries",
        "place",
        required=required,
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="The stored queries: a folder of .gq files, or one such file.",
    )


@click.group(cls=ForwardingGroup)
def queries() -> None:
    """List stored queries, or check them against a graph."""


@queries.command("list", cls=ReadCommand)
@uri_argument
@_queries_option(required=False)
@address_options
@json_option
def list_(*, place: Path | None, addressed: Addressed, as_json: bool) -> None:
    """List stored queries with their kinds and parameters.

    They are those of --queries, for which no graph is needed, those that the server of the graph at URI
    lists, or those that the project file declares.
    """
    from omnigraph.cli.render.queries import query_lines
    from omnigraph.client.understood import understood

    entries, breakages = _listed(place, addressed)
    if as_json:
        print_document({"queries": entries})
        return
    with understood():
        lines = list(query_lines(entries, breakages))
    print_lines(lines)


@queries.command(cls=ReadCommand)
@uri_argument
@_queries_option(required=True)
@guarded_storage_options
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
        check = found.check(graph.catalog_on(None))
    if as_json:
        print_document(registry_check_document(check))
    else:
        print_lines(check_lines(found, check))
    if check.breakages:
        ctx.exit(EXIT_FAILURE)


def _listed(place: Path | None, addressed: Addressed) -> "tuple[list[Document], Sequence[Remark]]":
    """Return the entries of a catalog, and what is wrong with its files, if it comes from files.

    Raises:
        click.UsageError: queries and a graph are given.
        BadRequest: neither queries nor a server is given, and there is no project file that declares queries.
    """
    if addressed.policy is not None:
        raise click.UsageError(
            "--policy decides about a graph that is opened, and a list of queries opens none"
        )
    if place is not None:
        addressed.refuse("--queries names the stored queries: leave the graph out")
        return _of_registry(_registry(place))
    project = addressed.settings.project
    declared = None if project is None else project.queries
    if declared is not None and not addressed.is_named:
        return _of_registry(_registry(declared))
    target = addressed.resolve()
    if target.is_served:
        return _of_server(target), ()
    if declared is not None and addressed.targets:
        return _of_registry(_registry(declared))
    raise BadRequest(f"{target.uri} is storage, which has no stored queries: name them with --queries PATH")


def _of_server(target: GraphAddress) -> "list[Document]":
    from omnigraph.cli.access import reach_server
    from omnigraph.client.understood import understood

    with reach_server(target) as graph, understood():
        # A server lists what is exposed, and nothing else.
        return [{**entry, "mcp_expose": True} for entry in graph.queries()["queries"]]


def _of_registry(found: "StoredQueries") -> "tuple[list[Document], Sequence[Remark]]":
    from omnigraph.wire.documents import stored_query_document

    entries = [
        {**stored_query_document(query), "mcp_expose": query.is_exposed} for query in found.queries.values()
    ]
    return entries, found.breakages


def _registry(given: "Path | DeclaredQueries") -> "StoredQueries":
    from omnigraph.graph.stored_files import given_queries, read_stored

    return read_stored(given_queries(given))
