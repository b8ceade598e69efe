"""`connect`: from an address, a profile or a project to a graph, wherever it is."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.client.scope import GraphAddress, Words, address_of, configured, on_server
from omnigraph.config.server_url import SERVED
from omnigraph.core.errors import BadRequest
from omnigraph.graph.arguments import given_place, given_text
from omnigraph.storage.control.uri import GraphRoot

if TYPE_CHECKING:
    from omnigraph.client.asynchronous.embedded import AsyncGraph
    from omnigraph.client.asynchronous.remote import AsyncRemoteGraph
    from omnigraph.client.http import Http
    from omnigraph.client.remote.graph import RemoteGraph
    from omnigraph.config.configuration import Configuration
    from omnigraph.graph.graph import Graph

_WORDS = Words("graph=", "connect(target), connect(profile=...) or a project file")


def connect(
    target: str | Path | None = None,
    *,
    graph: str | None = None,
    token: str | None = None,
    profile: str | None = None,
    config: str | Path | None = None,
    timeout: float | None = None,
    retries: int | None = None,
) -> "Graph | RemoteGraph":
    """Return a graph, wherever it is: a `Graph` of a store, a `RemoteGraph` behind a server.

    `target` is the place of a store, or the address of a server or of a graph on one; with `graph` also the
    name of a server of the operator file. Without a target the same files decide as for commands: the
    profile, the project's graph, the operator's defaults. `config` is the project file or its folder.

    `graph` picks a graph of a server. `token` is the one for the server, else the configured one. `timeout`
    is how many seconds to wait between two bytes of an answer (600), `retries` how often to send again what
    cannot have been carried out (3). A write whose answer was lost is never sent again.

    Raises:
        BadRequest: nothing names a graph, or something else is wrong with what does.
        GraphNotFound: there is no graph in the store.
    """
    named = None if target is None else given_place("target", target)
    for name, text in (("graph", graph), ("token", token), ("profile", profile)):
        given_text(name, text)
    address = find_graph(named, graph=graph, profile=profile, config=config, has_token=token is not None)
    if not address.is_served:
        for name, value in (("graph", graph), ("token", token), ("timeout", timeout), ("retries", retries)):
            if value is not None:
                raise BadRequest(f"{name} is for a server, and {address.uri} is the storage of a graph")
        from omnigraph.graph.opening import open as open_graph

        found = address.guarded()
        return open_graph(found.uri, policy=found.policy, actor=found.reader)
    from omnigraph.client.remote.graph import RemoteGraph

    return RemoteGraph(open_http(address, token=token, timeout=timeout, retries=retries))


async def connect_async(
    target: str | Path | None = None,
    *,
    graph: str | None = None,
    token: str | None = None,
    profile: str | None = None,
    config: str | Path | None = None,
    timeout: float | None = None,
    retries: int | None = None,
) -> "AsyncGraph | AsyncRemoteGraph":
    """Return a graph for a program with an event loop: what `connect` returns, with coroutines.

    Raises:
        BadRequest, GraphNotFound: as `connect`.
    """
    from omnigraph.client.asynchronous.embedded import AsyncGraph
    from omnigraph.graph.graph import Graph

    found = await asyncio.to_thread(
        connect,
        target,
        graph=graph,
        token=token,
        profile=profile,
        config=config,
        timeout=timeout,
        retries=retries,
    )
    if isinstance(found, Graph):
        return AsyncGraph(found)
    from omnigraph.client.asynchronous.remote import AsyncRemoteGraph

    return AsyncRemoteGraph(found)


def find_graph(
    target: str | None,
    *,
    graph: str | None,
    profile: str | None,
    config: str | Path | None,
    has_token: bool,
) -> GraphAddress:
    """Return the address that `connect` means.

    Raises:
        BadRequest: nothing names a graph, or a name is unknown.
        UnsupportedError: a profile binds a cluster.
    """
    if target is not None and profile is not None:
        raise BadRequest("give a target or a profile, not both")
    if target is None:
        return configured(profile, graph, _configuration(config), _WORDS)
    if SERVED.match(target) is not None:
        if has_token and graph is not None:  # nothing to look up
            return on_server(target, graph, _without_files(), pick=_WORDS.graph)
        if has_token:
            return address_of(target, _without_files())
        configuration = _configuration(config)
        if graph is None:
            return address_of(target, configuration)
        return on_server(target, graph, configuration, pick=_WORDS.graph)
    if graph is not None:  # a server that the operator file names
        return on_server(target, graph, _configuration(config), pick=_WORDS.graph)
    return GraphAddress(target, GraphRoot.parse(target).is_local)


def open_http(
    address: GraphAddress, *, token: str | None, timeout: float | None, retries: int | None
) -> "Http":
    """Return a connection to the address; nothing is sent yet."""
    from omnigraph.client.http import (  # late: httpx takes longer to import than all of this
        Http,
        HttpPatience,
    )
    from omnigraph.config.credentials import check_token
    from omnigraph.config.server_url import ServerUrl

    patience = HttpPatience()
    if timeout is not None:
        patience = replace(patience, timeout_s=timeout)
    if retries is not None:
        patience = replace(patience, retries=retries)
    chosen = address.token if token is None else check_token(token)
    return Http(ServerUrl.parse(address.uri), chosen, patience=patience)


def _configuration(config: str | Path | None) -> "Configuration":
    from omnigraph.config.configuration import load_configuration

    return load_configuration(None if config is None else given_place("config", config))


def _without_files() -> "Configuration":
    from omnigraph.config.configuration import Configuration

    return Configuration()
