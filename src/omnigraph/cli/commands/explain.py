"""`omnigraph explain`: how a read would be carried out."""

import click

from omnigraph.cli.given_query import GivenQuery, text_options
from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.reading import check_reading, snapshot_of, snapshot_option
from omnigraph.cli.target import Addressed, address_options

_REFUSED = {
    "--format": "applies to the rows of a query: a plan is text, or a document with --json",
    "--alias": "applies to query and mutate: give the text with --query or -e",
}


@click.command(cls=ReadCommand, refuses=_REFUSED)
@text_options
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
    if not given.has_source:
        raise click.UsageError("give the query with either --query FILE or -e TEXT")
    target = addressed.resolve()
    source, params = given.source(addressed.settings.query_roots), given.params()
    on = None if snapshot is not None else addressed.on_branch(branch)
    from omnigraph.cli.access import look_into

    with look_into(target) as graph:
        plan = graph.explain(source, given.name, params, branch=on, snapshot=snapshot_of(snapshot))
    if as_json:
        print_document(plan.to_json())
    else:
        say(plan.to_text())
