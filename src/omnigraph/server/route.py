"""A route as a value, and the one way that every request goes.

R1  Refusals come in one order: 401 (in `middleware.py`), 404 of a graph that is unknown or that the caller
    may not know of, 400, 413 and 415 of what cannot be read, 403, other 400s, 429. Only then the engine is
    asked.
R2  A route whose body is raw is authorized by its query string, before its body is read.
R3  Work runs on a thread, and so does the reading of JSON that takes longer than a moment. A request that was
    let in holds its share until its work has ended, not only until its caller has gone.
R4  A read has a limit of time, so that no text that a caller sends holds a core for ever.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus as Status
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from omnigraph.core.cancellation import CallCancelled
from omnigraph.core.clock import deadline
from omnigraph.core.errors import BadRequest, ConflictError, OmnigraphError
from omnigraph.core.values import Json
from omnigraph.exec.rows import Budget
from omnigraph.graph.graph import Graph
from omnigraph.policy.gate import OPEN_GATE
from omnigraph.server.access import AnyNeed
from omnigraph.server.answers import accepts, error_answer
from omnigraph.server.bodies import (
    JSON_TYPE,
    body_pieces,
    read_body,
    read_json_body,
    read_query,
    require_type,
)
from omnigraph.server.conditions import IF_COMMIT, refuse_condition
from omnigraph.server.router import Endpoint
from omnigraph.server.sent_writes import WriteName
from omnigraph.server.serving import Served, Serving
from omnigraph.server.settings import BODY_LIMIT, JSON_LOAD_BYTES_MAX, LOAD_BODY_LIMIT
from omnigraph.server.spool import SpooledBody, spooled
from omnigraph.server.telling import Telling
from omnigraph.wire.write_id import WRITE_ID, is_write_id

PARSED_AT_ONCE = 64 * 1024  # bytes of JSON that are read in less time than a thread takes to be woken


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body that is a JSON object of some model."""

    model: type[BaseModel]
    is_load: bool = False
    may_be_absent: bool = False


@dataclass(frozen=True, slots=True)
class RawBody:
    """A body of a load that is handed on as it is, in a file."""

    media_type: str
    what: str


Body = JsonBody | RawBody


def _untold(_document: Json) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class RouteCall:
    """One request to one graph: who calls, what they sent, and who is told how the work gets on."""

    serving: Serving
    request: Request
    actor: str | None
    served: Served
    path: Mapping[str, str]
    query: Any = None
    body: Any = None
    tell: Callable[[Json], None] = _untold

    @property
    def graph(self) -> Graph:
        """The graph that is asked, for this caller."""
        return self.served.graph.acting_as(self.actor)

    @property
    def uri(self) -> str:
        """Where that graph is stored."""
        return self.served.uri

    @property
    def read_ms(self) -> int | None:
        """How long a read may take."""
        return self.serving.settings.limits.read_ms or None


@dataclass(frozen=True, slots=True)
class Answers:
    """What a route answers with: a model, or another type of content."""

    model: type[BaseModel] | tuple[type[BaseModel], ...] | None = None
    media_types: tuple[str, ...] = (JSON_TYPE,)
    description: str = "Success"
    others: Mapping[int, str] = field(default_factory=dict)  # successes beside 200, with what they are

    @property
    def models(self) -> tuple[type[BaseModel], ...]:
        """The models of JSON answers: one, one of several, or none where the answer is a stream."""
        if self.model is None:
            return ()
        return self.model if isinstance(self.model, tuple) else (self.model,)


@dataclass(frozen=True, slots=True)
class GraphRoute:
    """One method of one path of a graph.

    `needs` says what the request wants to do, `admit` asks for what depends on storage; `check` refuses what
    is wrong without asking the engine; `weight` is what a write counts against its actor's share, and reads
    have none; `work` does it.
    """

    method: str
    path: str
    id: str
    summary: str
    work: Callable[[RouteCall], Response]
    needs: Callable[[RouteCall], Iterable[AnyNeed]]
    answers: Answers
    query: type[BaseModel] | None = None
    body: Body | None = None
    check: Callable[[RouteCall], None] | None = None
    admit: Callable[[RouteCall], None] | None = None
    weight: Callable[[RouteCall], int | None] | None = None
    successor: str | None = None  # of a deprecated route
    errors: tuple[int, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)  # that the caller sends, with what they are for
    may_tell: str | None = None  # the type of an answer that tells how the work gets on
    conditional: str | None = None  # what stands for the last word of the path in the route with a condition

    @property
    def is_deprecated(self) -> bool:
        """Whether another route is to be used instead."""
        return self.successor is not None


