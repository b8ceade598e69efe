"""From what was typed and configured to one graph: servers, profiles, the project's graphs, defaults.

The first of these that says something decides: an address on the command line, the profile, the project's own
graph, the operator's defaults.
"""

import os
from typing import TYPE_CHECKING

import click

from omnigraph.cli.target import Addressed, GraphAddress
from omnigraph.config.server_url import SERVED, ServerUrl
from omnigraph.core.errors import BadRequest, OmnigraphError, UnsupportedError
from omnigraph.core.graph_id import check_graph_id
from omnigraph.storage.control.uri import GraphRoot

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration
    from omnigraph.config.operator_file import Profile

PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"


def resolve_scope(addressed: Addressed, flag: str | None, value: str | None) -> GraphAddress:
    """Return the graph that a flag names, or without one the configured graph.

    Raises:
        click.UsageError: `--graph` does not fit.
        BadRequest: no graph is given anywhere, or a name is unknown.
    """
    configuration = addressed.settings
    match flag:
        case "URI" | "--uri" | "--store":
            return address_of(str(value), configuration)
        case "--server":
            return on_server(str(value), addressed.graph, configuration)
        case "--target":
            return of_project(str(value), configuration)
        case _:
            return _configured(addressed, configuration)


def address_of(uri: str, configuration: "Configuration", bearer_token_env: str | None = None) -> GraphAddress:
    """Return the address of a graph, with the token for it if it is behind a server.

    Raises:
        BadRequest: it is not an address, or the token cannot be read.
    """
    if SERVED.match(uri) is None:
        return GraphAddress(uri, GraphRoot.parse(uri).is_local)
    url = ServerUrl.parse(uri)
    token = configuration.token_for(url, bearer_token_env)
    return GraphAddress(str(url), is_local=False, is_served=True, token=token)


def server_address(server: str, configuration: "Configuration") -> ServerUrl:
    """Return the address of a server that is given by its name, or as it is.

    Raises:
        BadRequest: no server has that name, or it is not an address.
    """
    if SERVED.match(server) is not None:
        return ServerUrl.parse(server)
    known = {} if configuration.operator is None else configuration.operator.servers
    if server not in known:
        listed = ", ".join(known) or "none"
        raise BadRequest(f"no server '{server}' under servers: in the operator file; it has {listed}")
    return known[server]


def on_server(server: str, graph: str | None, configuration: "Configuration") -> GraphAddress:
    """Return the address of a graph on a server; without an id, of the only graph of a server with one.

    Raises:
        BadRequest: the server is unknown, the id is none, or the server has graphs to choose from.
    """
    url = server_address(server, configuration)
    if graph is not None:
        return address_of(str(url.graph(check_graph_id(graph))), configuration)
    target = address_of(str(url), configuration)
    ids = _graph_ids(url, target.token)
    if ids is not None:
        listed = ", ".join(ids) or "none"
        raise BadRequest(f"{url} has several graphs: pick one with --graph; it has {listed}")
    return target


def of_project(name: str, configuration: "Configuration") -> GraphAddress:
    """Return the address of a graph of the project file.

    Raises:
        BadRequest: there is no project file, or it has no such graph.
    """
    if configuration.project is None:
        raise BadRequest(f"no project file with a graph '{name}': name one with --config")
    entry = configuration.project.graph_entry(name)
    return address_of(entry.uri, configuration, entry.bearer_token_env)


def profile_of(name: str, configuration: "Configuration") -> "Profile":
    """Return a profile of the operator file.

    Raises:
        BadRequest: there is none of that name.
    """
    profiles = {} if configuration.operator is None else configuration.operator.profiles
    if name not in profiles:
        listed = ", ".join(profiles) or "none"
        raise BadRequest(f"no profile '{name}' under profiles: in the operator file; it has {listed}")
    return profiles[name]


def _configured(addressed: Addressed, configuration: "Configuration") -> GraphAddress:
    graph = addressed.graph
    name = addressed.profile or os.environ.get(PROFILE_VARIABLE)
    if name:
        return _in_profile(profile_of(name, configuration), graph, configuration)
    project, operator = configuration.project, configuration.operator
    if project is not None and project.graph is not None:
        _refuse_graph(graph, "the project's cli.graph")
        return of_project(project.graph, configuration)
    if operator is not None and operator.server is not None:
        return on_server(operator.server, graph or operator.default_graph, configuration)
    if operator is not None and operator.store is not None:
        _refuse_graph(graph, "the operator's defaults.store")
        return address_of(operator.store, configuration)
    ways = "--store, --uri, --target or --profile"
    if not addressed.needs_storage:
        ways = "--store, --uri, --server, --target or --profile"
    raise BadRequest(f"no graph given: name it with {ways}")


def _in_profile(profile: "Profile", graph: str | None, configuration: "Configuration") -> GraphAddress:
    kind, value = profile.binding
    match kind:
        case "server":
            return on_server(value, graph or profile.default_graph, configuration)
        case "store":
            _refuse_graph(graph, f"profile '{profile.name}'")
            return address_of(value, configuration)
        case "cluster":
            raise UnsupportedError(
                f"profile '{profile.name}' binds a cluster: clusters are not in this version"
            )


def _refuse_graph(graph: str | None, what: str) -> None:
    if graph is not None:
        raise click.UsageError(f"--graph picks a graph of a server, and {what} is a graph already")


def _graph_ids(url: ServerUrl, token: str | None) -> list[str] | None:
    """Return the ids of a server's graphs; None if it does not list them, as a server of one graph does."""
    from omnigraph.client.http import Http

    with Http(url, token) as http:
        try:
            return [item["graph_id"] for item in http.get("/graphs")["graphs"]]
        except OmnigraphError:
            return None
