"""What a server tells of its requests: log lines, numbers and spans, and never a secret."""

import io
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext

from omnigraph.server.log import JsonLines, begin_log
from tests.support.atlas import MUTATIONS, place_atlas
from tests.support.http_app import serving_app, settings_for
from tests.support.http_server import TOKENS, error_of

READ = "query crafts($name: String?) { match { $c: Craft } return { $c.code } }"
SECRET = "nobody-must-read-this"
MIRA = {"Authorization": f"Bearer {TOKENS['act-mira']}"}


class RecordedSpan(NonRecordingSpan):
    """Keeps what is said about it."""

    def __init__(self, name: str, parent: SpanContext) -> None:
        super().__init__(parent)
        self.name, self.parent, self.attributes = name, parent, dict[str, Any]()
        self.status: Any = None

    def is_recording(self) -> bool:
        return True

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, key: str, value: Any) -> None:  # noqa: ANN401 - as the library has it
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:  # noqa: ANN401 - likewise
        self.status = status


class RecordingTracer(trace.NoOpTracer):
    """Gives out spans that can be looked at afterwards."""

    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []

    @contextmanager
    def start_as_current_span(  # type: ignore[override]  # the library's is a decorator as well
        self, name: str, context: Context | None = None, *_: object, **__: object
    ) -> Iterator[Span]:
        parent = trace.get_current_span(context).get_span_context()
        self.spans.append(RecordedSpan(name, parent))
        yield self.spans[-1]


