"""`omnigraph serve`: a warm server, which keeps a graph open for the commands of this user."""

from datetime import timedelta

import click

from omnigraph.cli.durations import Duration
from omnigraph.cli.options import GraphCommand, json_option
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.target import Addressed, storage_options, uri_argument

READY = "OMNIGRAPH_WARM_SOCKET"  # what the line begins with that says where; no setting


@click.command(cls=GraphCommand)
@uri_argument
@click.option("--background", is_flag=True, help="Start it, wait until it is ready, and leave it running.")
@click.option("--stop", is_flag=True, help="Let the running one end, and wait for that.")
@click.option("--status", is_flag=True, help="Say whether one runs, and whether commands given here use it.")
@click.option(
    "--idle",
    type=Duration(),
    metavar="DURATION",
    help="End when nobody has asked for so long; 15m if not given, or $OMNIGRAPH_WARM_IDLE_S.",
)
@storage_options
@json_option
def serve(
    *,
    background: bool,
    stop: bool,
    status: bool,
    idle: timedelta | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Keep the graph at URI open for your commands: they then need not import and open anything.

    Commands on that graph find it by themselves, and print what they print without it. Only processes of the
    same user can ask it. It ends after a while without being asked, and on SIGTERM or SIGINT; commits in
    flight are finished.
    """
    from omnigraph.cli import warm

    if background + stop + status > 1:
        raise click.UsageError("--background, --stop and --status exclude each other")
    target = addressed.resolve()
    _ = addressed.settings  # the variables of a project's env_file are the server's as well
    if not (background or stop or status):
        warm.run(target, idle, ready=lambda place: click.echo(f"{READY}={place.socket}"))
        return
    if background:
        done = warm.start(target, idle)
    elif stop:
        done = warm.stop(target)
    else:
        done = warm.status(target)
    if as_json:
        print_document(done.document)
    else:
        say(done.text)
