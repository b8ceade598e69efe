"""`omnigraph explain`: how a read would be carried out."""

import click

from omnigraph.cli.given_query import NO_ALIAS, GivenQuery, query_options
from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.reading import check_reading, snapshot_of, snapshot_option
from omnigraph.cli.target import Addressed, address_options

_REFUSED = {
    "--format": "applies to the rows of a query: a plan is text, or a document with --json",
    "--alias": NO_ALIAS,
}


@click.command(cls=ReadCommand, refuses=_REFUSED)
@query_options
@branch_option
@snapshot_option
@address_options
@json_option
def explain(
    *,
    given: GivenQuery,
    branch: str | None,
    snapshot: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Show the plan of the read NAME of a query file, without running it.

    Parameters are optional; those given are checked.
    """
    check_reading(given, branch, snapshot)
    target = addressed.resolve()
    source, params = given.source(), given.params()
    from omnigraph.cli.access import open_for_reading

    with open_for_reading(target) as graph:
        plan = graph.explain(source, given.name, params, branch=branch, snapshot=snapshot_of(snapshot))
    if as_json:
        print_document(plan.to_json())
    else:
        say(plan.to_text())
