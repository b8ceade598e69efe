"""`omnigraph load`: data from files, as one commit."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from omnigraph.cli.interrupt import unless_noted
from omnigraph.cli.lean_imports import let_pandas_in
from omnigraph.cli.load_progress import load_progress
from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    branch_option,
    json_option,
    message_option,
    yes_option,
)
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.sources import STDIN, refuse_second_stdin
from omnigraph.cli.target import Addressed, address_options, require_consent, uri_argument

if TYPE_CHECKING:
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.load.load import LoadMode
    from omnigraph.operations.load.model import OnError

MODES = ("append", "merge", "overwrite")
_REFUSED = {
    "--embed": "is not in this version: load first, then run omnigraph embed",
}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@uri_argument
@click.option(
    "--data",
    "names",
    multiple=True,
    metavar="INPUT",
    help="A file, folder or pattern, Type=PATH for rows of one type, - for standard input; may be repeated.",
)
@click.option(
    "--mode",
    required=True,
    type=click.Choice(MODES),
    help="append: new ids only; merge: insert or replace by id; overwrite: replace the types of the input.",
)
@branch_option
@click.option("--from", "from_", metavar="NAME", help="Create a missing branch from this one first.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    show_default=True,
    help="Where the work is done: in this process, or on Spark; auto chooses by the size of the files.",
)
@click.option(
    "--master", metavar="URL", help="Where Spark runs, such as local[4], spark://host:7077 or sc://host."
)
@click.option(
    "--mapping",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A YAML file that says which files and columns become which types and properties.",
)
@click.option("--dry-run", is_flag=True, help="Validate and report; write nothing.")
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="fail: nothing is loaded; skip: rows with violations are left out and counted.",
)
@click.option(
    "--rejects",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write every violation to this file, as NDJSON.",
)
@click.option(
    "--strict-columns",
    is_flag=True,
    help="Refuse an upsert that would clear properties of existing rows because the input lacks them.",
)
@click.option("--no-index", is_flag=True, help="Do not build missing indexes afterwards.")
@message_option
@actor_option
@address_options
@yes_option
@json_option
def load(
    *,
    names: Sequence[str],
    mode: str,
    branch: str | None,
    from_: str | None,
    engine: str,
    master: str | None,
    mapping: Path | None,
    dry_run: bool,
    on_error: str,
    rejects: Path | None,
    strict_columns: bool,
    no_index: bool,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    yes: bool,
    as_json: bool,
) -> None:
    """Load data into the graph at URI: all of it as one commit, or nothing.

    Missing indexes are built afterwards, as a second commit. If that fails, the load still succeeds, and a
    warning lists the pending indexes.
    """
    refuse_second_stdin(*names)
    target = addressed.resolve()
    if not names and mapping is None:
        raise click.UsageError("nothing to load: name files with --data, or a mapping with --mapping")
    if mode == "overwrite":
        may_ask = not as_json and STDIN not in names
        require_consent("load --mode overwrite replaces data", target, yes=yes, may_ask=may_ask)
    let_pandas_in()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.writes import render_cleared, render_load, render_pending, render_rejected
    from omnigraph.operations.load.inputs import read_inputs
    from omnigraph.wire.documents import load_document

    with unless_noted("nothing was loaded"), ExitStack() as held:
        addressed.announce("load", target)
        graph = held.enter_context(open_for_writing(target))
        progress = held.enter_context(load_progress(quiet=addressed.quiet, as_json=as_json))
        result = graph.load(
            read_inputs(
                names, graph.catalog_on(branch, from_), sys.stdin.buffer, mapping=mapping, rejects=rejects
            ),
            cast("LoadMode", mode),
            branch=branch,
            from_=from_,
            actor=actor,
            message=message,
            index=not no_index,
            engine=cast("Engine", engine),
            master=master,
            dry_run=dry_run,
            on_error=cast("OnError", on_error),
            rejects=rejects,
            progress=progress,
            strict_columns=strict_columns,
        )
    if result.rejected_rows:
        tell(render_rejected(result))
    if result.cleared:
        tell(render_cleared(result))
    if result.pending_indexes:
        tell(render_pending(result.pending_indexes))
    if as_json:
        print_document(load_document(result, target.uri))
    else:
        click.echo(render_load(result))
