"""`GET /snapshot`: the version and the tables of a branch."""

from starlette.responses import Response

from omnigraph.server.access import READ, Need
from omnigraph.server.answers import json_answer
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.wire.documents import snapshot_document
from omnigraph.wire.requests import OnBranch
from omnigraph.wire.responses import SnapshotOutput


def _snapshot(call: RouteCall) -> Response:
    wanted: OnBranch = call.query
    return json_answer(snapshot_document(call.graph.snapshot(wanted.branch)))


ROUTES = (
    GraphRoute(
        "GET",
        "/snapshot",
        "getSnapshot",
        "Show the version and the tables of a branch.",
        _snapshot,
        lambda call: [Need(READ, call.query.branch)],
        Answers(SnapshotOutput),
        query=OnBranch,
        errors=(404,),
    ),
)
