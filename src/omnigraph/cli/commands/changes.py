"""`omnigraph changes`: the commits of a branch in order, for programs that follow a graph."""

import click

from omnigraph.cli.change_options import change_options, limit_option
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import ReadCommand, branch_option, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, address_options, guarded_storage_options, uri_argument
from omnigraph.client.choice import ChangeChoice
from omnigraph.client.pages import PagesTaken


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def changes() -> None:
    """Follow the changes of a graph."""


@changes.command(cls=ReadCommand)
@uri_argument
@click.option("--cursor", metavar="CURSOR", help="Continue where an earlier poll ended.")
@click.option("--start", metavar="WHERE", help="Start at now, beginning or after:<commit id>.")
@click.option("--page-token", metavar="TOKEN", help="Print only the page with this token.")
@limit_option
@branch_option
@change_options
@address_options
@json_option
def poll(
    *,
    cursor: str | None,
    start: str | None,
    page_token: str | None,
    limit: int | None,
    branch: str | None,
    chosen: ChangeChoice,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Print what was committed to the graph at URI since a cursor, then the next cursor.

    Pages are printed as they arrive; with --json, each is one document. Only the last one has the cursor.
    """
    target = addressed.resolve()
    from omnigraph.cli.access import reach_for_reading
    from omnigraph.cli.render.changes import feed_lines
    from omnigraph.client.access import FeedPlace
    from omnigraph.core.limits import PAGE_CHANGES

    size, on = PAGE_CHANGES if limit is None else limit, addressed.on_branch(branch)
    taken = PagesTaken(page_token)
    with reach_for_reading(target) as graph:
        page = graph.poll_changes(FeedPlace(cursor, start, page_token), chosen, branch=on, limit=size)
        while True:
            if as_json:
                print_document(page)
            else:
                print_lines(feed_lines(page))
            token = taken.follow(page.get("next_page_token"))
            if token is None or page_token is not None:
                break
            page = graph.poll_changes(FeedPlace(page_token=token), chosen, branch=on, limit=size)


@changes.command(cls=ReadCommand)
@uri_argument
@click.option("--out", required=True, metavar="FILE", help="The NDJSON file to write.")
@branch_option
@change_options
@guarded_storage_options
@json_option
def baseline(
    *, out: str, branch: str | None, chosen: ChangeChoice, addressed: Addressed, as_json: bool
) -> None:
    """Write every entity of the graph at URI to a file, and print the cursor to continue from."""
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading

    with open_for_reading(target) as graph:
        taken = graph.baseline(
            branch=addressed.on_branch(branch), kinds=chosen.kinds, types=chosen.types, ops=chosen.ops
        )
        taken.to_file(out)
    end = {"snapshot_commit_id": taken.snapshot_commit_id, "resume_cursor": taken.resume_cursor}
    if as_json:
        print_document(end)
    else:
        print_lines(f"{name} {value}" for name, value in end.items())
