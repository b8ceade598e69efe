"""`omnigraph graphs`: what a server serves."""

import os

import click

from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import GraphCommand, json_option
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.settings import settings
from omnigraph.core.errors import BadRequest

_REFUSED = {
    "--graph": "does not apply: the graphs of a server are what is listed",
    "--store": "does not apply: a store is one graph; name a server with --server",
    "--uri": "does not apply: name a server with --server",
    "--target": "does not apply: name a server with --server",
    "--as": "applies to writes: a read is not recorded",
}


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def graphs() -> None:
    """List the graphs of a server."""


@graphs.command("list", cls=GraphCommand, refuses=_REFUSED)
@click.option("--server", metavar="NAME|URL", help="The server, by its name or address.")
@click.option("--profile", metavar="NAME", help="A profile that binds a server; else $OMNIGRAPH_PROFILE.")
@click.option(
    "--config", metavar="PATH", help="The project file or its folder; ./omnigraph.yaml if not given."
)
@click.option("--quiet", is_flag=True, hidden=True)
@json_option
def list_graphs(
    *, server: str | None, profile: str | None, config: str | None, quiet: bool, as_json: bool
) -> None:
    """List the graphs of a server by id, each with its address."""
    del quiet  # nothing is announced
    from omnigraph.client.http import Http
    from omnigraph.client.scope import address_of, server_address
    from omnigraph.wire.responses import GraphListOutput

    configuration = settings(config)
    url = server_address(server or _configured(profile, config), configuration)
    with Http(url, address_of(str(url), configuration).token) as http:
        found = http.get("/graphs", GraphListOutput)
    if as_json:
        print_document(found)
    else:
        say("\n".join(f"{graph['graph_id']}\t{graph['uri']}" for graph in found["graphs"]))


def _configured(profile: str | None, config: str | None) -> str:
    """Return the server of the profile, else that of the operator's defaults."""
    from omnigraph.client.scope import PROFILE_VARIABLE, profile_of

    configuration = settings(config)
    name = profile or os.environ.get(PROFILE_VARIABLE)
    if name:
        kind, target = profile_of(name, configuration).binding
        if kind != "server":
            raise BadRequest(f"profile '{name}' binds a {kind}, not a server")
        return target
    if configuration.operator is not None and configuration.operator.server is not None:
        return configuration.operator.server
    raise BadRequest("no server given: name it with --server or --profile")
