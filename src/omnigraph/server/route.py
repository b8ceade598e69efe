"""A route as a value, and the one way that every request goes.

R1  Refusals come in one order: 401 (in `middleware.py`), 404 of an unknown graph, 400, 413 and 415 of what
    cannot be read, 403, other 400s, 429. Only then the engine is asked.
R2  A route whose body is raw is authorized by its query string, before its body is read.
R3  Work runs on a thread, and so does the reading of JSON that takes longer than a moment. A request that was
    let in holds its share until its work has ended, not only until its caller has gone.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from omnigraph.graph.graph import Graph
from omnigraph.server.access import Need, authorize
from omnigraph.server.bodies import JSON_TYPE, read_body, read_json_body, read_query, require_type
from omnigraph.server.conditions import IF_COMMIT, refuse_condition
from omnigraph.server.router import Endpoint
from omnigraph.server.serving import Served, Serving
from omnigraph.server.settings import BODY_LIMIT, LOAD_BODY_LIMIT

PARSED_AT_ONCE = 64 * 1024  # bytes of JSON that are read in less time than a thread takes to be woken


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body that is a JSON object of some model."""

    model: type[BaseModel]
    is_load: bool = False
    may_be_absent: bool = False


@dataclass(frozen=True, slots=True)
class RawBody:
    """A body that is handed on as it is."""

    media_type: str
    what: str
    is_load: bool = True


Body = JsonBody | RawBody


@dataclass(slots=True)
class RouteCall:
    """One request to one graph: who calls, and what they sent."""

    serving: Serving
    request: Request
    actor: str | None
    served: Served
    path: Mapping[str, str]
    query: Any = None
    body: Any = None

    @property
    def graph(self) -> Graph:
        """The graph that is asked."""
        return self.served.graph

    @property
    def uri(self) -> str:
        """Where that graph is stored."""
        return self.served.uri


@dataclass(frozen=True, slots=True)
class Answers:
    """What a route answers with: a model, or another type of content."""

    model: type[BaseModel] | tuple[type[BaseModel], ...] | None = None
    media_types: tuple[str, ...] = (JSON_TYPE,)
    description: str = "Success"

    @property
    def models(self) -> tuple[type[BaseModel], ...]:
        """The models of JSON answers: one, one of several, or none where the answer is a stream."""
        if self.model is None:
            return ()
        return self.model if isinstance(self.model, tuple) else (self.model,)


@dataclass(frozen=True, slots=True)
class GraphRoute:
    """One method of one path of a graph.

    `needs` says what the request wants to do; `check` refuses what is wrong without asking the engine;
    `weight` is what a write counts against its actor's share, and reads have none; `work` does it.
    """

    method: str
    path: str
    id: str
    summary: str
    work: Callable[[RouteCall], Response]
    needs: Callable[[RouteCall], Iterable[Need]]
    answers: Answers
    query: type[BaseModel] | None = None
    body: Body | None = None
    check: Callable[[RouteCall], None] | None = None
    weight: Callable[[RouteCall], int | None] | None = None
    successor: str | None = None  # of a deprecated route
    errors: tuple[int, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)  # that the caller sends, with what they are for
    conditional: str | None = None  # what stands for the last word of the path in the route with a condition

    @property
    def is_deprecated(self) -> bool:
        """Whether another route is to be used instead."""
        return self.successor is not None


def endpoint(route: GraphRoute, serving: Serving, default_graph: str = "") -> Endpoint:
    """Return what answers a route, of the graph in the path or of the default one."""

    async def answer(request: Request) -> Response:
        served = serving.find(request.path_params.get("graph_id", default_graph))
        call = RouteCall(serving, request, request.state.actor, served, request.path_params)
        if route.query is not None:
            call.query = read_query(request, route.query)
        if isinstance(route.body, RawBody):
            require_type(request, route.body.media_type, route.body.what)
            _authorize(route, call)
            _check(route, call)
            call.body = await _read(call, route.body)
        else:
            if route.body is not None:
                if not route.body.may_be_absent or "content-type" in request.headers:
                    require_type(request, JSON_TYPE, f"'{route.id}'")
                call.body = await _parsed(call, route.body)
            _authorize(route, call)
            _check(route, call)
        response = await _run(route, call)
        if route.successor is not None:
            response.headers["Deprecation"] = "true"
            response.headers["Link"] = f'<{route.successor}>; rel="successor-version"'
        return response

    return answer


async def _read(call: RouteCall, body: Body) -> bytes:
    limits = call.serving.settings.limits
    limit, setting = (
        (limits.load_body_bytes, LOAD_BODY_LIMIT) if body.is_load else (limits.body_bytes, BODY_LIMIT)
    )
    return await read_body(call.request, limit=limit, setting=setting, wait_s=limits.body_wait_s)


async def _parsed(call: RouteCall, wanted: JsonBody) -> BaseModel:
    body = await _read(call, wanted)

    def parse() -> BaseModel:
        return read_json_body(body, wanted.model, may_be_absent=wanted.may_be_absent)

    return parse() if len(body) <= PARSED_AT_ONCE else await call.serving.threads.read(parse)


def _authorize(route: GraphRoute, call: RouteCall) -> None:
    for need in route.needs(call):
        authorize(call.serving.access, call.actor, need)


def _check(route: GraphRoute, call: RouteCall) -> None:
    if IF_COMMIT not in route.headers:
        refuse_condition(call.request, route.conditional)
    if route.check is not None:
        route.check(call)


async def _run(route: GraphRoute, call: RouteCall) -> Response:
    """Do the work on a thread; a write holds its actor's share for as long as that takes (R3)."""
    threads = call.serving.threads
    weight = None if route.weight is None else route.weight(call)
    if weight is None:
        return await threads.read(lambda: route.work(call))
    done = call.serving.admission.reserve(call.actor, weight)
    return await threads.write(lambda: route.work(call), done=done, gone=_gone(call.request))


async def _gone(request: Request) -> None:
    """Return when the caller has gone; what is left of a body that no route reads comes first."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
