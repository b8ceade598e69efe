"""`omnigraph index`: the declared indexes of a graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import (
    GraphCommand,
    ReadCommand,
    branch_option,
    index_engine_option,
    json_option,
    master_option,
)
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.target import Addressed, storage_options, uri_argument

if TYPE_CHECKING:
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.ensure_indices import IndexResult

_BY_THE_ENGINE = "does not apply to maintenance: index builds are recorded as omnigraph:maintenance"


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def index() -> None:
    """Build missing indexes, build one anew, or show which exist."""


@index.command("ensure", cls=GraphCommand, refuses={"--as": _BY_THE_ENGINE})
@uri_argument
@branch_option
@index_engine_option
@master_option
@storage_options
@json_option
def ensure(
    *, branch: str | None, engine: "Engine", master: str | None, addressed: Addressed, as_json: bool
) -> None:
    """Build the declared indexes that the graph at URI lacks, as one commit."""
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.maintenance import table_progress

    addressed.announce("index ensure", target)
    with (
        open_for_writing(target) as graph,
        table_progress(quiet=addressed.quiet, as_json=as_json) as progress,
    ):
        result = graph.ensure_indices(branch=branch, progress=progress, engine=engine, master=master)
    _print_result(result, uri=target.uri, branch=branch, as_json=as_json)


def _print_result(result: "IndexResult", *, uri: str, branch: str | None, as_json: bool) -> None:
    from omnigraph.cli.render.writes import render_index_result, render_pending
    from omnigraph.wire.documents import index_result_document, pending_document

    if result.pending:
        tell(render_pending(pending_document(result.pending)))
    if as_json:
        print_document(index_result_document(result, uri=uri, branch=branch))
    else:
        click.echo(render_index_result(result))


@index.command("rebuild", cls=GraphCommand, refuses={"--as": _BY_THE_ENGINE})
@click.argument("words", nargs=-1, metavar="[URI] TYPE PROPERTY")
@branch_option
@index_engine_option
@master_option
@storage_options
@json_option
def rebuild(
    *,
    words: Sequence[str],
    branch: str | None,
    engine: "Engine",
    master: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Build the indexes of a PROPERTY of a TYPE anew, over all rows, in place of those that are there.

    Other indexes are left alone. Searches use the old one until the new one is there.
    """
    positional, names = _graph_and_names(words)
    target = addressed.resolve(positional)
    from omnigraph.cli.access import graph_is, open_for_rebuild
    from omnigraph.cli.render.maintenance import table_progress

    addressed.announce("index rebuild", target)
    with (
        graph_is("first", "index rebuild URI TYPE PROPERTY"),
        open_for_rebuild(target) as graph,
        table_progress(quiet=addressed.quiet, as_json=as_json) as progress,
    ):
        result = graph.rebuild_index(*names, branch=branch, progress=progress, engine=engine, master=master)
    _print_result(result, uri=target.uri, branch=branch, as_json=as_json)


def _graph_and_names(words: Sequence[str]) -> tuple[str | None, tuple[str, str]]:
    match words:
        case [type_name, property_name]:
            return None, (type_name, property_name)
        case [uri, type_name, property_name]:
            return uri, (type_name, property_name)
        case _:
            raise click.UsageError(
                "index rebuild takes a type and a property, optionally preceded by a graph"
            )


@index.command("status", cls=ReadCommand)
@uri_argument
@branch_option
@storage_options
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
