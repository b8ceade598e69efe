"""A server on a thread of this process: real sockets, without the seconds that a process takes to start."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn

from omnigraph.graph.stored_files import DeclaredQueries
from omnigraph.policy.model import Policy
from omnigraph.server.serve import config_of
from omnigraph.server.serving import Serving
from omnigraph.server.settings import DEFAULT_GRAPH, ServedGraph, ServerLimits, ServerSettings
from omnigraph.server.tokens import TokenDigests
from tests.support.http_server import WAIT_S, client_of


def settings_for(
    graph: Path,
    *,
    tokens: dict[str, str] | None = None,
    limits: ServerLimits | None = None,
    queries: DeclaredQueries | None = None,
    policy: Policy | None = None,
    server_policy: Policy | None = None,
) -> ServerSettings:
    """Return the settings of a server of one graph: open, unless it gets tokens."""
    return ServerSettings(
        (ServedGraph(DEFAULT_GRAPH, str(graph), queries, policy),),
        DEFAULT_GRAPH,
        tokens=TokenDigests.of((tokens or {}).items()),
        is_unauthenticated=tokens is None,
        limits=limits or ServerLimits(),
        policy=server_policy,
    )


@contextmanager
def serving_app(settings: ServerSettings) -> Iterator[httpx.Client]:
    """Serve, and give a client without a token."""
    serving = Serving.begin(settings)
    try:
        with listening(serving) as url, client_of(url) as client:
            yield client
    finally:
        serving.close()


@contextmanager
def listening(serving: Serving) -> Iterator[str]:
    """Answer requests on a free port until the end of the block; give what their addresses begin with."""
    server = uvicorn.Server(config_of(serving))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(WAIT_S)
            assert not thread.is_alive()
