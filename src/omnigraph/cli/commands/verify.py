"""`omnigraph verify`: the files of a graph compared with what commits recorded about them."""

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed, address_options, uri_argument


@click.command(cls=ReadCommand)
@uri_argument
@click.option("--branch", metavar="NAME", help="Only what this branch needs; all branches if not given.")
@address_options
@json_option
@click.pass_context
def verify(ctx: click.Context, *, branch: str | None, addressed: Addressed, as_json: bool) -> None:
    """Compare the files of the graph at URI with the lengths and checksums that commits recorded.

    The whole history is checked, whether or not the graph still opens. Nothing is written. The exit code is 1
    if a file is missing or damaged.
    """
    target = addressed.resolve()
    from omnigraph.cli.documents import verify_document
    from omnigraph.cli.render.verify import render_verify, verify_progress
    from omnigraph.operations.verify import verify_place

    addressed.announce("verify", target)
    with verify_progress(quiet=addressed.quiet) as progress:
        report = verify_place(target.uri, branch=branch, progress=progress)
    if as_json:
        print_document(verify_document(report, uri=target.uri))
    else:
        click.echo(render_verify(report))
    if not report.is_whole:
        ctx.exit(EXIT_FAILURE)
