"""`omnigraph shell`: a prompt for queries and mutations."""

import sys

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.options import GraphCommand, actor_option, branch_option
from omnigraph.cli.target import Addressed, guarded_storage_options, uri_argument

_NO_DOCUMENT = r"is not for a session: \format jsonl and \format json print rows as JSON"


@click.command(cls=GraphCommand, refuses={"--json": _NO_DOCUMENT})
@uri_argument
@click.option("--read-only", is_flag=True, help="Open the graph for reading: mutations are refused.")
@branch_option
@actor_option
@guarded_storage_options
@click.pass_context
def shell(
    ctx: click.Context, *, read_only: bool, branch: str | None, actor: str | None, addressed: Addressed
) -> None:
    r"""Ask for queries and mutations on the graph at URI, and run them.

    At a terminal there are colours, completion of names, a history and paging; \help lists the commands.
    What comes through a pipe is run statement by statement, and the exit code is 1 if one of them failed.
    """
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading, open_for_writing
    from omnigraph.cli.shell.session import Session

    with open_for_reading(target) if read_only else open_for_writing(target) as opened:
        graph = opened if actor is None else opened.acting_as(actor)
        session = Session(graph, actor, graph.snapshot(branch).branch or "main")
        if sys.stdin.isatty() and sys.stdout.isatty():
            from omnigraph.cli.shell.prompt import run_prompt

            run_prompt(session)
            return
        from omnigraph.cli.shell.loop import print_lines, run_piped

        # A byte that is no text becomes an error of its statement, not the end of the session.
        lines = (line.decode(errors="surrogateescape") for line in sys.stdin.buffer)
        if not run_piped(session, lines, print_lines):
            ctx.exit(EXIT_FAILURE)
