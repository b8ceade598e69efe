"""`omnigraph commit`: the history of a graph."""

from collections.abc import Sequence

import click

from omnigraph.cli.change_options import Chosen, change_options, limit_option
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import ReadCommand, branch_option, graph_and_word, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, address_options, uri_argument
from omnigraph.cli.whole_numbers import WholeNumber


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
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.filters import all_of
    from omnigraph.cli.render.history import render_commits
    from omnigraph.wire.documents import commit_document

    condition = all_of(filters)
    target = addressed.resolve()
    with open_for_reading(target) as graph:
        commits = graph.commits(branch=branch, limit=limit, where=condition)
    if as_json:
        print_document({"commits": [commit_document(found) for found in commits]})
    else:
        click.echo(render_commits(commits))


@commit.command("show", cls=ReadCommand)
@click.argument("words", nargs=-1, metavar="[URI] ID")
@branch_option
@address_options
@json_option
def show(*, words: Sequence[str], branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Show the commit ID of the graph at URI."""
    positional, commit_id = graph_and_word(words, "commit show takes the id of a commit")
    target = addressed.resolve(positional)
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.history import render_commit
    from omnigraph.wire.documents import commit_document

    with open_for_reading(target) as graph:
        found = graph.commit(commit_id, branch=branch)
    if as_json:
        print_document(commit_document(found))
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
    chosen: Chosen,
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
    from omnigraph.changes.documents import commit_changes_document
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.changes import change_lines
    from omnigraph.core.limits import PAGE_CHANGES

    size, token = PAGE_CHANGES if limit is None else limit, page_token
    with open_for_reading(target) as graph:
        while True:
            page = graph.commit_changes_page(commit_id, limit=size, page_token=token, **chosen)
            if as_json:
                print_document(commit_changes_document(page.cause, page.changes, page.next_page_token))
            else:
                print_lines(change_lines(page.changes))
            token = page.next_page_token
            if token is None or page_token is not None:
                break
