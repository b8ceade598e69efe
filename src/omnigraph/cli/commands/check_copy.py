"""`omnigraph check-copy`: what differs between two graphs."""

from collections.abc import Sequence

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed


@click.command("check-copy", cls=ReadCommand)
@click.argument("src")
@click.argument("dst")
@click.option(
    "--branch", "branches", multiple=True, metavar="NAME", help="Only main and this branch; may be repeated."
)
@click.option(
    "--at", metavar="COMMIT", help="SRC as a copy has it that ends at this commit, of main or of --branch."
)
@click.option("--deep", is_flag=True, help="Read every file on both sides.")
@click.option("--quiet", is_flag=True, help="Do not announce or show progress on standard error.")
@json_option
@click.pass_context
def check_copy(
    ctx: click.Context,
    *,
    src: str,
    dst: str,
    branches: Sequence[str],
    at: str | None,
    deep: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare the graph at DST with the one at SRC, of which it is a copy.

    Branches, heads and commits are compared, and the files that DST needs: by length, and on a disk by the
    checksums that commits recorded. Nothing is written. The exit code is 1 if anything differs.
    """
    from omnigraph.cli.load_progress import load_progress
    from omnigraph.cli.render.copies import render_check_copy
    from omnigraph.operations.clone import check_copy as verb
    from omnigraph.wire.documents import check_copy_document

    source = Addressed(src, (), (), quiet)
    target = Addressed(dst, (), (), quiet).resolve()
    source.announce("check-copy", source.resolve())
    with load_progress(quiet=quiet, as_json=as_json, what="looking at both graphs") as progress:
        report = verb.check_copy(
            source.resolve().uri,
            target.uri,
            branches=branches or None,
            at=at,
            deep=deep,
            progress=progress,
        )
    if as_json:
        print_document(check_copy_document(report))
    else:
        click.echo(render_check_copy(report))
    if not report.is_same:
        ctx.exit(EXIT_FAILURE)
