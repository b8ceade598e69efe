"""`Client`: a server rather than one of its graphs."""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from omnigraph.client.answer import Document
from omnigraph.client.connect import connect, find_graph, open_http
from omnigraph.wire.responses import GraphListOutput, HealthOutput

if TYPE_CHECKING:
    from omnigraph.client.asynchronous.remote import AsyncRemoteGraph
    from omnigraph.client.remote.graph import RemoteGraph


class Client:
    """A server by its address; the token is the given one, else the configured one."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float | None = None, retries: int | None = None
    ) -> None:
        """Take the address; nothing is sent yet."""
        self._options = (token, timeout, retries)
        address = find_graph(url, graph=None, profile=None, config=None, has_token=token is not None)
        self._http = open_http(address, token=token, timeout=timeout, retries=retries)

    def __enter__(self) -> "Client":
        """Return the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; idempotent. Graphs that were asked for stay open."""
        self._http.__exit__(None, None, None)

    def graphs(self) -> list[str]:
        """Return the ids of the graphs that the server lists.

        Raises:
            PolicyDenied: it lists none for you.
        """
        return [item["graph_id"] for item in self._http.get("/graphs", GraphListOutput)["graphs"]]

    def health(self) -> Document:
        """Return what the server says of itself: `status`, `version`, `internal_schema_version`."""
        return self._http.get("/healthz", HealthOutput)

    def graph(self, graph_id: str) -> "RemoteGraph":
        """Return a graph of the server, by a connection of its own; nothing is sent yet.

        Raises:
            BadRequest: no graph can be called so.
        """
        from omnigraph.client.remote.graph import RemoteGraph

        token, timeout, retries = self._options
        found = connect(str(self._http.url), graph=graph_id, token=token, timeout=timeout, retries=retries)
        assert isinstance(found, RemoteGraph), "the address is a server's"
        return found


class AsyncClient:
    """A server by its address, for programs with an event loop."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float | None = None, retries: int | None = None
    ) -> None:
        """Take the address; nothing is sent yet."""
        self._client = Client(url, token, timeout=timeout, retries=retries)

    async def __aenter__(self) -> "AsyncClient":
        """Return the client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; idempotent."""
        await asyncio.to_thread(self._client.close)

    async def graphs(self) -> list[str]:
        """Return the ids of the graphs that the server lists."""
        return await asyncio.to_thread(self._client.graphs)

    async def health(self) -> Document:
        """Return what the server says of itself."""
        return await asyncio.to_thread(self._client.health)

    async def graph(self, graph_id: str) -> "AsyncRemoteGraph":
        """Return a graph of the server, by a connection of its own."""
        from omnigraph.client.asynchronous.remote import AsyncRemoteGraph

        return AsyncRemoteGraph(await asyncio.to_thread(self._client.graph, graph_id))
