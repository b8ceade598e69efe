"""Opening the addressed graph for a command, or reaching it through its server.

What opens storage is not imported for a graph behind a server, and the other way round.
"""

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from omnigraph.cli.invocation import Invocation, note_change
from omnigraph.cli.printing import tell
from omnigraph.cli.server_settings import is_set
from omnigraph.client.scope import GraphAddress
from omnigraph.core.errors import GraphNotFound
from omnigraph.storage.control.uri import GraphRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph.client.access import GraphAccess
    from omnigraph.client.http import Http
    from omnigraph.client.remote.graph import RemoteGraph
    from omnigraph.client.served import ServedAccess
    from omnigraph.graph.graph import Graph

NO_WARM = "OMNIGRAPH_NO_WARM"


@contextmanager
def graph_is(word: str, usage: str) -> "Iterator[None]":
    """Have a refusal for want of a graph say which word of a command names it; not all have the same order.

    Raises:
        GraphNotFound: there is none.
    """
    try:
        yield
    except GraphNotFound as error:
        raise GraphNotFound(f"{error}; the graph is the {word} word of '{usage}'") from error


def reach_for_reading(target: GraphAddress) -> "GraphAccess":
    """Return a graph to read from, wherever it is."""
    return reach_server(target) if target.is_served else _warm_or(_read_here, target)


def reach_for_writing(target: GraphAddress) -> "GraphAccess":
    """Return a graph to write to, wherever it is."""
    note_change()
    return reach_server(target) if target.is_served else _warm_or(_write_here, target)


def reach_server(target: GraphAddress) -> "ServedAccess":
    """Return a graph behind a server; nothing is sent before the first call."""
    from omnigraph.client.served import ServedAccess

    return ServedAccess(_http(target))


def _remote(target: GraphAddress) -> "RemoteGraph":
    from omnigraph.client.remote.graph import RemoteGraph

    return RemoteGraph(_http(target))


def _http(target: GraphAddress) -> "Http":
    from omnigraph.client.http import Http
    from omnigraph.config.server_url import ServerUrl

    click.get_current_context().ensure_object(Invocation).is_served = True
    return Http(ServerUrl.parse(target.uri), target.token)


def look_into(target: GraphAddress) -> "Graph | RemoteGraph":
    """Return a graph for what its own methods show: as opened here for reading, or behind a server."""
    return _remote(target) if target.is_served else open_for_reading(target)


def open_for_reading(target: GraphAddress) -> "Graph":
    """Open a graph for reading: nothing is healed, locked or written."""
    from omnigraph.graph.opening import open as open_graph

    _prepare(target)
    return open_graph(target.uri, mode="ro", actor=target.reader, policy=target.policy)


def open_for_writing(target: GraphAddress) -> "Graph":
    """Open a graph for writing, which first finishes or undoes what dead writers left behind."""
    from omnigraph.graph.opening import open as open_graph

    note_change()
    _prepare(target)
    # A command ends before a thread has done anything.
    return open_graph(target.uri, maintenance="inline", actor=target.reader, policy=target.policy)


def open_for_rebuild(target: GraphAddress) -> "Graph":
    """Open a graph for building indexes anew: files of the old ones may be gone."""
    from omnigraph.graph.opening import open_for_rebuild as open_graph

    note_change()
    _prepare(target)
    return open_graph(target.uri, target.reader, target.policy)


def open_unhealed(target: GraphAddress) -> "Graph":
    """Open a graph for a preview of maintenance, which leaves also what dead writers left behind."""
    from omnigraph.graph.graph import Graph
    from omnigraph.operations.open import open_graph as open_parts

    _prepare(target)
    return Graph(open_parts(target.uri, heals=False))


def _warm_or(here: "Callable[[GraphAddress], GraphAccess]", target: GraphAddress) -> "GraphAccess":
    """Return the graph by a warm server that has it open and may be asked, else as opened here."""
    # It has the graph open without a policy.
    if target.policy is not None or not is_warm_allowed():
        return here(target)
    from omnigraph.client.warm.reach import find_server

    link = find_server(GraphRoot.parse(target.uri).uri)
    if link is None:
        return here(target)
    from omnigraph.client.warm.access import WarmAccess

    return WarmAccess(link, target.uri, lambda: here(target), lambda text: tell(f"warning: {text}"))


def is_warm_allowed() -> bool:
    """Say whether a warm server may be asked: neither a flag nor the environment forbids it."""
    context = click.get_current_context(silent=True)
    is_allowed = context is None or context.ensure_object(Invocation).may_be_warm
    return is_allowed and not is_set(NO_WARM)


def _read_here(target: GraphAddress) -> "GraphAccess":
    return _embedded(open_for_reading(target), target)


def _write_here(target: GraphAddress) -> "GraphAccess":
    return _embedded(open_for_writing(target), target)


def _embedded(graph: "Graph", target: GraphAddress) -> "GraphAccess":
    from omnigraph.client.embedded import EmbeddedAccess

    return EmbeddedAccess(graph, target.uri)


class _Warnings(logging.Handler):
    """Prints the engine's warnings as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one warning."""
        tell(f"warning: {record.getMessage()}")


def _prepare(target: GraphAddress) -> None:
    """Replace the handlers of the engine's log, which a second call does not change."""
    target.require_storage()
    logging.getLogger("omnigraph").handlers = [_Warnings(logging.WARNING)]
