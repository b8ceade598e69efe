"""`omnigraph embed`: vectors for the records of a file, or inside a graph."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from omnigraph.cli.load_progress import load_progress
from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    branch_option,
    json_option,
    message_option,
    old_spelling,
)
from omnigraph.cli.printing import print_document, say, tell
from omnigraph.cli.progress import working
from omnigraph.cli.target import Addressed, guarded_storage_options, uri_argument
from omnigraph.cli.whole_numbers import WholeNumber

if TYPE_CHECKING:
    from omnigraph.operations.embed.file import EmbedFile
    from omnigraph.operations.embed.select import Selector
    from omnigraph.operations.engine import Engine

_FILE = click.Path(dir_okay=False, path_type=Path)
_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=GraphCommand)
@uri_argument
@click.option("--seed", type=_EXISTING, metavar="YAML", help="A manifest that names the files and fields.")
@click.option("--input", "input_", type=_EXISTING, metavar="FILE", help="NDJSON to embed; with --spec.")
@click.option("--output", type=_FILE, metavar="FILE", help="Where the records go; overrides that of --seed.")
@click.option("--spec", type=_EXISTING, metavar="JSON", help="Which types and fields; with --input.")
@click.option("--reembed-all", is_flag=True, help="Also recompute existing vectors.")
@click.option(
    "--reembed_all",
    "old_reembed_all",
    is_flag=True,
    hidden=True,
    callback=old_spelling("--reembed_all", "use '--reembed-all'"),
)
@click.option("--clean", is_flag=True, help="Remove vectors from the records of a file.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only this type; in a graph also Type.property."
)
@click.option(
    "--select",
    "selects",
    multiple=True,
    metavar="[TYPE:]FIELD=VALUE",
    help="Only records with this value, recomputing their vectors; if repeated, matching one is enough.",
)
@click.option(
    "--batch", type=WholeNumber(min=1), metavar="N", help="How many texts to send to the provider at once."
)
@branch_option
@click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    help="Where a graph's vectors are computed; auto chooses by their number.",
)
@click.option("--master", metavar="URL", help="Where Spark runs, such as local[4] or spark://host:7077.")
@click.option("--no-index", is_flag=True, help="Do not build a graph's missing indexes afterwards.")
@message_option
@actor_option
@guarded_storage_options
@json_option
def embed(
    *,
    seed: Path | None,
    input_: Path | None,
    output: Path | None,
    spec: Path | None,
    reembed_all: bool,
    old_reembed_all: bool,
    clean: bool,
    types: Sequence[str],
    selects: Sequence[str],
    batch: int | None,
    branch: str | None,
    engine: str | None,
    master: str | None,
    no_index: bool,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Compute vectors from texts: in the graph at URI, as one commit, or from one NDJSON file into another.

    In a graph, every @embed property that has a text and no vector gets one. For a file, --seed or --spec
    names the fields that make up the text. The variables OMNIGRAPH_EMBED_* choose the provider.
    """
    selectors = _selectors(selects)
    anew = reembed_all or old_reembed_all
    of_files = {"--seed": seed, "--input": input_, "--output": output, "--spec": spec, "--clean": clean}
    if addressed.positional is None and not addressed.by_flag:
        of_graphs = {
            "--branch": branch,
            "--engine": engine,
            "--master": master,
            "--no-index": no_index,
            "--message": message,
            "--as": actor,
        }
        _refuse(of_graphs, "applies to a graph, and no graph is given")
        if clean and anew:
            raise click.UsageError("--clean and --reembed-all cannot be combined")
        job = replace(
            _file_job(seed, input_, output, spec),
            types=tuple(types),
            selectors=selectors,
            reembed_all=anew,
            clean=clean,
        )
        _embed_file(
            job if batch is None else replace(job, batch=batch), quiet=addressed.quiet, as_json=as_json
        )
        return
    _refuse(of_files, "applies to files, and a graph is given")
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.embed import render_embed
    from omnigraph.cli.render.writes import render_pending
    from omnigraph.operations.embed.model import BATCH_DEFAULT
    from omnigraph.wire.documents import embed_document, pending_document

    addressed.announce("embed", target)
    with (
        open_for_writing(target) as graph,
        load_progress(quiet=addressed.quiet, as_json=as_json, what="embedding") as progress,
    ):
        result = graph.embed(
            types,
            selects,
            reembed_all=anew,
            branch=addressed.on_branch(branch),
            actor=addressed.author(target, actor),
            message=message,
            index=not no_index,
            batch=batch or BATCH_DEFAULT,
            engine=cast("Engine", engine or "auto"),
            master=master,
            progress=progress,
        )
    if result.pending_indexes:
        tell(render_pending(pending_document(result.pending_indexes)))
    if as_json:
        print_document(embed_document(result, target.uri))
    else:
        click.echo(render_embed(result))


def _selectors(texts: Sequence[str]) -> "tuple[Selector, ...]":
    from omnigraph.core.errors import BadRequest
    from omnigraph.operations.embed.select import parse_selector

    try:
        return tuple(parse_selector(text) for text in texts)
    except BadRequest as error:
        raise click.UsageError(f"--select {error}") from error


def _refuse(given: Mapping[str, object], reason: str) -> None:
    """Refuse, by name, flags that belong to the other form of the command."""
    for name, value in given.items():
        if value not in {None, False}:
            raise click.UsageError(f"{name} {reason}")


def _file_job(seed: Path | None, input_: Path | None, output: Path | None, spec: Path | None) -> "EmbedFile":
    """Return the job: which file to embed, and where its records go."""
    from omnigraph.embedding.seed import read_seed, read_spec
    from omnigraph.operations.embed.file import EmbedFile

    if seed is not None:
        _refuse({"--input": input_, "--spec": spec}, "and --seed cannot be combined: the manifest names both")
        found = read_seed(seed)
        return EmbedFile(found.input, output or found.output, found.spec)
    if input_ is None and output is None and spec is None:
        raise click.UsageError("nothing to embed: name a graph, or name files with --seed or --input")
    if input_ is None or output is None or spec is None:
        raise click.UsageError("--input, --output and --spec go together")
    return EmbedFile(input_, output, read_spec(spec))


def _embed_file(job: "EmbedFile", *, quiet: bool, as_json: bool) -> None:
    from omnigraph.cli.render.embed import render_file_summary
    from omnigraph.operations.embed.file import embed_file

    with working("embedding", quiet=quiet):
        summary = embed_file(job)
    if as_json:
        print_document(asdict(summary))
    else:
        say(render_file_summary(summary))
