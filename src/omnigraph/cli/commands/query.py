"""`omnigraph query`: one read of a query text, at one snapshot."""

import click

from omnigraph.cli.given_query import NO_ALIAS, GivenQuery, query_options
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_data, print_document
from omnigraph.cli.reading import check_reading, snapshot_of, snapshot_option
from omnigraph.cli.target import Addressed, address_options

JSON = "json"
FORMATS = ("table", "kv", "csv", "jsonl", JSON)
_REFUSED = {
    "--if-commit": "applies to writes: a read is pinned to a commit with --snapshot",
    "--message": "applies to writes: a read makes no commit",
    "--alias": NO_ALIAS,
}


@click.command(cls=ReadCommand, refuses=_REFUSED)
@query_options
@branch_option
@snapshot_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="How the rows are printed; table if not given.",
)
@address_options
@json_option
@click.pass_context
def query(
    ctx: click.Context,
    *,
    given: GivenQuery,
    branch: str | None,
    snapshot: str | None,
    format_name: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Run the read NAME of a query file and print its rows; without NAME, the only one in the file.

    The whole query sees one snapshot: the newest of a branch, or a past one.
    """
    if as_json and format_name is not None:
        raise click.UsageError("--json and --format cannot be combined")
    check_reading(given, branch, snapshot)
    chosen = JSON if as_json else format_name or "table"
    ctx.ensure_object(Invocation).is_json |= chosen == JSON
    target = addressed.resolve()
    source, params = given.source(), given.params()
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.answer import ReadAnswer
    from omnigraph.cli.render.formats import LINES

    with open_for_reading(target) as graph:
        result = graph.query(source, given.name, params, branch=branch, snapshot=snapshot_of(snapshot))
    if chosen == JSON:
        print_document(result.to_json())
    else:
        print_data(f"{line}\n" for line in LINES[chosen](ReadAnswer.of(result)))
