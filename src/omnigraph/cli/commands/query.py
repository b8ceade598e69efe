"""`omnigraph query`: one read of a query text or a stored query, at one snapshot."""

import click

from omnigraph.cli.call import prepare
from omnigraph.cli.given_query import GivenQuery, query_options
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.reading import check_reading, snapshot_of, snapshot_option
from omnigraph.cli.running import FORMATS, JSON, chosen_format, print_answer, run_read
from omnigraph.cli.target import Addressed, address_options

_REFUSED = {
    "--if-commit": "applies to writes: a read is pinned to a commit with --snapshot",
    "--message": "applies to writes: a read makes no commit",
}


@click.command(cls=ReadCommand, refuses=_REFUSED)
@query_options
@branch_option
@snapshot_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="How the rows are printed; as configured, or a table, if not given.",
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

    Without a file, NAME is a stored query of a server. The whole query sees one snapshot: the newest of a
    branch, or a past one.
    """
    if as_json and format_name is not None:
        raise click.UsageError("--json and --format cannot be combined")
    invocation = ctx.ensure_object(Invocation)
    invocation.is_json |= format_name == JSON
    check_reading(given, branch, snapshot)
    call = prepare(given, addressed, "read")
    configuration = addressed.settings
    chosen = chosen_format(format_name, call.format, configuration, as_json=as_json)
    invocation.is_json |= chosen == JSON
    on = None if snapshot is not None else addressed.on_branch(branch or call.branch)
    answer = run_read(call, branch=on, snapshot=snapshot_of(snapshot))
    print_answer(answer, chosen, configuration)
