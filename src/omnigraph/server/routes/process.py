"""Routes of the server itself: whether it is there, and whether it can be used."""

from dataclasses import dataclass, field

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from omnigraph import INTERNAL_SCHEMA_VERSION, __version__
from omnigraph.core.values import Json
from omnigraph.policy.request import Action
from omnigraph.server.access import Need
from omnigraph.server.answers import json_answer
from omnigraph.server.bodies import JSON_TYPE
from omnigraph.server.router import Endpoint
from omnigraph.server.serving import Serving
from omnigraph.wire.responses import GraphListOutput, HealthOutput, ReadyOutput


@dataclass(frozen=True, slots=True)
class ProcessRoute:
    """One path of the server itself; a public one needs no token."""

    method: str
    path: str
    id: str
    summary: str
    model: type[BaseModel] | None  # of a JSON answer
    answer: Endpoint
    is_public: bool = True
    errors: tuple[int, ...] = ()
    error_models: dict[int, type[BaseModel]] = field(default_factory=dict)
    media_type: str = JSON_TYPE


def routes(serving: Serving) -> list[ProcessRoute]:
    """Return the routes of a server."""

    async def health(_request: Request) -> Response:
        return json_answer(_health())

    async def ready(_request: Request) -> Response:
        count = len(serving.graphs)
        missing = len(serving.quarantined)
        document = {**_health(), "graphs_ready": count, "graphs_quarantined": missing}
        return json_answer(document, status=200 if count else 503)

    async def list_graphs(request: Request) -> Response:
        Need(Action.GRAPH_LIST).ask(serving.gate, request.state.actor)
        listed = [{"graph_id": found.graph_id, "uri": found.uri} for found in serving.graphs.values()]
        return json_answer({"graphs": listed})

    async def metrics(request: Request) -> Response:
        for served in serving.graphs.values():  # whose routes and counts it tells
            Need(Action.READ).ask(served.gate, request.state.actor)
        return await serving.threads.read(serving.metrics.answer)

    return [
        ProcessRoute("GET", "/healthz", "health", "Say that the server runs.", HealthOutput, health),
        ProcessRoute("GET", "/version", "version", "Say which version runs.", HealthOutput, health),
        ProcessRoute(
            "GET",
            "/readyz",
            "ready",
            "Say whether graphs are served.",
            ReadyOutput,
            ready,
            errors=(503,),
            error_models={503: ReadyOutput},
        ),
        ProcessRoute(
            "GET",
            "/metrics",
            "metrics",
            "Tell the numbers of the server.",
            None,
            metrics,
            is_public=False,
            errors=(403,),
            media_type="text/plain",
        ),
        ProcessRoute(
            "GET",
            "/graphs",
            "listGraphs",
            "List the graphs of the server.",
            GraphListOutput,
            list_graphs,
            is_public=False,
            errors=(403,),
        ),
    ]


def _health() -> Json:
    return {"status": "ok", "version": __version__, "internal_schema_version": INTERNAL_SCHEMA_VERSION}
