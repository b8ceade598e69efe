"""`omnigraph verify`: the files of a graph compared with what commits recorded about them."""

from collections.abc import Sequence

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import (
    READS_HAVE_NO_ACTOR,
    GraphCommand,
    address_options,
    json_option,
    uri_argument,
)
from omnigraph.cli.printing import print_document
from omnigraph.cli.target import announce, resolve


@click.command(cls=GraphCommand, refuses={"--as": READS_HAVE_NO_ACTOR})
@uri_argument
@click.option("--branch", metavar="NAME", help="Only what this branch needs; all branches if not given.")
@address_options
@json_option
@click.pass_context
def verify(
    ctx: click.Context,
    *,
    uri: str | None,
    branch: str | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare the files of the graph at URI with the lengths and checksums that commits recorded.

    The whole history is checked, whether or not the graph still opens. Nothing is written. The exit code is 1
    if a file is missing or damaged.
    """
    target = resolve(uri, uris, stores)
    from omnigraph.cli.documents import verify_document
    from omnigraph.cli.render.verify import render_verify, verify_progress
    from omnigraph.operations.verify import verify_place

    announce("verify", target, quiet=quiet)
    with verify_progress(quiet=quiet) as progress:
        report = verify_place(target.uri, branch=branch, progress=progress)
    if as_json:
        print_document(verify_document(report, uri=target.uri))
    else:
        click.echo(render_verify(report))
    if not report.is_whole:
        ctx.exit(EXIT_FAILURE)
