"""`omnigraph mutate`: one mutation of a query text or a stored one, as one commit."""

import click

from omnigraph.cli.call import prepare
from omnigraph.cli.given_query import GivenQuery, query_options
from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    branch_option,
    json_option,
    message_option,
    retry_option,
)
from omnigraph.cli.running import print_change, run_mutation
from omnigraph.cli.target import Addressed, address_options

_REFUSED = {
    "--snapshot": "applies to reads: a mutation changes the newest state of a branch",
    "--format": "applies to reads: a mutation prints text, or a document with --json",
}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@query_options
@click.option(
    "--if-commit", metavar="ID", help="Run only if the branch is at this commit; exit with 4 otherwise."
)
@branch_option
@message_option
@retry_option
@actor_option
@address_options
@json_option
def mutate(
    *,
    given: GivenQuery,
    if_commit: str | None,
    branch: str | None,
    message: str | None,
    retry: int | None,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Run the mutation NAME of a query file, as one commit; without NAME, the only one in the file.

    Without a file, NAME is a stored query of a server. A mutation that matches nothing makes no commit and
    succeeds.
    """
    given.check_usage()
    call = prepare(given, addressed, "mutation")
    author = addressed.author(call.target, actor)
    if retry is not None and call.target.is_served:
        raise click.UsageError(
            "--retry does not apply to a served graph: its server decides how long it tries"
        )
    on = addressed.on_branch(branch or call.branch)
    changed = run_mutation(call, branch=on, actor=author, if_commit=if_commit, message=message, retry=retry)
    print_change(changed, as_json=as_json)