def endpoint(route: GraphRoute, serving: Serving, default_graph: str = "") -> Endpoint:
    """Return what answers a route, of the graph in the path or of the default one."""

    async def answer(request: Request) -> Response:
        named, actor = request.path_params.get("graph_id"), request.state.actor
        # That a server has a default graph is no secret, and its routes do not say its name.
        served = serving.find(default_graph) if named is None else serving.find_for(actor, named)
        call = RouteCall(serving, request, actor, served, request.path_params)
        if route.query is not None:
            call.query = read_query(request, route.query)
        if isinstance(route.body, RawBody):
            require_type(request, route.body.media_type, route.body.what)
            await _authorize(route, call)
            _check(route, call)
            call.body = await _spooled(call)
        else:
            if route.body is not None:
                if not route.body.may_be_absent or "content-type" in request.headers:
                    require_type(request, JSON_TYPE, f"'{route.id}'")
                call.body = await _parsed(call, route.body)
            await _authorize(route, call)
            _check(route, call)
        response = await _run(route, call)
        if route.successor is not None:
            response.headers["Deprecation"] = "true"
            response.headers["Link"] = f'<{route.successor}>; rel="successor-version"'
        return response

    return answer


async def _spooled(call: RouteCall) -> SpooledBody:
    limits = call.serving.settings.limits
    return await spooled(
        body_pieces(
            call.request,
            limit=limits.load_body_bytes,
            setting=LOAD_BODY_LIMIT,
            wait_s=limits.body_wait_s,
        )
    )


async def _read(call: RouteCall, body: JsonBody) -> bytes:
    limits = call.serving.settings.limits
    limit, setting = (
        (limits.load_body_bytes, LOAD_BODY_LIMIT) if body.is_load else (limits.body_bytes, BODY_LIMIT)
    )
    is_held_back = body.is_load and limit > JSON_LOAD_BYTES_MAX
    return await read_body(
        call.request,
        limit=JSON_LOAD_BYTES_MAX if is_held_back else limit,
        setting=None if is_held_back else setting,
        wait_s=limits.body_wait_s,
    )


async def _parsed(call: RouteCall, wanted: JsonBody) -> BaseModel:
    body = await _read(call, wanted)

    def parse() -> BaseModel:
        return read_json_body(body, wanted.model, may_be_absent=wanted.may_be_absent)

    return parse() if len(body) <= PARSED_AT_ONCE else await call.serving.threads.read(parse)


async def _authorize(route: GraphRoute, call: RouteCall) -> None:
    """Ask for what is known from the request, then for what storage knows, which is asked on a thread."""
    for need in route.needs(call):
        need.ask(call.served.gate, call.actor)
    admit = route.admit
    if admit is not None and call.served.gate is not OPEN_GATE:
        await call.serving.threads.read(lambda: admit(call))


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
        return await threads.read(lambda: _timed(route, call))
    with ExitStack() as refused:
        if isinstance(call.body, SpooledBody):
            refused.callback(call.body.remove)
        refused.callback(call.serving.admission.reserve(call.actor, weight))
        name = _write_name(call)
        if name is not None:
            refused.callback(call.serving.writes.begin(name))
        endings = refused.pop_all()

    def work() -> Response:
        return route.work(call) if name is None else _kept(route, call, name)

    if route.may_tell is None or not accepts(call.request, route.may_tell):
        return await threads.write(work, done=endings.close, gone=_gone(call.request))
    telling = Telling()
    call.tell = telling.tell
    working = threads.write(work, done=endings.close, gone=_gone(call.request))
    return await telling.answer(working, lambda error: _refused(call, error), route.may_tell)


def _refused(call: RouteCall, error: BaseException) -> Response:
    state = call.request.state
    hidden = {**call.serving.places, **getattr(state, "hidden", {})}
    return error_answer(error, request_id=state.request_id, hidden=hidden)


def _write_name(call: RouteCall) -> WriteName | None:
    """Return the name that the caller gave a write, if any.

    Raises:
        BadRequest: it is none.
    """
    write_id = call.request.headers.get(WRITE_ID)
    if write_id is None:
        return None
    if not is_write_id(write_id):
        raise BadRequest(f"{WRITE_ID} is 16 to 64 letters, digits, '_' and '-'")
    return WriteName(call.actor, call.served.graph_id, write_id)


def _kept(route: GraphRoute, call: RouteCall, name: WriteName) -> Response:
    """Do a write, and keep what is answered before anybody can lose it."""
    writes = call.serving.writes
    try:
        answer = route.work(call)
    except OmnigraphError as error:
        if error.status < Status.INTERNAL_SERVER_ERROR:
            waits = isinstance(error, ConflictError) and error.recovery_operation_id is not None
            writes.answered(name, _refused(call, error), had_no_effect=not waits)
        else:  # its text is written where it ends, and may not say what became of the write
            writes.answered(name, Response(status_code=error.status))
        raise
    except CallCancelled:  # before it had effects: it has not begun, and there is no answer
        raise
    except BaseException:
        writes.answered(name, Response(status_code=Status.INTERNAL_SERVER_ERROR))
        raise
    writes.answered(name, answer)
    return answer


def _timed(route: GraphRoute, call: RouteCall) -> Response:
    """Do the work of a read within its time (R4); a query looks at a clock of its own as well."""
    with deadline(Budget(timeout_ms=call.read_ms).check):
        return route.work(call)


async def _gone(request: Request) -> None:
    """Return when the caller has gone; what is left of a body that no route reads comes first."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
