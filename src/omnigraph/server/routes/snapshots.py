"""What the newest state of a branch consists of: `GET /snapshot` its tables, `GET /indexes` their indexes."""

from starlette.responses import Response

from omnigraph.history.branches import given_name
from omnigraph.policy.request import Action
from omnigraph.server.access import Need
from omnigraph.server.answers import json_answer
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.wire.documents import index_status_document, snapshot_document
from omnigraph.wire.requests import OnBranch
from omnigraph.wire.responses import IndexStatusOutput, SnapshotOutput


def _snapshot(call: RouteCall) -> Response:
    wanted: OnBranch = call.query
    return json_answer(snapshot_document(call.graph.snapshot(wanted.branch)))


def _indexes(call: RouteCall) -> Response:
    wanted: OnBranch = call.query
    tables = call.graph.index_status(branch=wanted.branch)
    return json_answer(index_status_document(tables, uri=call.uri, branch=wanted.branch))


ROUTES = (
    GraphRoute(
        "GET",
        "/snapshot",
        "getSnapshot",
        "Show the version and the tables of a branch.",
        _snapshot,
        lambda call: [Need(Action.READ, given_name(call.query.branch))],
        Answers(SnapshotOutput),
        query=OnBranch,
        errors=(404,),
    ),
    GraphRoute(
        "GET",
        "/indexes",
        "getIndexes",
        "Show the declared indexes of a branch, and how much of their tables they cover.",
        _indexes,
        lambda call: [Need(Action.READ, given_name(call.query.branch))],
        Answers(IndexStatusOutput),
        query=OnBranch,
        errors=(404,),
    ),
)
