"""`omnigraph cleanup`: the end of the retention of old versions."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from omnigraph.cli.durations import Duration
from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import GraphCommand, actor_option, json_option, yes_option
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.target import Addressed, require_consent, storage_options, uri_argument
from omnigraph.cli.whole_numbers import WholeNumber
from omnigraph.client.scope import GraphAddress

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph


@click.command("cleanup", cls=GraphCommand)
@uri_argument
@click.option(
    "--keep", type=WholeNumber(min=1), metavar="N", help="Keep the newest N versions of each table."
)
@click.option(
    "--older-than",
    type=Duration(),
    metavar="DUR",
    help="Keep what was replaced within this time: a number with s, m, h, d or w; seconds without one.",
)
@click.option("--confirm", is_flag=True, help="Remove it; without this flag, only show what would go.")
@yes_option
@actor_option
@storage_options
@json_option
@click.pass_context
def cleanup(
    ctx: click.Context,
    *,
    keep: int | None,
    older_than: timedelta | None,
    confirm: bool,
    yes: bool,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Remove old versions of the graph at URI, and what nothing needs any more.

    What a branch shows stays, and every commit stays in the history; one whose versions were removed can no
    longer be read. Give --keep, --older-than or both: a version must be beyond both. 10 is a good number to
    keep.
    """
    if keep is None and older_than is None:
        raise click.UsageError("cleanup needs to know what to keep: give --keep, --older-than, or both", ctx)
    target = addressed.resolve()
    if confirm:
        require_consent("cleanup removes old versions", target, yes=yes, may_ask=not as_json)
    from omnigraph.cli.render.cleanup import render_cleanup
    from omnigraph.cli.render.maintenance import table_progress
    from omnigraph.wire.documents import cleanup_document

    addressed.announce("cleanup", target)
    waiting = "looking for what stays"
    with (
        _opened(target, for_writing=confirm) as graph,
        table_progress(quiet=addressed.quiet, as_json=as_json, waiting=waiting) as progress,
    ):
        author = addressed.author(target, actor)
        result = graph.cleanup(keep, older_than, not confirm, actor=author, progress=progress)
    for warning in result.warnings:
        tell(f"warning: {warning}")
    if as_json:
        print_document(cleanup_document(result, uri=target.uri))
    else:
        click.echo(render_cleanup(result))
    if result.failed:
        ctx.exit(EXIT_FAILURE)


def _opened(target: GraphAddress, *, for_writing: bool) -> "Graph":
    """Open the graph: a preview changes nothing, so it leaves also what a dead writer left."""
    from omnigraph.cli.access import open_for_reading, open_for_writing

    return open_for_writing(target) if for_writing else open_for_reading(target)
