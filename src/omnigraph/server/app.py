"""The application: routes from a table, behind what every request goes through.

A new group of routes is a file below `routes` and a line in `GROUPS`; what every request is to pass is a
line in `layered`.
"""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from omnigraph.core.values import Json
from omnigraph.server.access import Access
from omnigraph.server.answers import json_answer
from omnigraph.server.middleware import Authentication, Errors, RequestIds
from omnigraph.server.observed import Observed
from omnigraph.server.openapi import openapi_document
from omnigraph.server.paths import RawPaths
from omnigraph.server.route import GraphRoute, endpoint
from omnigraph.server.router import Endpoint, Router
from omnigraph.server.routes import (
    blobs,
    branches,
    changes,
    commits,
    entities,
    events,
    exports,
    loads,
    process,
    queries,
    schemas,
    snapshots,
    stored,
    tables,
    writes,
)
from omnigraph.server.serving import Serving

GROUPS: tuple[Sequence[GraphRoute], ...] = (
    snapshots.ROUTES,
    queries.ROUTES,
    loads.ROUTES,
    exports.ROUTES,
    tables.ROUTES,
    entities.ROUTES,
    blobs.ROUTES,
    branches.ROUTES,
    commits.ROUTES,
    changes.ROUTES,
    schemas.ROUTES,
    stored.ROUTES,
    events.ROUTES,
    writes.ROUTES,
)
GRAPH_PREFIX = "/graphs/{graph_id}"


def layered(app: ASGIApp, serving: Serving) -> ASGIApp:
    """Return an application behind what every request goes through, innermost first."""
    app = Authentication(app, serving)
    app = RawPaths(app)
    app = Errors(app, serving)
    app = Observed(app, serving, serving.metrics)
    return RequestIds(app)


def graph_routes() -> list[GraphRoute]:
    """Return every route on a graph."""
    return [route for group in GROUPS for route in group]


def build_app(serving: Serving) -> ASGIApp:
    """Return the application of a server."""
    router = Router()
    for own in process.routes(serving):
        router.add(own.method, own.path, own.answer)
    router.add("GET", "/openapi.json", _described(serving))
    default_graph = serving.settings.default_graph
    for route in graph_routes():
        if default_graph is not None:
            answer = endpoint(route, serving, default_graph)
            router.add(route.method, route.path, answer, graph=default_graph)
        router.add(route.method, GRAPH_PREFIX + route.path, endpoint(route, serving))
    return layered(router, serving)


def describe(serving: Serving) -> Json:
    """Return the OpenAPI document of a server."""
    return openapi_document(
        process.routes(serving),
        graph_routes(),
        is_open=serving.access is Access.OPEN,
        has_default=serving.settings.default_graph is not None,
    )


def _described(serving: Serving) -> Endpoint:
    made: list[Response] = []  # once, when it is first asked for: most servers never are

    async def answer(_request: Request) -> Response:
        if not made:
            made.append(json_answer(describe(serving)))
        return made[0]

    return answer
