"""`omnigraph init`: an empty graph."""

from collections.abc import Sequence

import click

from omnigraph.cli.options import GraphCommand, address_options, uri_argument
from omnigraph.cli.printing import say
from omnigraph.cli.sources import read_source
from omnigraph.cli.target import resolve

_REFUSED = {
    "--as": "applies to writes of data: the first commit of a graph has no author",
    "--json": "does not apply to init, which prints one line",
}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@uri_argument
@click.option("--schema", "schema_path", required=True, metavar="FILE", help="The .pg schema of the graph.")
@click.option("--force", is_flag=True, help="Replace schema files that a failed init left behind.")
@address_options
def init(
    *,
    uri: str | None,
    schema_path: str,
    force: bool,
    uris: Sequence[str],
    stores: Sequence[str],
    quiet: bool,  # noqa: ARG001 - accepted everywhere; there is no line to leave out
) -> None:
    """Create an empty graph at URI, a path or an s3:// prefix.

    An existing graph is never touched, whatever the flags.
    """
    from omnigraph.operations.init import init_graph
    from omnigraph.operations.open import make_parts

    target = resolve(uri, uris, stores)
    init_graph(make_parts(target.uri), read_source(schema_path), force=force)
    say(f"initialized {target.uri}")
