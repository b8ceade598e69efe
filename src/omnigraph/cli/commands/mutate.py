"""`omnigraph mutate`: one mutation of a query text, as one commit."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    address_options,
    branch_option,
    json_option,
    message_option,
)
from omnigraph.cli.printing import print_document
from omnigraph.cli.sources import read_source, refuse_second_stdin
from omnigraph.cli.target import resolve
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.language.query_parser import parse_queries

_REFUSED = {
    "--snapshot": "is for reads: a mutation changes the newest state of a branch",
    "--format": "is for reads: a mutation prints text, or a document with --json",
    "--alias": "is not in this version: give the text with --query or -e",
}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@click.argument("name", required=False)
@click.option("--query", "query_path", metavar="FILE", help="The .gq file, or - for standard input.")
@click.option("-e", "--query-string", "query_text", metavar="GQ", help="The text itself, in place of a file.")
@click.option("--params", "params_text", metavar="JSON", help="The parameters, as a JSON object.")
@click.option(
    "--params-file",
    "params_path",
    metavar="FILE",
    help="A file with the parameters, or - for standard input.",
)
@click.option(
    "--if-commit", metavar="ID", help="Do it only if the branch is at this commit; exit with 4 if it is not."
)
@branch_option
@message_option
@actor_option
@address_options
@json_option
def mutate(
    *,
    name: str | None,
    query_path: str | None,
    query_text: str | None,
    params_text: str | None,
    params_path: str | None,
    if_commit: str | None,
    branch: str | None,
    message: str | None,
    actor: str | None,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,  # noqa: ARG001 - accepted everywhere; there is no line to leave out
    as_json: bool,
) -> None:
    """Run the mutation NAME of a query file, as one commit; without NAME, the only one of the file.

    A mutation that matches nothing makes no commit and succeeds.
    """
    _refuse_graph_as_name(name)
    if (query_path is None) == (query_text is None):
        raise click.UsageError("give the mutation by either --query FILE or -e TEXT")
    if params_text is not None and params_path is not None:
        raise click.UsageError("--params and --params-file exclude each other")
    refuse_second_stdin(query_path or "", params_path or "")
    target = resolve(None, uris, stores)
    source = Source(query_text) if query_text is not None else read_source(str(query_path))
    parse_queries(source)  # what is wrong with the text is said before the graph is opened
    params = _params(params_text, params_path)
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.documents import mutation_document
    from omnigraph.cli.render.writes import render_mutation

    with open_for_writing(target) as graph:
        result = graph.mutate(
            source, name, params, branch=branch, actor=actor, if_commit=if_commit, message=message
        )
    if as_json:
        print_document(mutation_document(result, actor))
    else:
        click.echo(render_mutation(result))


def _refuse_graph_as_name(name: str | None) -> None:
    """Refuse the address of a graph where the name of a query belongs."""
    if name is None:
        return
    from omnigraph.history.manifest_rows import MANIFEST_DIR

    if "://" in name or name.endswith(".omni") or Path(name, MANIFEST_DIR).is_dir():
        raise click.UsageError(f"'{name}' is a graph, not the name of a query: write --store {name}")


def _params(text: str | None, path: str | None) -> Mapping[str, object] | None:
    """Return the parameters as given.

    Raises:
        BadRequest: the text is not a JSON object.
    """
    if path is not None:
        text = read_source(path).text
    if text is None:
        return None
    flag = "--params" if path is None else f"--params-file {path}"
    try:
        params = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except ValueError as error:
        raise BadRequest(f"{flag} is not JSON: {error}") from error
    if not isinstance(params, dict):
        raise BadRequest(f'{flag} must be a JSON object, such as {{"code": "VGR-1"}}')
    return params


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _distinct(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a member is given twice")
    return found
