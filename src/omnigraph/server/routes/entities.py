"""`/entity`: one node or edge, now or in the past, by its id."""

from starlette.responses import Response

from omnigraph.graph.entity_reads import entity_row
from omnigraph.policy.request import Action
from omnigraph.server.access import SomewhereNeed
from omnigraph.server.answers import json_answer
from omnigraph.server.arrow_answer import arrow_pieces, pieces_answer, wants_arrow
from omnigraph.server.bodies import JSON_TYPE
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.wire.arrow_stream import ARROW_STREAM, COMMIT_ID, ROW_COUNT
from omnigraph.wire.entity_document import entity_document
from omnigraph.wire.requests import EntityQuery
from omnigraph.wire.responses import EntityOutput


def _show(call: RouteCall) -> Response:
    wanted: EntityQuery = call.query
    found = entity_row(call.graph, wanted.type, wanted.id, wanted.target, actor=call.actor)
    if not wants_arrow(call.request):
        return json_answer(entity_document(found))
    headers = {COMMIT_ID: found.commit_id, ROW_COUNT: str(found.row.num_rows)}
    pieces = arrow_pieces(found.row.schema, found.row.to_batches())
    return pieces_answer(pieces, headers, threads=call.serving.threads, shares=call.serving.streams)


ROUTES = (
    GraphRoute(
        "GET",
        "/entity",
        "getEntity",
        "Show a node or an edge, on a branch or in a commit.",
        _show,
        lambda _call: [SomewhereNeed(Action.READ)],  # the engine knows whether the target is a branch
        Answers(
            EntityOutput, (JSON_TYPE, ARROW_STREAM), "The entity; as a stream of Arrow's, with its Blobs."
        ),
        query=EntityQuery,
        errors=(404, 410),
    ),
)
