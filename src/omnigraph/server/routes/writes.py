"""`GET /writes/{write_id}`: what became of a write whose answer was lost."""

from typing import cast

from starlette.responses import Response

from omnigraph.core.errors import NotFoundError
from omnigraph.core.values import Json, read_json
from omnigraph.policy.request import Action
from omnigraph.server.access import AnyNeed, SomewhereNeed
from omnigraph.server.answers import json_answer
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.server.sent_writes import SentWrite, WriteName
from omnigraph.wire.error_document import CLASS_HEADER
from omnigraph.wire.responses import WriteOutput


def _found(call: RouteCall) -> SentWrite | None:
    """Return what is known of the caller's own write; nobody finds that of another."""
    return call.serving.writes.find(WriteName(call.actor, call.served.graph_id, call.path["write_id"]))


def _needs(call: RouteCall) -> list[AnyNeed]:
    """Return what it takes to be told that there is no such write; who made one may always ask for it."""
    return [SomewhereNeed(Action.READ)] if _found(call) is None else []


def _show(call: RouteCall) -> Response:
    write_id, found = call.path["write_id"], _found(call)
    if found is None:
        raise NotFoundError(f"this process knows of no write '{write_id:.80}' of yours")
    document: Json = {"write_id": write_id, "state": found.state.value}
    if found.status is not None:
        document["status"] = found.status
    if found.content is not None:
        document["answer"] = cast("Json", read_json(found.content))
    class_name = (found.headers or {}).get(CLASS_HEADER.lower())
    if class_name is not None:
        document["error_class"] = class_name
    return json_answer(document, headers={"Cache-Control": "no-store"})


ROUTES = (
    GraphRoute(
        "GET",
        "/writes/{write_id}",
        "getWrite",
        "Say what became of a write of yours, by the name that you gave it.",
        _show,
        _needs,
        Answers(WriteOutput),
        errors=(404,),
    ),
)
