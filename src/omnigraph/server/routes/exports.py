"""Everything of a branch as NDJSON: `/export`, and the baseline of a feed."""

from collections.abc import Iterator

from starlette.responses import Response

from omnigraph.history.branches import given_name
from omnigraph.policy.request import Action
from omnigraph.server.access import Need
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RouteCall
from omnigraph.server.streams import StreamAnswer
from omnigraph.wire.requests import BaselineRequest, ExportRequest

NDJSON = "application/x-ndjson"


def _export(call: RouteCall) -> Response:
    wanted: ExportRequest = call.body
    types = [*(wanted.type_names or ()), *(wanted.table_keys or ())]
    found = call.graph.export(branch=wanted.branch, types=types or None, actor=call.actor)
    return stream(call, found.lines())


def _baseline(call: RouteCall) -> Response:
    wanted: BaselineRequest = call.body
    found = call.graph.baseline(
        branch=wanted.branch, kinds=wanted.kind, types=wanted.type, ops=wanted.op, actor=call.actor
    )
    return stream(call, found.lines())


def stream(call: RouteCall, pieces: Iterator[bytes]) -> Response:
    """Return NDJSON that is made while it is sent."""
    return StreamAnswer(
        pieces,
        f"{NDJSON}; charset=utf-8",
        threads=call.serving.threads,
        shares=call.serving.streams,
    )


def _needs(call: RouteCall) -> list[Need]:
    return [Need(Action.EXPORT, given_name(call.body.branch))]


ROUTES = (
    GraphRoute(
        "POST",
        "/export",
        "export",
        "Stream the records of a branch, in the form a load takes.",
        _export,
        _needs,
        Answers(None, (NDJSON,), "One record on each line; a body without its end is no export."),
        body=JsonBody(ExportRequest, may_be_absent=True),
        errors=(404, 410, 413),
    ),
    GraphRoute(
        "POST",
        "/changes/baseline",
        "captureChangeBaseline",
        "Stream every entity of a branch, and then the cursor to continue from.",
        _baseline,
        _needs,
        Answers(None, (NDJSON,), "Records, and a last line with the commit and the cursor."),
        body=JsonBody(BaselineRequest, may_be_absent=True),
        errors=(404, 410, 413),
    ),
)
