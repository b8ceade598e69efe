"""`omnigraph diff`: what differs between two branches or commits."""

from collections.abc import Sequence

import click

from omnigraph.cli.change_options import Chosen, change_options
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, address_options

_REFUSED = {"--branch": "does not apply to diff: name the branches themselves"}


@click.command(cls=ReadCommand, refuses=_REFUSED)
@click.argument("words", nargs=-1, metavar="[URI] A [B]")
@change_options
@click.option("--stat", is_flag=True, help="Only print the number of changes per table.")
@address_options
@json_option
def diff(*, words: Sequence[str], chosen: Chosen, stat: bool, addressed: Addressed, as_json: bool) -> None:
    """Print the changes that lead from B to A, each a branch or a commit; B is main if not given.

    The graph is the first argument, unless --uri or --store names it.
    """
    positional, rest = (None, words) if addressed.by_flag else (words[:1], words[1:])
    if not 1 <= len(rest) <= 2:
        raise click.UsageError("diff takes a branch or commit, and optionally a second one to compare with")
    target = addressed.resolve(positional[0] if positional else None)
    from omnigraph.cli.access import open_for_reading
    from omnigraph.cli.render.changes import change_lines, render_counts
    from omnigraph.wire.documents import diff_document

    with open_for_reading(target) as graph:
        found = graph.diff(*rest, **chosen)
        if as_json:
            print_document(diff_document(found, with_changes=not stat))
        elif stat:
            click.echo(render_counts(found.stat()))
        else:
            print_lines(change_lines(found))
