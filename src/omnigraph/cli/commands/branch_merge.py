"""`omnigraph branch merge`: bring the changes of one branch into another."""

from collections.abc import Sequence

import click

from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    graph_and_word,
    json_option,
    message_option,
    yes_option,
)
from omnigraph.cli.printing import print_document, say, tell
from omnigraph.cli.target import Addressed, address_options, require_consent


@click.command("merge", cls=GraphCommand)
@click.argument("words", nargs=-1, metavar="[URI] SOURCE")
@click.option("--into", default="main", show_default=True, metavar="NAME", help="The branch to merge into.")
@click.option("--delete-branch", is_flag=True, help="Delete the source branch afterwards.")
@click.option("--dry-run", is_flag=True, help="Report the outcome and every conflict; write nothing.")
@message_option
@actor_option
@address_options
@yes_option
@json_option
def merge(
    *,
    words: Sequence[str],
    into: str,
    delete_branch: bool,
    dry_run: bool,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    yes: bool,
    as_json: bool,
) -> None:
    """Merge the branch SOURCE of the graph at URI into another one, as one commit.

    Where both sides changed the same entity differently, or where the combined result would break the schema,
    every conflict is listed and nothing is written. Resolve each on one side and merge again.
    """
    positional, source = graph_and_word(words, "branch merge takes the name of a branch")
    target = addressed.resolve(positional)
    author = addressed.author(target, actor)
    if delete_branch and not dry_run:
        what = "branch merge --delete-branch deletes a branch"
        require_consent(what, target, yes=yes, may_ask=not as_json)
    from omnigraph.cli.access import reach_for_reading, reach_for_writing
    from omnigraph.cli.render.maintenance import table_progress
    from omnigraph.cli.render.merge import render_merge

    addressed.announce("branch merge", target)
    waiting = "looking at both branches"
    with (
        (reach_for_reading if dry_run else reach_for_writing)(target) as graph,
        table_progress(quiet=addressed.quiet, as_json=as_json, waiting=waiting) as progress,
    ):
        merged = graph.merge(
            source,
            into,
            message=message,
            delete_branch=delete_branch,
            dry_run=dry_run,
            actor=author,
            progress=progress,
        )
    if merged.get("branch_delete_error") is not None:
        tell(f"warning: {merged['source']} was merged but not deleted: {merged['branch_delete_error']}")
    if as_json:
        print_document(merged)
    else:
        say(render_merge(merged, is_dry_run=dry_run))
