"""`omnigraph mutate`: one mutation of a query text, as one commit."""

import click

from omnigraph.cli.given_query import NO_ALIAS, GivenQuery, query_options
from omnigraph.cli.interrupt import unless_noted
from omnigraph.cli.options import GraphCommand, actor_option, branch_option, json_option, message_option
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.target import Addressed, address_options

_REFUSED = {
    "--snapshot": "applies to reads: a mutation changes the newest state of a branch",
    "--format": "applies to reads: a mutation prints text, or a document with --json",
    "--alias": NO_ALIAS,
}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@query_options
@click.option(
    "--if-commit", metavar="ID", help="Run only if the branch is at this commit; exit with 4 otherwise."
)
@branch_option
@message_option
@actor_option
@address_options
@json_option
def mutate(
    *,
    given: GivenQuery,
    if_commit: str | None,
    branch: str | None,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Run the mutation NAME of a query file, as one commit; without NAME, the only one in the file.

    A mutation that matches nothing makes no commit and succeeds.
    """
    given.check_usage()
    if not given.has_source:
        raise click.UsageError("give the mutation with either --query FILE or -e TEXT")
    target = addressed.resolve()
    source, params = given.source(), given.params()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.writes import render_mutation
    from omnigraph.wire.documents import mutation_document

    with unless_noted("nothing was changed"), open_for_writing(target) as graph:
        result = graph.mutate(
            source, given.name, params, branch=branch, actor=actor, if_commit=if_commit, message=message
        )
    if as_json:
        print_document(mutation_document(result, actor))
    else:
        say(render_mutation(result))
