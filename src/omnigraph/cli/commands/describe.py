"""`omnigraph describe`: a type, and what its rows hold."""

import click

from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.reading import snapshot_of, snapshot_option
from omnigraph.cli.target import Addressed, address_options, uri_argument


@click.command(cls=ReadCommand)
@click.argument("type_name", metavar="TYPE")
@uri_argument
@branch_option
@snapshot_option
@address_options
@json_option
def describe(
    *, type_name: str, branch: str | None, snapshot: str | None, addressed: Addressed, as_json: bool
) -> None:
    """Show the properties of TYPE in the graph at URI, with types, annotations and what they hold.

    Nulls, distinct values, the smallest and the largest, and some samples; of an edge type also how many
    edges nodes have. Every row is read once. More than 10,000 distinct values are estimated: ~12400.
    """
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot cannot be combined: a snapshot implies its branch")
    target = addressed.resolve()
    from omnigraph.cli.access import graph_is, look_into
    from omnigraph.cli.render.describe import render_description
    from omnigraph.wire.describe_document import describe_document

    with graph_is("last", "describe TYPE URI"), look_into(target) as graph:
        found = graph.describe(type_name, branch=branch, snapshot=snapshot_of(snapshot))
    if as_json:
        print_document(describe_document(found, target.uri))
    else:
        click.echo(render_description(found))
