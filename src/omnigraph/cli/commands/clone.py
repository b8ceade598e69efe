"""`omnigraph clone`: a copy of a graph at another place."""

from collections.abc import Sequence

import click

from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.target import Addressed
from omnigraph.cli.whole_numbers import WholeNumber


@click.command(cls=ReadCommand)
@click.argument("src")
@click.argument("dst")
@click.option(
    "--branch", "branches", multiple=True, metavar="NAME", help="Only main and this branch; may be repeated."
)
@click.option(
    "--at",
    metavar="COMMIT",
    help="Only main, up to this commit, which becomes its head; with --branch, that branch up to it.",
)
@click.option(
    "--depth",
    type=WholeNumber(min=1),
    metavar="N",
    help="Only the newest N commits of each branch can be read; older ones are listed.",
)
@click.option("--quiet", is_flag=True, help="Do not announce or show progress on standard error.")
@json_option
def clone(
    *,
    src: str,
    dst: str,
    branches: Sequence[str],
    at: str | None,
    depth: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Copy the graph at SRC to DST, each a path or an s3://, az:// or gs:// prefix.

    Others may write to the graph meanwhile; the copy shows one moment of it. A copy that was interrupted is
    continued by the same command. DST must be empty.
    """
    from omnigraph.cli.load_progress import load_progress
    from omnigraph.cli.render.copies import render_clone
    from omnigraph.operations.clone import clone as verb
    from omnigraph.wire.documents import clone_document

    source = Addressed(src, (), (), quiet)
    target = Addressed(dst, (), (), quiet).resolve()
    source.announce("clone", source.resolve())
    with load_progress(quiet=quiet, as_json=as_json, what="looking at the graph") as progress:
        result = verb.clone(
            source.resolve().uri,
            target.uri,
            branches=branches or None,
            at=at,
            depth=depth,
            progress=progress,
        )
    if as_json:
        print_document(clone_document(result))
    else:
        say(render_clone(result))
