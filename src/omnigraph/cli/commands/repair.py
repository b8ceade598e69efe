"""`omnigraph repair`: tables that others committed to, and going back to an older version of a graph."""

import sys

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import GraphCommand, actor_option, branch_option, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed, storage_options, uri_argument
from omnigraph.cli.whole_numbers import WholeNumber
from omnigraph.core.errors import BadRequest


@click.command("repair", cls=GraphCommand)
@uri_argument
@click.option("--confirm", is_flag=True, help="Publish the tables of which it is known that no row changed.")
@click.option("--force", is_flag=True, help="With --confirm: publish the other tables as well.")
@click.option(
    "--to",
    "to_version",
    type=WholeNumber(min=1),
    metavar="VERSION",
    help="Go back to this version; the error of a damaged graph names the newest whole one.",
)
@branch_option
@click.option("--yes", is_flag=True, help="With --to: give up what is listed without asking first.")
@actor_option
@storage_options
@json_option
@click.pass_context
def repair(
    ctx: click.Context,
    *,
    confirm: bool,
    force: bool,
    to_version: int | None,
    branch: str | None,
    yes: bool,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Repair the graph at URI.

    Without --to it lists the tables that something other than Omnigraph has committed to, with the rows that
    this adds, changes and removes, and the rules of the schema that they break. Nothing is changed unless
    --confirm is given, which also settles what a dead writer left. The exit code is 1 if a table was refused.

    With --to it goes back to an older VERSION, after listing what that gives up. First try to put the damaged
    file back: then nothing is lost. Nothing is deleted here either: what is given up stays where it is, and a
    repair to its version brings it back.
    """
    _refuse_mixed(confirm=confirm, force=force, to_version=to_version, yes=yes, actor=actor)
    if to_version is None:
        if _repair_drift(addressed, branch=branch, confirm=confirm, force=force, as_json=as_json):
            ctx.exit(EXIT_FAILURE)
    else:
        _go_back(addressed, to_version, branch=branch, yes=yes, actor=actor, as_json=as_json)


def _refuse_mixed(
    *, confirm: bool, force: bool, to_version: int | None, yes: bool, actor: str | None
) -> None:
    """Refuse flags that do not go together."""
    if to_version is not None and (confirm or force):
        raise click.UsageError("--to goes back to an older version: it takes --yes, not --confirm or --force")
    if to_version is None and yes:
        raise click.UsageError("--yes goes with --to; what others committed is published with --confirm")
    if to_version is None and actor is not None:
        raise click.UsageError("--as goes with --to; the engine itself publishes what others committed")
    if force and not confirm:
        raise click.UsageError("--force publishes what is in doubt, and needs --confirm")


def _repair_drift(
    addressed: Addressed, *, branch: str | None, confirm: bool, force: bool, as_json: bool
) -> bool:
    """List, or publish, what others committed; return whether something was refused."""
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_writing, open_unhealed
    from omnigraph.cli.render.drift import render_drift
    from omnigraph.cli.render.maintenance import table_progress
    from omnigraph.wire.documents import drift_document

    addressed.announce("repair", target)
    opened = open_for_writing if confirm else open_unhealed
    with opened(target) as graph, table_progress(quiet=addressed.quiet, as_json=as_json) as progress:
        result = graph.repair(confirm=confirm, force=force, branch=branch, progress=progress)
    if as_json:
        print_document(drift_document(result, uri=target.uri))
    else:
        click.echo(render_drift(result))
    return result.is_refused


def _go_back(
    addressed: Addressed,
    to_version: int,
    *,
    branch: str | None,
    yes: bool,
    actor: str | None,
    as_json: bool,
) -> None:
    target = addressed.resolve()
    from omnigraph.cli.render.damage import render_loss
    from omnigraph.operations import repair as verbs
    from omnigraph.operations.open import make_parts
    from omnigraph.wire.documents import loss_document

    addressed.announce("repair", target)
    parts = make_parts(target.uri)
    loss = verbs.foresee(parts, to_version, branch)
    if not as_json:
        click.echo(render_loss(loss))
    if not yes:
        _ask(may_ask=not as_json)
    result = verbs.repair(parts, loss, actor=addressed.author(target, actor))
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
