"""`omnigraph repair`: going back to an older version of a graph whose newer ones are damaged."""

import sys

import click

from omnigraph.cli.options import GraphCommand, actor_option, branch_option, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed, address_options, uri_argument
from omnigraph.core.errors import BadRequest


@click.command("repair", cls=GraphCommand)
@uri_argument
@click.option(
    "--to",
    "to_version",
    type=click.IntRange(min=1),
    required=True,
    metavar="VERSION",
    help="The version to go back to; the error of a damaged graph names the newest whole one.",
)
@branch_option
@click.option("--yes", is_flag=True, help="Give up what is listed without asking first.")
@actor_option
@address_options
@json_option
def repair(
    *,
    to_version: int,
    branch: str | None,
    yes: bool,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Go back to an older VERSION of the graph at URI, after listing what that gives up.

    First try to put the damaged file back: then nothing is lost. Nothing is deleted here either: what is
    given up stays where it is, and a repair to its version brings it back.
    """
    target = addressed.resolve()
    from omnigraph.cli.documents import loss_document
    from omnigraph.cli.render.damage import render_loss
    from omnigraph.operations import repair as verbs
    from omnigraph.operations.open import make_parts

    addressed.announce("repair", target)
    parts = make_parts(target.uri)
    loss = verbs.foresee(parts, to_version, branch)
    if not as_json:
        click.echo(render_loss(loss))
    if not yes:
        _ask(may_ask=not as_json)
    result = verbs.repair(parts, loss, actor=actor)
    if as_json:
        print_document({"uri": target.uri, "operation_id": result.operation_id, "lost": loss_document(loss)})
    else:
        click.echo(f"went back to version {to_version}; 'repair --to {loss.newest_version}' undoes that")


def _ask(*, may_ask: bool) -> None:
    if not (may_ask and sys.stdin.isatty()):
        raise BadRequest("repair gives up what is listed; confirm with --yes, since it cannot ask here")
    click.echo("Give this up? Type yes to go on: ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise BadRequest("not confirmed; nothing was done")
