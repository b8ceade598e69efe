"""What the commands that load share: on storage, through a server, and how they tell what was done."""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import click

from omnigraph.cli.interrupt import unless_noted
from omnigraph.cli.lean_imports import let_pandas_in
from omnigraph.cli.load_progress import load_progress
from omnigraph.cli.printing import print_document, tell
from omnigraph.cli.sources import STDIN
from omnigraph.cli.target import Addressed
from omnigraph.client.answer import Document
from omnigraph.client.scope import GraphAddress
from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import open_regular

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.operations.load.load import LoadInput, LoadMode
    from omnigraph.operations.load.model import LoadKeywords, SentKeywords

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
_NDJSON = (".jsonl", ".ndjson", ".json")
_INSTEAD = {
    "--embed": "a server makes no vectors; give them with the records, or run omnigraph embed on the storage"
}


@dataclass(frozen=True, slots=True)
class LoadPlace:
    """The graph of a load, and how to speak of it."""

    addressed: Addressed
    target: GraphAddress
    as_json: bool


def load_here(
    command: str,
    inputs: "Callable[[Catalog], Iterable[LoadInput]]",
    mode: "LoadMode",
    where: LoadPlace,
    **keywords: "Unpack[LoadKeywords]",
) -> None:
    """Load what `inputs` finds for the types of the graph, show progress, and print what was done."""
    let_pandas_in()
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.render.writes import render_rejected
    from omnigraph.wire.documents import load_document

    quiet = where.addressed.quiet
    with unless_noted("nothing was loaded"), ExitStack() as held:
        where.addressed.announce(command, where.target)
        graph = held.enter_context(open_for_writing(where.target))
        keywords["progress"] = held.enter_context(load_progress(quiet=quiet, as_json=where.as_json))
        result = graph.load(inputs, mode, **keywords)
    if result.rejected_rows:
        tell(render_rejected(result))
    _print(load_document(result, where.target.uri, keywords.get("actor")), as_json=where.as_json)


def load_there(
    command: str, read: Callable[[], bytes], mode: str, where: LoadPlace, **keywords: "Unpack[SentKeywords]"
) -> None:
    """Send what `read` returns to the server of the graph, and print what was done as on storage."""
    from omnigraph.cli.access import reach_server

    where.addressed.announce(command, where.target)
    data = read()
    with unless_noted("nothing was loaded"), reach_server(where.target) as graph:
        loaded = graph.load(data, mode=mode, **keywords)
    _print({"uri": where.target.uri, **loaded}, as_json=where.as_json)


def _print(loaded: Document, *, as_json: bool) -> None:
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


def refuse_for_server(**flags: object) -> None:
    """Refuse flags that only a load into storage can use.

    Raises:
        click.UsageError: one is given.
    """
    for flag, value in flags.items():
        if value is not None and value is not False:
            instead = _INSTEAD.get(flag, "a server takes one input of NDJSON")
            raise click.UsageError(f"{flag} is for loads into storage: {instead}")


def one_ndjson(names: Sequence[str]) -> bytes:
    """Return the one input to send.

    Raises:
        BadRequest: there are several, it is no file of NDJSON, or it cannot be read.
    """
    if len(names) != 1:
        raise BadRequest("a server takes one input of NDJSON: give --data once, or load into storage")
    name = names[0]
    if name == STDIN:
        return sys.stdin.buffer.read()
    if not name.endswith(_NDJSON):
        raise BadRequest(f"a server takes NDJSON, and {name} does not end in {', '.join(_NDJSON)}")
    try:
        with open_regular(name) as file:
            return file.read()
    except OSError as error:
        raise BadRequest(f"cannot read {name}: {error.strerror}") from error
