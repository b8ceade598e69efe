"""One type: all of its rows, and what they hold."""

from starlette.responses import Response

from omnigraph.core.errors import BadRequest
from omnigraph.server.answers import json_answer
from omnigraph.server.arrow_answer import arrow_pieces, pieces_answer
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.server.routes.queries import read_need
from omnigraph.wire.arrow_stream import ARROW_STREAM, COMMIT_ID, ROW_COUNT
from omnigraph.wire.describe_document import describe_document
from omnigraph.wire.requests import TableQuery, TypeQuery
from omnigraph.wire.responses import DescribeOutput


def _rows(call: RouteCall) -> Response:
    wanted: TableQuery = call.query
    found = call.graph.scan(
        wanted.type,
        branch=wanted.branch,
        snapshot=wanted.snapshot,
        columns=wanted.column or None,
        actor=call.actor,
    )
    headers = {COMMIT_ID: found.commit_id, ROW_COUNT: str(found.row_count)}
    pieces = arrow_pieces(found.schema, found)
    return pieces_answer(pieces, headers, threads=call.serving.threads, shares=call.serving.streams)


def _describe(call: RouteCall) -> Response:
    wanted: TypeQuery = call.query
    found = call.graph.describe(wanted.type, branch=wanted.branch, snapshot=wanted.snapshot, actor=call.actor)
    return json_answer(describe_document(found, call.uri))


def _check(call: RouteCall) -> None:
    wanted: TypeQuery = call.query
    if wanted.branch is not None and wanted.snapshot is not None:
        raise BadRequest("'branch' and 'snapshot' exclude each other")


ROUTES = (
    GraphRoute(
        "GET",
        "/table",
        "getTable",
        "Stream the rows of a type.",
        _rows,
        lambda call: [read_need(call.query.branch, call.query.snapshot)],
        Answers(None, (ARROW_STREAM,), "The rows, in the order of storage."),
        query=TableQuery,
        check=_check,
        errors=(404, 410, 413),
    ),
    GraphRoute(
        "GET",
        "/describe",
        "describeType",
        "Show a type, and what its rows hold.",
        _describe,
        lambda call: [read_need(call.query.branch, call.query.snapshot)],
        Answers(DescribeOutput),
        query=TypeQuery,
        check=_check,
        errors=(404, 410),
    ),
)
