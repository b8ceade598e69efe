"""`omnigraph diff`: what differs between two branches or commits."""

from collections.abc import Sequence

import click

from omnigraph.cli.change_options import change_options
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document, print_lines
from omnigraph.cli.target import Addressed, address_options
from omnigraph.client.choice import ChangeChoice

_REFUSED = {"--branch": "does not apply to diff: name the branches themselves"}


@click.command(cls=ReadCommand, refuses=_REFUSED)
@click.argument("words", nargs=-1, metavar="[URI] A [B]")
@change_options
@click.option("--stat", is_flag=True, help="Only print the number of changes per table.")
@address_options
@json_option
def diff(
    *, words: Sequence[str], chosen: ChangeChoice, stat: bool, addressed: Addressed, as_json: bool
) -> None:
    """Print the changes that lead from B to A, each a branch or a commit; B is main if not given.

    The graph is the first argument, unless a flag names it, or there is only one argument.
    """
    # One word alone is a branch or commit of the configured graph.
    has_graph = not addressed.by_flag and len(words) > 1
    positional, rest = (words[0], words[1:]) if has_graph else (None, words)
    if not 1 <= len(rest) <= 2:
        raise click.UsageError("diff takes a branch or commit, and optionally a second one to compare with")
    target = addressed.resolve(positional)
    from omnigraph.cli.access import reach_for_reading
    from omnigraph.cli.render.changes import change_lines, render_counts

    with reach_for_reading(target) as graph:
        found = graph.diff(rest[0], rest[1] if len(rest) > 1 else "main", chosen)
        if as_json:
            stats = (summary := found.summary()).pop("stats")
            changes = {} if stat else {"changes": list(found.changes())}
            print_document({**summary, **changes, "stats": stats})
        elif stat:
            click.echo(render_counts(found.summary()["stats"]))
        else:
            print_lines(change_lines(found.changes()))