class Watched:
    """A server with tokens, and what it has told so far."""

    def __init__(self, client: httpx.Client, log: io.StringIO, tracer: RecordingTracer) -> None:
        self.client, self.log, self.tracer = client, log, tracer

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One server for this file."""
    graph = place_atlas(tmp_path_factory.mktemp("observed"))
    log, tracer = io.StringIO(), RecordingTracer()
    handler = logging.StreamHandler(log)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("omnigraph.server")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer", lambda _name: tracer)
        try:
            with serving_app(settings_for(graph, tokens=TOKENS)) as client:
                yield Watched(client, log, tracer)
        finally:
            logger.removeHandler(handler)


def told(lines: Sequence[dict[str, Any]], request_id: str) -> dict[str, Any]:
    """Return the one line about a request."""
    (line,) = [
        line for line in lines if line.get("request_id") == request_id and line["message"] == "request"
    ]
    return line


@pytest.mark.case("surfaces", 380)
def test_a_request_is_one_line_of_json(watched: Watched) -> None:
    headers = {**MIRA, "X-Request-Id": "one-line"}

    watched.client.post("/query", json={"query": READ}, headers=headers).raise_for_status()

    line = told(watched.lines(), "one-line")
    assert isinstance(line.pop("ms"), float)
    assert isinstance(line.pop("time"), str)
    assert line == {
        "level": "info",
        "logger": "omnigraph.server.requests",
        "message": "request",
        "request_id": "one-line",
        "actor": "act-mira",
        "graph": "default",
        "method": "POST",
        "route": "/query",
        "status": 200,
    }


def test_no_header_and_no_parameter_changes_the_actor_of_a_token(watched: Watched) -> None:
    for number, method in enumerate(("query", "mutate")):
        headers = {**MIRA, "X-Actor-Id": "act-tomas", "X-Request-Id": f"another-{number}"}
        body = {"query": READ if method == "query" else MUTATIONS}

        watched.client.post(f"/{method}?actor=act-tomas", json=body, headers=headers)

        assert told(watched.lines(), f"another-{number}")["actor"] == "act-mira"


@pytest.mark.case("surfaces", 380)
def test_refused_requests_are_told_without_what_they_carried(watched: Watched) -> None:
    client = watched.client
    body = {"query": READ.replace("crafts", SECRET), "params": {"name": SECRET}}
    requests = {
        "refused-401": client.post("/query", json=body, headers={"Authorization": f"Bearer {SECRET}"}),
        "refused-400": client.post("/query", json=body, headers=MIRA),
        "refused-403": client.post("/mutate", json={"query": MUTATIONS}, headers=MIRA),
        "refused-404": client.get(f"/graphs/{SECRET}/snapshot?branch={SECRET}", headers=MIRA),
        "refused-405": client.get("/query", headers=MIRA),
    }

    statuses = [answer.status_code for answer in requests.values()]
    ids = [answer.headers["x-request-id"] for answer in requests.values()]
    found = [told(watched.lines(), request_id) for request_id in ids]
    assert statuses == [line["status"] for line in found] == [401, 400, 403, 404, 405]
    assert [line["route"] for line in found] == [
        "unknown",
        "/query",
        "/mutate",
        "/graphs/{graph_id}/snapshot",
        "unknown",
    ]
    assert found[3]["graph"] is None
    log = watched.log.getvalue()
    assert SECRET not in log
    assert not any(token in log for token in TOKENS.values())


@pytest.mark.case("surfaces", 381)
def test_metrics_need_a_token_and_count_by_route(watched: Watched) -> None:
    client = watched.client
    client.get("/graphs/default/snapshot", headers=MIRA).raise_for_status()
    client.get(f"/{SECRET}", headers=MIRA)
    client.get(f"/graphs/{SECRET}/snapshot", headers=MIRA)
    client.get(f"/graphs/other-{SECRET}/snapshot", headers=MIRA)

    refused = client.get("/metrics")
    numbers = client.get("/metrics", headers=MIRA)

    error_of(refused, 401, "unauthorized")
    assert numbers.status_code == 200
    assert numbers.headers["content-type"].startswith("text/plain")
    route = 'graph="default",method="GET",route="/graphs/{graph_id}/snapshot"'
    assert f'omnigraph_http_requests_total{{{route},status="200"}} 1.0' in numbers.text
    assert f"omnigraph_http_request_seconds_count{{{route}}} 1.0" in numbers.text
    assert 'route="unknown",status="404"' in numbers.text
    assert "omnigraph_http_requests_in_flight 1.0" in numbers.text
    assert SECRET not in numbers.text


@pytest.mark.case("surfaces", 382)
def test_a_request_is_a_span_inside_the_trace_of_its_caller(watched: Watched) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = {**MIRA, "traceparent": parent, "X-Request-Id": "in-a-trace"}

    watched.client.post("/query", json={"query": READ}, headers=headers).raise_for_status()

    (span,) = [
        span for span in watched.tracer.spans if span.attributes.get("omnigraph.request_id") == "in-a-trace"
    ]
    assert span.name == "POST /query"
    assert f"{span.parent.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert span.attributes == {
        "http.request.method": "POST",
        "http.route": "/query",
        "http.response.status_code": 200,
        "omnigraph.request_id": "in-a-trace",
        "omnigraph.graph": "default",
        "enduser.id": "act-mira",
    }
    assert span.status is None


def test_an_unexpected_error_has_its_traceback_in_one_line() -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(JsonLines())
    record_of = logging.getLogger("unrelated").makeRecord
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
        handler.handle(record_of("omnigraph.server", logging.ERROR, "f", 1, "failed", (), info))

    (line,) = log.getvalue().splitlines()
    assert json.loads(line)["exception"].endswith("ValueError: two\nlines")


@pytest.mark.case("surfaces", 343)
def test_what_uvicorn_tells_is_a_line_of_json_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = {log: log.level for log in (logging.getLogger("omnigraph"), logging.getLogger("uvicorn"))}
    for log in levels:
        monkeypatch.setattr(log, "handlers", [])
        monkeypatch.setattr(log, "propagate", log.propagate)

    try:
        begin_log()
        logging.getLogger("uvicorn.error").error("Exception in ASGI application")
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    finally:
        for log, level in levels.items():
            log.setLevel(level)

    line = json.loads(capsys.readouterr().err)
    assert (line["logger"], line["level"]) == ("uvicorn.error", "error")
    assert line["message"] == "Exception in ASGI application"
