"""`omnigraph load`: data from files, as one commit."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from omnigraph.cli.loading import (
    LoadPlace,
    engine_option,
    from_option,
    index_option,
    load_here,
    load_there,
    one_ndjson,
    refuse_for_server,
)
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
from omnigraph.cli.sources import STDIN, refuse_second_stdin
from omnigraph.cli.target import Addressed, address_options, require_consent, uri_argument

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.load.load import LoadInput, LoadMode
    from omnigraph.operations.load.model import OnError, SentKeywords

MODES = ("append", "merge", "overwrite")


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

    author, where = addressed.author(target, actor), LoadPlace(addressed, target, as_json=as_json)
    common: SentKeywords = {
        "branch": addressed.on_branch(branch),
        "from_": from_,
        "message": message,
        "index": not no_index,
        "dry_run": dry_run,
        "strict_columns": strict_columns,
    }
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
        load_there("load", lambda: one_ndjson(names), mode, where, **common)
        return

    def inputs(catalog: "Catalog") -> "Iterator[LoadInput]":
        from omnigraph.operations.load.inputs import read_inputs

        return read_inputs(names, catalog, sys.stdin.buffer, mapping=mapping, rejects=rejects)

    load_here(
        "load",
        inputs,
        cast("LoadMode", mode),
        where,
        actor=author,
        engine=cast("Engine", engine),
        master=master,
        on_error=cast("OnError", on_error),
        rejects=rejects,
        embed=embed,
        retry=retry,
        **common,
    )
