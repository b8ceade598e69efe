"""From what was said and configured to one graph: servers, profiles, the project's graphs, defaults.

The first of these that says something decides: what a caller names, the profile, the project's own graph, the
operator's defaults. How a caller says it is theirs: `Words` has it for messages.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.config.server_url import SERVED, ServerUrl
from omnigraph.core.errors import BadRequest, OmnigraphError, UnsupportedError
from omnigraph.core.graph_id import check_graph_id
from omnigraph.storage.control.uri import GraphRoot

if TYPE_CHECKING:
    from omnigraph.config.configuration import Configuration
    from omnigraph.config.operator_file import Profile

PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"


@dataclass(frozen=True, slots=True)
class GraphAddress:
    """The address of a graph: of its storage, as given, or behind a server, with the token for it.

    A policy in a file decides about storage that is opened here; `reader` is then the actor of reads. It is
    `policy`, else `project_policy`, that of the whole project, if it is one for graphs.
    """

    uri: str
    is_local: bool
    is_served: bool = False
    token: str | None = field(default=None, repr=False)
    policy: Path | None = None
    reader: str | None = None
    project_policy: Path | None = None

    @property
    def access(self) -> str:
        """How the graph is reached, as the line on standard error says it."""
        if self.is_served:
            return "served"
        return f"direct, {'local' if self.is_local else 'remote'}"

    def guarded(self) -> "GraphAddress":
        """Return this with the policy that decides about it.

        Raises:
            BadRequest: that of the project cannot be read.
        """
        if self.project_policy is None:
            return self
        from omnigraph.graph.guard import policy_of_project

        if policy_of_project(self.project_policy) is None:
            return self.unguarded()
        return replace(self, policy=self.project_policy, project_policy=None)

    def unguarded(self) -> "GraphAddress":
        """Return this without a policy, for those whom none concerns."""
        if self.policy is None and self.project_policy is None:
            return self
        return replace(self, policy=None, reader=None, project_policy=None)

    def require_storage(self) -> None:
        """Make sure that this is the storage of a graph.

        Raises:
            UnsupportedError: it is behind a server.
        """
        if self.is_served:
            raise UnsupportedError(
                f"{self.uri} is behind a server, and this command works on the storage of a graph: "
                "name that with --store"
            )


@dataclass(frozen=True, slots=True)
class Words:
    """What a caller's messages call the ways to name a graph, and what a wrong combination raises."""

    graph: str  # what picks a graph of a server
    ways: str  # what names a graph at all
    misplaced: Callable[[str], Exception] = BadRequest


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


def on_server(
    server: str, graph: str | None, configuration: "Configuration", *, pick: str = "--graph"
) -> GraphAddress:
    """Return the address of a graph on a server; without an id, of the operator's default or the only one.

    The only graph of a server is the one at its root. So if a server of several lists one, since the others
    did not open, that one is not taken for the one that was meant.

    Raises:
        BadRequest: the server is unknown, the id is none, or the server has graphs to choose from.
    """
    url = server_address(server, configuration)
    chosen = _default_graph(url, configuration) if graph is None else graph
    if chosen is not None:
        return address_of(str(url.graph(check_graph_id(chosen))), configuration)
    target = address_of(str(url), configuration)
    ids = _graph_ids(url, target.token)
    if ids is not None and len(ids) > 1:
        listed = ", ".join(ids)
        raise BadRequest(f"{url} has several graphs: pick one with {pick}; it has {listed}")
    return target


def of_project(name: str, configuration: "Configuration") -> GraphAddress:
    """Return the address of a graph of the project file.

    Raises:
        BadRequest: there is no project file, or it has no such graph.
    """
    if configuration.project is None:
        raise BadRequest(f"no project file with a graph '{name}': name one with --config")
    entry = configuration.project.graph_entry(name)
    address = address_of(entry.uri, configuration, entry.bearer_token_env)
    shared = configuration.project.policy_file
    if address.is_served or (entry.policy_file is None and shared is None):
        return address
    if entry.policy_file is None:
        return replace(address, project_policy=shared, reader=configuration.actor)
    return replace(address, policy=entry.policy_file, reader=configuration.actor)


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


def configured(
    profile: str | None, graph: str | None, configuration: "Configuration", words: Words
) -> GraphAddress:
    """Return the graph that is configured where nothing names one; `graph` picks one of a server.

    Raises:
        BadRequest: no graph is configured, or a name is unknown.
        Exception: what `words` raises for a picked graph where there is none to pick.
    """
    name = profile or os.environ.get(PROFILE_VARIABLE)
    if name:
        return _in_profile(profile_of(name, configuration), graph, configuration, words)
    project, operator = configuration.project, configuration.operator
    if project is not None and project.graph is not None:
        _refuse_graph(graph, "the project's cli.graph", words)
        return of_project(project.graph, configuration)
    if operator is not None and operator.server is not None:
        return on_server(operator.server, graph, configuration, pick=words.graph)
    if operator is not None and operator.store is not None:
        _refuse_graph(graph, "the operator's defaults.store", words)
        return address_of(operator.store, configuration)
    raise BadRequest(f"no graph given: name it with {words.ways}")


def _in_profile(
    profile: "Profile", graph: str | None, configuration: "Configuration", words: Words
) -> GraphAddress:
    kind, value = profile.binding
    match kind:
        case "server":
            return on_server(value, graph or profile.default_graph, configuration, pick=words.graph)
        case "store":
            _refuse_graph(graph, f"profile '{profile.name}'", words)
            return address_of(value, configuration)
        case "cluster":
            raise UnsupportedError(
                f"profile '{profile.name}' binds a cluster: clusters are not in this version"
            )


def _default_graph(url: ServerUrl, configuration: "Configuration") -> str | None:
    """Return the operator's default graph if it is one of this server."""
    operator = configuration.operator
    if operator is None or operator.server is None or operator.default_graph is None:
        return None
    with suppress(BadRequest):  # the default is no server, which does not matter to who names another one
        if server_address(operator.server, configuration) == url:
            return operator.default_graph
    return None


def _refuse_graph(graph: str | None, what: str, words: Words) -> None:
    if graph is not None:
        raise words.misplaced(f"{words.graph} picks a graph of a server, and {what} is a graph already")


def _graph_ids(url: ServerUrl, token: str | None) -> list[str] | None:
    """Return the ids of a server's graphs; None if it does not list them, as a server of one graph does."""
    from omnigraph.client.http import Http
    from omnigraph.wire.responses import GraphListOutput

    with Http(url, token) as http:
        try:
            return [item["graph_id"] for item in http.get("/graphs", GraphListOutput)["graphs"]]
        except OmnigraphError:
            return None
