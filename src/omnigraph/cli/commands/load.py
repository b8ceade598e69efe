"""`omnigraph load`: data from files, as one commit."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import click

from omnigraph.cli.interrupt import unless_noted
from omnigraph.cli.lean_imports import let_pandas_in
from omnigraph.cli.load_progress import load_progress
from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    branch_option,
    json_option,
    master_option,
    message_option,
    retry_option,
    yes_option,
)
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.served_load import load_served, one_ndjson, refuse_for_server
from omnigraph.cli.sources import STDIN, refuse_second_stdin
from omnigraph.cli.target import Addressed, address_options, require_consent, uri_argument
from omnigraph.client.answer import Document
from omnigraph.client.scope import GraphAddress

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.load.load import LoadInput, LoadMode
    from omnigraph.operations.load.model import LoadKeywords, OnError

MODES = ("append", "merge", "overwrite")

from_option = click.option(
    "--from", "from_", metavar="NAME", help="Create a missing branch from this one first."
)
engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    show_default=True,
    help="Where the work is done: in this process, or on Spark; auto chooses by the size of the files.",
)
index_option = click.option("--no-index", is_flag=True, help="Do not build missing indexes afterwards.")


@click.command(cls=GraphCommand)
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
@from_option
@engine_option
@master_option
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
@click.option(
    "--embed",
    is_flag=True,
    help="Make missing vectors of @embed properties from their texts, in the same commit.",
)
@index_option
@message_option
@retry_option
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
    embed: bool,
    no_index: bool,
    message: str | None,
    retry: int | None,
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

    branch, author = addressed.on_branch(branch), addressed.author(target, actor)
    if target.is_served:
        refuse_for_server(
            **{
                "--mapping": mapping,
                "--engine": None if engine == "auto" else engine,
                "--master": master,
                "--on-error": None if on_error == "fail" else on_error,
                "--rejects": rejects,
                "--embed": embed,
                "--retry": retry,
            }
        )
        addressed.announce("load", target)
        data = one_ndjson(names)
        loaded = load_served(
            target,
            data,
            mode=mode,
            branch=branch,
            from_=from_,
            index=not no_index,
            message=message,
            dry_run=dry_run,
            strict_columns=strict_columns,
        )
        print_loaded(loaded, as_json=as_json)
        return

    def inputs(catalog: "Catalog") -> "Iterator[LoadInput]":
        from omnigraph.operations.load.inputs import read_inputs

        return read_inputs(names, catalog, sys.stdin.buffer, mapping=mapping, rejects=rejects)

    load_and_tell(
        "load",
        inputs,
        cast("LoadMode", mode),
        addressed=addressed,
        target=target,
        as_json=as_json,
        branch=branch,
        from_=from_,
        actor=author,
        message=message,
        index=not no_index,
        engine=cast("Engine", engine),
        master=master,
        dry_run=dry_run,
        on_error=cast("OnError", on_error),
        rejects=rejects,
        strict_columns=strict_columns,
        embed=embed,
        retry=retry,
    )


def load_and_tell(
    command: str,
    inputs: "Callable[[Catalog], Iterable[LoadInput]]",
    mode: "LoadMode",
    *,
    addressed: Addressed,
    target: GraphAddress,
    as_json: bool,
    **keywords: "Unpack[LoadKeywords]",
) -> None:
    """Load what `inputs` finds for the types of the graph, show progress, and print what was done."""
    let_pandas_in()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.writes import render_rejected
    from omnigraph.wire.documents import load_document

    with unless_noted("nothing was loaded"), ExitStack() as held:
        addressed.announce(command, target)
        graph = held.enter_context(open_for_writing(target))
        keywords["progress"] = held.enter_context(load_progress(quiet=addressed.quiet, as_json=as_json))
        result = graph.load(inputs, mode, **keywords)
    if result.rejected_rows:
        tell(render_rejected(result))
    print_loaded(load_document(result, target.uri, keywords.get("actor")), as_json=as_json)


def print_loaded(loaded: Document, *, as_json: bool) -> None:
    """Print what a load did; what it cleared and what is left to do goes to stderr."""
    from omnigraph.cli.render.writes import render_cleared, render_load, render_pending

    if loaded.get("cleared"):
        tell(render_cleared(loaded))
    if loaded["pending_indexes"]:
        tell(render_pending(loaded["pending_indexes"]))
    if as_json:
        print_document(loaded)
    else:
        click.echo(render_load(loaded))
