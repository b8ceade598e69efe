"""`omnigraph verify`: everything about a graph that can be checked without changing it."""

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import ReadCommand, json_option
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import Addressed, storage_options, uri_argument


@click.command(cls=ReadCommand)
@uri_argument
@click.option("--branch", metavar="NAME", help="Only what this branch needs; all branches if not given.")
@click.option(
    "--deep", is_flag=True, help="Check all rows and indexes too, and list files that nothing needs."
)
@storage_options
@json_option
@click.pass_context
def verify(
    ctx: click.Context, *, branch: str | None, deep: bool, addressed: Addressed, as_json: bool
) -> None:
    """Check the graph at URI: its files, history, schema and tables, and with --deep all rows and indexes.

    The files of the whole history are compared with the lengths and checksums that commits recorded, whether
    or not the graph still opens. Nothing is written. For everything that is wrong it says what that means and
    what mends it, and the exit code is 1.
    """
    target = addressed.resolve()
    from omnigraph.cli.render.maintenance import table_progress
    from omnigraph.cli.render.verify import render_verify
    from omnigraph.operations.verify.verify import verify_place
    from omnigraph.wire.documents import verify_document

    addressed.announce("verify", target)
    waiting = "looking for files"
    with table_progress(quiet=addressed.quiet, as_json=as_json, waiting=waiting) as progress:
        report = verify_place(target.uri, branch=branch, deep=deep, progress=progress)
    if as_json:
        print_document(verify_document(report, uri=target.uri))
    else:
        click.echo(render_verify(report))
    if not report.is_whole:
        ctx.exit(EXIT_FAILURE)
