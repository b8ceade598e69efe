"""The application: routes from a table, behind what every request goes through.

A new group of routes is a file below `routes` and a line in `GROUPS`; what every request is to pass is a
line in `layers`, outermost first.
"""

from collections.abc import Awaitable, Callable, Sequence

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response

from omnigraph.core.values import Json
from omnigraph.server.access import Access
from omnigraph.server.answers import error_answer, json_answer
from omnigraph.server.middleware import Authentication, Errors, RequestIds
from omnigraph.server.observed import Observed
from omnigraph.server.openapi import openapi_document
from omnigraph.server.paths import RawPaths
from omnigraph.server.refusal import Refusal
from omnigraph.server.route import GraphRoute, endpoint
from omnigraph.server.routes import (
    branches,
    changes,
    commits,
    events,
    exports,
    loads,
    process,
    queries,
    schemas,
    snapshots,
    stored,
)
from omnigraph.server.serving import Serving

GROUPS: tuple[Sequence[GraphRoute], ...] = (
    snapshots.ROUTES,
    queries.ROUTES,
    loads.ROUTES,
    exports.ROUTES,
    branches.ROUTES,
    commits.ROUTES,
    changes.ROUTES,
    schemas.ROUTES,
    stored.ROUTES,
    events.ROUTES,
)
GRAPH_PREFIX = "/graphs/{graph_id:segment}"


def layers(serving: Serving) -> list[Middleware]:
    """Return what every request goes through, outermost first."""
    return [
        Middleware(RequestIds),
        Middleware(Observed, serving=serving, metrics=serving.metrics),
        Middleware(Errors, serving=serving),
        Middleware(RawPaths),
        Middleware(Authentication, serving=serving),
    ]


def graph_routes() -> list[GraphRoute]:
    """Return every route on a graph."""
    return [route for group in GROUPS for route in group]


def build_app(serving: Serving) -> FastAPI:
    """Return the application of a server."""
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=layers(serving),
        exception_handlers={HTTPException: _unrouted},
    )
    for own in process.routes(serving):
        _add(app, own.path, own.answer, own.method, own.id)
    app.add_api_route("/openapi.json", _described(serving), methods=["GET"], response_model=None)
    default_graph = serving.settings.default_graph
    for route in graph_routes():
        if default_graph is not None:
            answer = endpoint(route, serving, default_graph)
            _add(app, route.path, answer, route.method, route.id, graph=default_graph)
        answer = endpoint(route, serving)
        _add(app, GRAPH_PREFIX + route.path, answer, route.method, f"cluster_{route.id}")
    return app


def describe(serving: Serving) -> Json:
    """Return the OpenAPI document of a server."""
    return openapi_document(
        process.routes(serving),
        graph_routes(),
        is_open=serving.access is Access.OPEN,
        has_default=serving.settings.default_graph is not None,
    )


def _described(serving: Serving) -> Callable[[Request], Awaitable[Response]]:
    made: list[Response] = []  # once, when it is first asked for: most servers never are

    async def answer(_request: Request) -> Response:
        if not made:
            made.append(json_answer(describe(serving)))
        return made[0]

    return answer


def _add(
    app: FastAPI,
    path: str,
    answer: Callable[[Request], Awaitable[Response]],
    method: str,
    operation_id: str,
    *,
    graph: str | None = None,
) -> None:
    """Add a route that tells `Observed` what it is, and which graph it is about."""
    shown = path.replace(":segment", "")

    async def told(request: Request) -> Response:
        request.state.route = shown
        request.state.graph = request.path_params.get("graph_id", graph)
        return await answer(request)

    app.add_api_route(path, told, methods=[method], operation_id=operation_id, response_model=None)


async def _unrouted(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: an unknown path, or another method than a path has."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        refusal = Refusal(405, "method_not_allowed", "method not allowed", error.headers)
    else:
        refusal = Refusal(404, "not_found", "there is no such route")
    return error_answer(refusal, request_id=request.state.request_id)
