"""What the routes of one process share: open graphs, threads, limits."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.catalog.stored_queries import NO_STORED_QUERIES, StoredQueries
from omnigraph.core.environment import word_setting
from omnigraph.core.errors import GraphNotFound, OmnigraphError
from omnigraph.core.graph_id import check_graph_id
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open_for_service
from omnigraph.graph.stored_files import read_stored
from omnigraph.operations.open import MAINTENANCE, MaintenanceMode
from omnigraph.policy.gate import OPEN_GATE, Gate
from omnigraph.server.access import Access, decide_access, graph_gate, server_gate
from omnigraph.server.admission import Admission
from omnigraph.server.events import EventStreams
from omnigraph.server.metrics import Metrics
from omnigraph.server.sent_writes import SentWrites
from omnigraph.server.settings import ServedGraph, ServerSettings
from omnigraph.server.streams import StreamShares
from omnigraph.server.threads import Threads

_log = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class Served:
    """One open graph, with its name in routes, and the gate that its engine asks as well."""

    graph_id: str
    graph: Graph
    gate: Gate = OPEN_GATE
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
    gate: Gate  # of the server itself
    graphs: Mapping[str, Served]
    threads: Threads
    admission: Admission
    streams: StreamShares
    metrics: Metrics = field(default_factory=Metrics)
    events: EventStreams = field(default_factory=EventStreams)
    writes: SentWrites = field(default_factory=SentWrites)

    @staticmethod
    def begin(settings: ServerSettings) -> "Serving":
        """Open every graph for writing, which first settles what dead writers left behind.

        Of several graphs, those that do not open are quarantined: the log says why, and they are not found.

        Raises:
            BadRequest: the settings do not go together.
            OmnigraphError: a graph cannot be opened, and all are required, or none can be.
        """
        access = decide_access(settings)
        gate, limits = server_gate(settings.policy), settings.limits
        for graph in settings.graphs:
            check_graph_id(graph.graph_id)
        opened: dict[str, Served] = {}
        failed: dict[str, OmnigraphError] = {}
        try:
            for graph in sorted(settings.graphs, key=lambda graph: graph.graph_id):
                if graph.graph_id in settings.quarantined:
                    continue
                own_gate = graph_gate(access, graph.policy, graph.graph_id)
                try:
                    opened[graph.graph_id] = _opened(graph, own_gate)
                except OmnigraphError as error:
                    if settings.requires_all_graphs:
                        raise
                    failed[graph.graph_id] = error
            if failed and not opened:
                raise next(iter(failed.values()))
        except BaseException:
            for served in opened.values():
                served.graph.close()
            raise
        for graph_id, reason in failed.items():
            _log.error("graph '%s' is quarantined, and not served: %s", graph_id, reason)
        admission = Admission(requests_max=limits.actor_inflight, bytes_max=limits.actor_bytes)
        return Serving(settings, access, gate, opened, Threads(), admission, StreamShares())

    def find(self, graph_id: str) -> Served:
        """Return a graph by its name in routes.

        Raises:
            BadRequest: no graph can be called so.
            GraphNotFound: none is.
        """
        check_graph_id(graph_id)
        served = self.graphs.get(graph_id)
        if served is None:
            raise _missing(graph_id)
        return served

    def find_for(self, actor: str | None, graph_id: str) -> Served:
        """Return a graph that a caller names, if the caller may know of it.

        Raises:
            BadRequest: no graph can be called so.
            GraphNotFound: none is, or its policy grants the caller nothing: ids would tell what is served.
        """
        served = self.find(graph_id)
        if not served.gate.is_known_to(actor):
            raise _missing(graph_id)
        return served

    @property
    def quarantined(self) -> list[str]:
        """The graphs that could not be opened."""
        return sorted({graph.graph_id for graph in self.settings.graphs} - self.graphs.keys())

    @property
    def places(self) -> dict[str, str]:
        """Where the graphs are stored, which no text of an error may show, and what it says instead."""
        return {served.uri: f"graph '{served.graph_id}'" for served in self.graphs.values()}

    def close(self) -> None:
        """Finish what has begun, then close the graphs."""
        self.threads.close()
        for served in self.graphs.values():
            served.graph.close()


def _missing(graph_id: str) -> GraphNotFound:
    return GraphNotFound(f"graph '{graph_id}' not found")


def _opened(graph: ServedGraph, gate: Gate) -> Served:
    # A server lives long enough for a thread that looks after the tables, unless its operator decides.
    mode = word_setting(MAINTENANCE, MaintenanceMode.BACKGROUND)
    stored = NO_STORED_QUERIES if graph.queries is None else read_stored(graph.queries)
    opened = open_for_service(graph.uri, gate, maintenance=mode, stored=stored, name=graph.graph_id)
    return Served(graph.graph_id, opened, gate, stored)
