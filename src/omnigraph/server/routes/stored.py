"""Stored queries: `GET /queries` and `POST /queries/{name}`.

N1  Who may not call stored queries cannot find out by calls which there are: an unknown name and a known one
    get the same answer. The list is for those who may read main.
"""

from collections.abc import Iterable

from starlette.responses import Response

from omnigraph.catalog.stored_queries import StoredQuery
from omnigraph.core.errors import BadRequest, NotFoundError, PolicyDenied
from omnigraph.history.branches import given_name
from omnigraph.history.identity import MAIN
from omnigraph.policy.request import Action
from omnigraph.server.access import AnyNeed, Need
from omnigraph.server.answers import json_answer
from omnigraph.server.bodies import JSON_TYPE
from omnigraph.server.conditions import IF_COMMIT, required_commit
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RouteCall
from omnigraph.server.routes.queries import (
    CHANGED,
    READ_ERRORS,
    WRITE_ERRORS,
    params_bytes,
    read_answer,
    read_need,
)
from omnigraph.wire.arrow_stream import ARROW_STREAM
from omnigraph.wire.documents import mutation_document, stored_query_document
from omnigraph.wire.requests import InvokeStoredQueryRequest
from omnigraph.wire.responses import ChangeOutput, QueryListOutput, ReadOutput

_INVOKED = Answers((ReadOutput, ChangeOutput), (JSON_TYPE, ARROW_STREAM), "Rows, or what a mutation did.")


def _list(call: RouteCall) -> Response:
    return json_answer({"queries": [stored_query_document(query) for query in call.served.stored.listed]})


def _invoke(call: RouteCall) -> Response:
    return _answer(call, None)


def _invoke_if(call: RouteCall) -> Response:
    return _answer(call, required_commit(call))


def _answer(call: RouteCall, if_commit: str | None) -> Response:
    stored, wanted = _stored(call), _wanted(call)
    if stored.is_mutation:
        result = call.graph.mutate(
            stored.source,
            stored.name,
            wanted.params,
            branch=wanted.branch,
            actor=call.actor,
            if_commit=if_commit,
            message=wanted.message,
        )
        return json_answer(mutation_document(result, call.actor))
    rows = call.graph.query(
        stored.source,
        stored.name,
        wanted.params,
        branch=wanted.branch,
        snapshot=wanted.snapshot,
        actor=call.actor,
        timeout_ms=call.read_ms,
    )
    return read_answer(call, rows)


def _stored(call: RouteCall) -> StoredQuery:
    """Return the query that is called.

    Raises:
        NotFoundError: there is none, or the caller may not know of it (N1).
    """
    stored = call.served.stored.queries.get(call.path["name"])
    try:
        Need(Action.INVOKE_QUERY).ask(call.served.gate, call.actor)
    except PolicyDenied:
        stored = None
    if stored is None:
        raise NotFoundError("stored query not found")
    return stored


def _needs(call: RouteCall) -> Iterable[AnyNeed]:
    wanted = _wanted(call)
    if _stored(call).is_mutation:
        return [Need(Action.CHANGE, given_name(wanted.branch))]
    return [read_need(wanted.branch, wanted.snapshot)]


def _check(call: RouteCall) -> None:
    stored, wanted = _stored(call), _wanted(call)
    if wanted.expect_mutation is not None and wanted.expect_mutation != stored.is_mutation:
        verb = "mutate" if stored.is_mutation else "query"
        raise BadRequest(f"stored query '{stored.name}' is a {stored.kind}: use {verb}")
    if stored.is_mutation and wanted.snapshot is not None:
        raise BadRequest(f"stored query '{stored.name}' is a mutation: it changes a branch, not a snapshot")
    if not stored.is_mutation and wanted.message is not None:
        raise BadRequest(f"stored query '{stored.name}' is a read: if_commit and message go with mutations")
    if wanted.branch is not None and wanted.snapshot is not None:
        raise BadRequest("give a branch or a snapshot, not both")


def _check_if(call: RouteCall) -> None:
    stored, wanted = _stored(call), _wanted(call)
    required_commit(call)
    if not stored.is_mutation:
        raise BadRequest(f"stored query '{stored.name}' is a read: a condition goes with a mutation")
    if wanted.snapshot is not None or wanted.expect_mutation is False:
        raise BadRequest(f"stored query '{stored.name}' is a mutation: use mutate, without a snapshot")


def _weight(call: RouteCall) -> int | None:
    """Return what a stored mutation counts against its actor's share; a read counts nothing."""
    stored, wanted = _stored(call), _wanted(call)
    if not stored.is_mutation:
        return None
    return params_bytes(stored.source.text, wanted.params)


def _wanted(call: RouteCall) -> InvokeStoredQueryRequest:
    given: InvokeStoredQueryRequest = call.body
    return given


ROUTES = (
    GraphRoute(
        "GET",
        "/queries",
        "list_queries",
        "List the stored queries.",
        _list,
        lambda _call: [Need(Action.READ, MAIN)],
        Answers(QueryListOutput),
    ),
    GraphRoute(
        "POST",
        "/queries/{name}",
        "invoke_query",
        "Run a stored query.",
        _invoke,
        _needs,
        _INVOKED,
        body=JsonBody(InvokeStoredQueryRequest, may_be_absent=True),
        check=_check,
        conditional="{}/if-graph-commit",
        weight=_weight,
        errors=tuple(sorted({*READ_ERRORS, *WRITE_ERRORS})),
    ),
    GraphRoute(
        "POST",
        "/queries/{name}/if-graph-commit",
        "invoke_query_if_graph_commit",
        "Run a stored mutation if the branch is still at a commit.",
        _invoke_if,
        _needs,
        CHANGED,
        body=JsonBody(InvokeStoredQueryRequest, may_be_absent=True),
        check=_check_if,
        weight=_weight,
        errors=(*WRITE_ERRORS, 412),
        headers={IF_COMMIT: "The commit that the branch must be at."},
    ),
)
