"""What a server tells of its requests: a line in the log, a span, and numbers.

O1  Told are the id, the actor, the graph, the route, the status and the time of a request. Neither a token
    nor a text of a query nor a value of a parameter is told, by any of the three.
O2  What numbers are kept apart by is bounded: routes as they are declared, graphs that are served.
"""

import logging
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    ProxyTracer,
    ProxyTracerProvider,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    get_tracer_provider,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph.server.metrics import Metrics
from omnigraph.server.serving import Serving

UNROUTED = "unknown"  # what has no route: a path that does not exist, a caller that is not known
_NOWHERE: AbstractContextManager[Span] = nullcontext(INVALID_SPAN)  # while no SDK is installed
_log = logging.getLogger("omnigraph.server.requests")


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """One request that has ended; `status` is 0 where it ended before its answer began."""

    request_id: str
    actor: str | None
    graph: str
    method: str
    route: str
    status: int
    seconds: float


class Observed:
    """Tells of every request when the last of its answer is about to be sent, or when that was given up."""

    def __init__(
        self, app: ASGIApp, serving: Serving, metrics: Metrics, tracer: Tracer | None = None
    ) -> None:
        """Take what comes next, the server whose graphs have names, and where numbers and spans go."""
        self.app, self.serving, self.metrics = app, serving, metrics
        self._tracer = tracer or trace.get_tracer("omnigraph.server")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Measure a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, is_told, began = 0, False, time.perf_counter()

        def tell() -> None:
            nonlocal is_told
            if not is_told:
                is_told = True
                self._tell(self._ended(scope, status, time.perf_counter() - began), span)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False):
                tell()  # so that whoever has the whole answer finds it in the log
            await send(message)

        self.metrics.begin()
        with self._span(scope) as span:
            try:
                await self.app(scope, receive, watched)
            finally:
                tell()

    def _span(self, scope: Scope) -> AbstractContextManager[Span]:
        """Return the span of a request, in the trace of its caller; none where nobody would get it."""
        if isinstance(self._tracer, ProxyTracer) and isinstance(get_tracer_provider(), ProxyTracerProvider):
            return _NOWHERE
        return self._tracer.start_as_current_span(
            scope["method"], trace_of(scope), SpanKind.SERVER, record_exception=False
        )

    def _ended(self, scope: Scope, status: int, seconds: float) -> ObservedRequest:
        state = scope.get("state", {})
        graph = state.get("graph")
        return ObservedRequest(
            request_id=state.get("request_id", ""),
            actor=state.get("actor"),
            graph=graph if graph in self.serving.graphs else "",
            method=scope["method"],
            route=state.get("route", UNROUTED),
            status=status,
            seconds=seconds,
        )

    def _tell(self, request: ObservedRequest, span: Span) -> None:
        self.metrics.end(request)
        _describe(span, request)
        if not _log.isEnabledFor(logging.INFO):
            return
        _log.info(
            "request",
            extra={
                "request_id": request.request_id,
                "actor": request.actor,
                "graph": request.graph or None,
                "method": request.method,
                "route": request.route,
                "status": request.status,
                "ms": round(request.seconds * 1000, 3),
            },
        )


def _describe(span: Span, request: ObservedRequest) -> None:
    if not span.is_recording():
        return
    span.update_name(f"{request.method} {request.route}")
    span.set_attribute("http.request.method", request.method)
    span.set_attribute("http.route", request.route)
    span.set_attribute("http.response.status_code", request.status)
    span.set_attribute("omnigraph.request_id", request.request_id)
    if request.graph:
        span.set_attribute("omnigraph.graph", request.graph)
    if request.actor is not None:
        span.set_attribute("enduser.id", request.actor)
    if request.status >= 500 or request.status == 0:
        span.set_status(StatusCode.ERROR)


def trace_of(scope: Scope) -> Context:
    """Return the trace that a caller says it is in.

    Its baggage is left out: nothing here uses it, and what cannot be read of it would be told in the log.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    headers.pop("baggage", None)
    return propagate.extract(headers)
