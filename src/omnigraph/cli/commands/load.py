"""`omnigraph load`: data from files, as one commit."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    address_options,
    branch_option,
    json_option,
    message_option,
    uri_argument,
    yes_option,
)
from omnigraph.cli.printing import print_document
from omnigraph.cli.progress import working
from omnigraph.cli.sources import STDIN, refuse_second_stdin
from omnigraph.cli.target import announce, require_consent, resolve
from omnigraph.core.errors import UnsupportedError

if TYPE_CHECKING:
    from omnigraph.operations.load import LoadMode

MODES = ("append", "merge", "overwrite")
_REFUSED = {
    "--from": "is not in this version: there is only the branch main",
    "--master": "is not in this version: there is no bulk loading through Spark",
    "--embed": "is not in this version: vectors are loaded as they are given",
}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@uri_argument
@click.option(
    "--data",
    "names",
    required=True,
    multiple=True,
    metavar="INPUT",
    help="A file, folder or pattern of NDJSON, Type=PATH for Parquet, - for standard input; may be repeated.",
)
@click.option(
    "--mode",
    required=True,
    type=click.Choice(MODES),
    help="append: new ids only; merge: insert or replace by id; overwrite: replace the types of the input.",
)
@branch_option
@click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    show_default=True,
    help="Where the work is done; auto is local in this version.",
)
@click.option("--no-index", is_flag=True, help="Do not build missing indexes afterwards.")
@message_option
@actor_option
@address_options
@yes_option
@json_option
def load(
    *,
    uri: str | None,
    names: Sequence[str],
    mode: str,
    branch: str | None,
    engine: str,
    no_index: bool,
    message: str | None,
    actor: str | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Load data into the graph at URI: all of it as one commit, or nothing.

    Missing indexes are built afterwards, as a second commit. If that fails, the load has succeeded all the
    same: a warning lists the indexes that are pending.
    """
    refuse_second_stdin(*names)
    target = resolve(uri, uris, stores)
    if engine == "spark":
        raise UnsupportedError("bulk loading through Spark is not in this version: use --engine local")
    if mode == "overwrite":
        may_ask = not as_json and STDIN not in names
        require_consent("load --mode overwrite replaces data", target, yes=yes, may_ask=may_ask)
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.documents import load_document
    from omnigraph.cli.render.writes import render_load, render_pending
    from omnigraph.operations.load_inputs import read_inputs

    announce("load", target, quiet=quiet)
    with open_for_writing(target) as graph, working("loading", quiet=quiet):
        result = graph.load(
            read_inputs(names, graph.catalog, sys.stdin.buffer),
            cast("LoadMode", mode),
            branch=branch,
            actor=actor,
            message=message,
            index=not no_index,
        )
    if result.pending_indexes:
        click.echo(render_pending(result.pending_indexes), err=True)
    if as_json:
        print_document(load_document(result, target.uri))
    else:
        click.echo(render_load(result))
