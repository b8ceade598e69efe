"""What the routes of one process share: open graphs, threads, limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.catalog.stored_queries import NO_STORED_QUERIES, StoredQueries
from omnigraph.core.environment import word_setting
from omnigraph.core.errors import GraphNotFound
from omnigraph.core.graph_id import check_graph_id
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.graph.stored_files import read_stored
from omnigraph.operations.open import MAINTENANCE, MaintenanceMode
from omnigraph.server.access import Access, decide_access
from omnigraph.server.admission import Admission
from omnigraph.server.events import EventStreams
from omnigraph.server.metrics import Metrics
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.streams import StreamShares
from omnigraph.server.threads import Threads


@dataclass(frozen=True, slots=True)
class Served:
    """One open graph, with its name in routes."""

    graph_id: str
    graph: Graph
    stored: StoredQueries = NO_STORED_QUERIES

    @property
    def uri(self) -> str:
        """Where the graph is stored."""
        return self.graph.uri


@dataclass(frozen=True, slots=True)
class Serving:
    """One running server."""

    settings: ServerSettings
    access: Access
    graphs: Mapping[str, Served]
    threads: Threads
    admission: Admission
    streams: StreamShares
    metrics: Metrics = field(default_factory=Metrics)
    events: EventStreams = field(default_factory=EventStreams)

    @staticmethod
    def begin(settings: ServerSettings) -> "Serving":
        """Open every graph for writing, which first settles what dead writers left behind.

        Raises:
            BadRequest: the settings do not go together.
            OmnigraphError: a graph cannot be opened.
        """
        access = decide_access(settings)
        limits = settings.limits
        for graph in settings.graphs:
            check_graph_id(graph.graph_id)
        opened: dict[str, Served] = {}
        try:
            for graph in sorted(settings.graphs, key=lambda graph: graph.graph_id):
                opened[graph.graph_id] = _opened(graph)
        except BaseException:
            for served in opened.values():
                served.graph.close()
            raise
        admission = Admission(requests_max=limits.actor_inflight, bytes_max=limits.actor_bytes)
        return Serving(settings, access, opened, Threads(), admission, StreamShares())

    def find(self, graph_id: str) -> Served:
        """Return a graph by its name in routes.

        Raises:
            BadRequest: no graph can be called so.
            GraphNotFound: none is.
        """
        check_graph_id(graph_id)
        served = self.graphs.get(graph_id)
        if served is None:
            raise GraphNotFound(f"graph '{graph_id}' not found")
        return served

    @property
    def places(self) -> dict[str, str]:
        """Where the graphs are stored, which no text of an error may show, and what it says instead."""
        return {served.uri: f"graph '{served.graph_id}'" for served in self.graphs.values()}

    def close(self) -> None:
        """Finish what has begun, then close the graphs."""
        self.threads.close()
        for served in self.graphs.values():
            served.graph.close()


def _opened(graph: ServedGraph) -> Served:
    # A server lives long enough for a thread that looks after the tables, unless its operator decides.
    mode = word_setting(MAINTENANCE, MaintenanceMode.BACKGROUND)
    opened = open_graph(graph.uri, maintenance=mode.value)
    try:
        return Served(graph.graph_id, opened, _checked(graph, opened))
    except BaseException:
        opened.close()
        raise


def _checked(served: ServedGraph, graph: Graph) -> StoredQueries:
    """Return the stored queries of a graph, all of which fit its schema.

    Raises:
        BadRequest: one does not; all of those are named.
    """
    if served.queries is None:
        return NO_STORED_QUERIES
    found = read_stored(served.queries)
    found.check(graph.catalog).require_whole(f"graph '{served.graph_id}'")
    return found
