"""`omnigraph init`: an empty graph."""

import click

from omnigraph.cli.options import GraphCommand
from omnigraph.cli.printing import say
from omnigraph.cli.sources import read_source
from omnigraph.cli.target import Addressed, storage_options, uri_argument

_REFUSED = {
    "--as": "applies to writes of data: the first commit of a graph has no author",
    "--json": "does not apply to init, which prints one line",
}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@uri_argument
@click.option("--schema", "schema_path", required=True, metavar="FILE", help="The .pg schema of the graph.")
@click.option("--force", is_flag=True, help="Replace schema files that a failed init left behind.")
@storage_options
def init(*, schema_path: str, force: bool, addressed: Addressed) -> None:
    """Create an empty graph at URI, a path or an s3://, az:// or gs:// prefix.

    An existing graph is never touched, whatever the flags.
    """
    from omnigraph.operations.init import init_graph
    from omnigraph.operations.open import make_parts

    target = addressed.resolve()
    init_graph(make_parts(target.uri), read_source(schema_path), force=force)
    say(f"initialized {target.uri}")
