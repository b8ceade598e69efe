"""`omnigraph server`, which is also the program `omnigraph-server`: graphs over HTTP."""

import os
from pathlib import Path

import click

from omnigraph.cli.lean_imports import let_pandas_in
from omnigraph.cli.options import GraphCommand
from omnigraph.cli.server_settings import GivenServer
from omnigraph.cli.whole_numbers import WholeNumber

_REFUSED = {
    "--cluster": "is not in this version: serve a graph by its URI, or those of a project file",
    "--console": "is not in this version",
    "--cors-origin": "is not in this version: let the proxy in front of the server answer for it",
}
WORKERS_MAX = 256  # more processes than any machine has use for: a slip of the hand
_NOT_YET = {"OMNIGRAPH_CLUSTER": "serving a cluster is not in this version"}


@click.command(cls=GraphCommand, refuses=_REFUSED)
@click.argument("uri", required=False, envvar="OMNIGRAPH_TARGET_URI")
@click.option(
    "--config",
    envvar="OMNIGRAPH_CONFIG",
    metavar="FILE",
    help="A project file, omnigraph.yaml: its graphs, address and stored queries.",
)
@click.option(
    "--target",
    envvar="OMNIGRAPH_TARGET",
    metavar="NAME",
    help="The graph of the project file to serve; its server.graph, or all of them, if not given.",
)
@click.option(
    "--bind",
    envvar="OMNIGRAPH_BIND",
    metavar="HOST:PORT",
    help="Where to listen; 127.0.0.1:8080 if not given, port 0 for any free one.",
)
@click.option(
    "--unauthenticated",
    is_flag=True,
    help="Serve without tokens: whoever reaches the address may do everything but list its graphs.",
)
@click.option(
    "--require-all-graphs",
    is_flag=True,
    help="Do not start if a graph does not open; without it, the others of a project file are served.",
)
@click.option(
    "--default-graph",
    metavar="NAME",
    help="Of several graphs, the one whose routes also exist without /graphs/NAME in front of them.",
)
@click.option(
    "--queries",
    "queries_place",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Stored queries: a folder of .gq files, or one such file.",
)
@click.option(
    "--workers",
    type=WholeNumber(min=1, max=WORKERS_MAX),
    envvar="OMNIGRAPH_WORKERS",
    metavar="N",
    help="Serve with this many other processes behind the one address; one that ends is replaced.",
)
@click.version_option(package_name="omnigraph", prog_name="omnigraph-server", message="%(prog)s %(version)s")
def server(
    *,
    uri: str | None,
    config: str | None,
    target: str | None,
    bind: str | None,
    unauthenticated: bool,
    require_all_graphs: bool,
    default_graph: str | None,
    queries_place: Path | None,
    workers: int | None,
) -> None:
    """Serve the graph at URI, or those of a project file, over HTTP until SIGTERM or SIGINT.

    Tokens come from the environment: OMNIGRAPH_SERVER_BEARER_TOKENS_FILE names a JSON file of actors and
    their tokens. When the server listens it prints OMNIGRAPH_LISTEN_ADDR=HOST:PORT. Running requests are
    answered and commits in flight are finished before it ends, with exit code 0.
    """
    for variable, reason in _NOT_YET.items():
        if os.environ.get(variable):
            raise click.UsageError(f"{variable} is set: {reason}")
    let_pandas_in()
    from omnigraph.server.log import begin_log

    begin_log()
    settings = GivenServer(
        uri, config, target, bind, queries_place, unauthenticated, default_graph, require_all_graphs
    ).settings()
    if workers is None:
        from omnigraph.server.serve import serve

        serve(settings)
    else:
        from omnigraph.server.workers import serve_by_workers

        serve_by_workers(settings, workers)
