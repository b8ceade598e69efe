"""`omnigraph commit`: the history of a graph."""

from collections.abc import Sequence

import click

from omnigraph.cli.change_options import change_options, limit_option
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import ReadCommand, branch_option, graph_and_word, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, address_options, uri_argument
from omnigraph.cli.whole_numbers import WholeNumber
from omnigraph.client.choice import ChangeChoice
from omnigraph.client.pages import PagesTaken


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def commit() -> None:
    """List the commits of a graph, or show one and what it changed."""


@commit.command("list", cls=ReadCommand)
@uri_argument
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only commits that match: actor=, branch=, since= and until= (ISO times), merge=true|false.",
)
@click.option("--limit", type=WholeNumber(min=0), metavar="N", help="List at most N.")
@branch_option
@address_options
@json_option
def list_commits(
    *,
    filters: Sequence[str],
    limit: int | None,
    branch: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """List the commits of the graph at URI, newest first."""
    from omnigraph.cli.access import reach_for_reading
    from omnigraph.cli.filters import commit_filters
    from omnigraph.cli.render.history import render_commits

    wanted = commit_filters(filters)
    target = addressed.resolve()
    with reach_for_reading(target) as graph:
        found = graph.commits(addressed.on_branch(branch), wanted, limit)
    if as_json:
        print_document(found)
    else:
        click.echo(render_commits(found["commits"]))


@commit.command("show", cls=ReadCommand)
@click.argument("words", nargs=-1, metavar="[URI] ID")
@branch_option
@address_options
@json_option
def show(*, words: Sequence[str], branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Show the commit ID of the graph at URI."""
    positional, commit_id = graph_and_word(words, "commit show takes the id of a commit")
    target = addressed.resolve(positional)
    from omnigraph.cli.access import reach_for_reading
    from omnigraph.cli.render.history import render_commit

    with reach_for_reading(target) as graph:
        found = graph.commit(commit_id, branch)
    if as_json:
        print_document(found)
    else:
        click.echo(render_commit(found))


@commit.command("changes", cls=ReadCommand)
@click.argument("words", nargs=-1, metavar="[URI] ID")
@change_options
@limit_option
@click.option("--page-token", metavar="TOKEN", help="Print only the page with this token.")
@address_options
@json_option
def changes(
    *,
    words: Sequence[str],
    chosen: ChangeChoice,
    limit: int | None,
    page_token: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Print what the commit ID of the graph at URI changed, compared with its first parent.

    Pages are printed as they arrive; with --json, each is one document.
    """
    positional, commit_id = graph_and_word(words, "commit changes takes the id of a commit")
    target = addressed.resolve(positional)
    from omnigraph.cli.access import reach_for_reading
    from omnigraph.cli.render.changes import change_lines
    from omnigraph.core.limits import PAGE_CHANGES

    size, token, taken = PAGE_CHANGES if limit is None else limit, page_token, PagesTaken(page_token)
    with reach_for_reading(target) as graph:
        while True:
            page = graph.commit_changes(commit_id, chosen, limit=size, page_token=token)
            if as_json:
                print_document(page)
            else:
                print_lines(change_lines(page["changes"]))
            token = taken.follow(page.get("next_page_token"))
            if token is None or page_token is not None:
                break
