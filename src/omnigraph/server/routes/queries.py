"""Reads and mutations: `/query` and `/mutate`, and what older clients call them.

Q1  A text that comes over HTTP is a text: it never names a file of the server.
"""

import json
from collections.abc import Iterable

from starlette.responses import Response

from omnigraph.catalog.bind import find_query
from omnigraph.core.errors import BadRequest, QueryNotFound
from omnigraph.core.span import Source
from omnigraph.graph.result import Result
from omnigraph.history.branches import given_name
from omnigraph.language import query_ast as ast
from omnigraph.language.query_parser import parse_queries
from omnigraph.policy.request import Action
from omnigraph.server.access import AnyNeed, Need, SomewhereNeed
from omnigraph.server.answers import json_answer
from omnigraph.server.arrow_answer import arrow_answer, wants_arrow
from omnigraph.server.bodies import JSON_TYPE
from omnigraph.server.conditions import IF_COMMIT, check_condition, required_commit
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RouteCall
from omnigraph.wire.arrow_stream import ARROW_STREAM
from omnigraph.wire.documents import mutation_document
from omnigraph.wire.requests import ChangeRequest, Params, QueryRequest, ReadRequest
from omnigraph.wire.responses import ChangeOutput, ExplainOutput, ReadOutput

ROWS = Answers(ReadOutput, (JSON_TYPE, ARROW_STREAM), "The rows.")
CHANGED = Answers(ChangeOutput, description="What the mutation did.")
READ_ERRORS = (404, 410, 413)
WRITE_ERRORS = (404, 409, 413, 429, 503)


def _query(call: RouteCall) -> Response:
    wanted: QueryRequest = call.body
    return read_answer(call, _read(call, wanted.query, wanted.name, wanted))


def _read_as_ever(call: RouteCall) -> Response:
    wanted: ReadRequest = call.body
    result = _read(call, wanted.query_source, wanted.query_name, wanted)
    if wants_arrow(call.request):
        return arrow_answer(result, call.serving.threads)
    document = result.to_json()
    del document["graph_commit_id"]  # which came after the clients that call this route
    return json_answer(document)


def _read(call: RouteCall, text: str, name: str | None, wanted: QueryRequest | ReadRequest) -> Result:
    source = Source(text)  # and never a text alone, which may be the name of a file (Q1)
    try:
        return call.graph.query(
            source,
            name,
            wanted.params,
            branch=wanted.branch,
            snapshot=wanted.snapshot,
            actor=call.actor,
            timeout_ms=call.read_ms,
        )
    except (BadRequest, QueryNotFound) as error:
        raise _rerouted(error, source, name, ast.Read) from error


def read_answer(call: RouteCall, result: Result) -> Response:
    """Return rows in the form that the caller accepts."""
    if wants_arrow(call.request):
        return arrow_answer(result, call.serving.threads)
    return json_answer(result.to_json())


def check_read(call: RouteCall) -> None:
    """Refuse a read of two things.

    Raises:
        BadRequest: it names a branch and a snapshot.
    """
    wanted: QueryRequest | ReadRequest = call.body
    if wanted.branch is not None and wanted.snapshot is not None:
        raise BadRequest("give a branch or a snapshot, not both")


def _mutate(call: RouteCall) -> Response:
    return _changed(call, None)


def _mutate_if(call: RouteCall) -> Response:
    return _changed(call, required_commit(call))


def _changed(call: RouteCall, if_commit: str | None) -> Response:
    wanted: ChangeRequest = call.body
    source = Source(wanted.text)  # Q1
    try:
        result = call.graph.mutate(
            source,
            wanted.chosen,
            wanted.params,
            branch=wanted.branch,
            actor=call.actor,
            if_commit=if_commit,
            message=wanted.message,
        )
    except (BadRequest, QueryNotFound) as error:
        raise _rerouted(error, source, wanted.chosen, ast.Mutation) from error
    return json_answer(mutation_document(result, call.actor))


def _explain(call: RouteCall) -> Response:
    wanted: QueryRequest = call.body
    source = Source(wanted.query)  # Q1
    try:
        plan = call.graph.explain(
            source,
            wanted.name,
            wanted.params,
            branch=wanted.branch,
            snapshot=wanted.snapshot,
            actor=call.actor,
        )
    except QueryNotFound as error:
        raise _rerouted(error, source, wanted.name, ast.Read) from error
    return json_answer({"plan": plan.to_json(), "text": plan.to_text()})


def _rerouted(error: BadRequest | QueryNotFound, source: Source, name: str | None, wanted: type) -> Exception:
    """Return an error in the words of HTTP: which route takes the query; a wrong name is a mistake."""
    if isinstance(error, QueryNotFound):
        return BadRequest(str(error))
    try:
        query = find_query(parse_queries(source), name)
    except (BadRequest, QueryNotFound):
        return error
    if isinstance(query.body, wanted):
        return error
    if wanted is ast.Mutation:
        return BadRequest(f"'{query.name.text}' is a read: use query, not mutate (POST /query)")
    return BadRequest(f"'{query.name.text}' is a mutation: use mutate, not query (POST /mutate)")


def params_bytes(text: str, params: Params | None) -> int:
    """Return what a query counts: the length of its text and of its parameters.

    Raises:
        BadRequest: they are nested so deeply that they cannot be written, where there was room to read them.
    """
    try:
        return len(text.encode()) + (0 if params is None else len(json.dumps(params)))
    except RecursionError:
        raise BadRequest("the body: 'params': nested too deeply") from None


def read_need(branch: str | None, snapshot: str | None = None) -> AnyNeed:
    """Return what a read needs: a branch, main if none is named, or what shows a snapshot."""
    if branch is None and snapshot is not None:
        return SomewhereNeed(Action.READ)
    return Need(Action.READ, given_name(branch))


def _read_needs(call: RouteCall) -> Iterable[AnyNeed]:
    return [read_need(call.body.branch, call.body.snapshot)]


def _change_needs(call: RouteCall) -> Iterable[AnyNeed]:
    return [Need(Action.CHANGE, given_name(call.body.branch))]


def _weight(call: RouteCall) -> int:
    wanted: ChangeRequest = call.body
    return params_bytes(wanted.text, wanted.params)


ROUTES = (
    GraphRoute(
        "POST",
        "/query",
        "query",
        "Run a read.",
        _query,
        _read_needs,
        ROWS,
        body=JsonBody(QueryRequest),
        check=check_read,
        errors=READ_ERRORS,
    ),
    GraphRoute(
        "POST",
        "/query/explain",
        "explainQuery",
        "Show how a read would be carried out, without running it.",
        _explain,
        _read_needs,
        Answers(ExplainOutput),
        body=JsonBody(QueryRequest),
        check=check_read,
        errors=(404, 410),
    ),
    GraphRoute(
        "POST",
        "/read",
        "read",
        "Run a read, in the words of older clients.",
        _read_as_ever,
        _read_needs,
        ROWS,
        body=JsonBody(ReadRequest),
        check=check_read,
        errors=READ_ERRORS,
        successor="query",
    ),
    GraphRoute(
        "POST",
        "/mutate",
        "mutate",
        "Run a mutation, as one commit.",
        _mutate,
        _change_needs,
        CHANGED,
        body=JsonBody(ChangeRequest),
        conditional="mutate/if-graph-commit",
        weight=_weight,
        errors=WRITE_ERRORS,
    ),
    GraphRoute(
        "POST",
        "/mutate/if-graph-commit",
        "mutate_if_graph_commit",
        "Run a mutation if the branch is still at a commit.",
        _mutate_if,
        _change_needs,
        CHANGED,
        body=JsonBody(ChangeRequest),
        check=check_condition,
        weight=_weight,
        errors=(*WRITE_ERRORS, 412),
        headers={IF_COMMIT: "The commit that the branch must be at."},
    ),
    GraphRoute(
        "POST",
        "/change",
        "change",
        "Run a mutation, in the words of older clients.",
        _mutate,
        _change_needs,
        CHANGED,
        body=JsonBody(ChangeRequest),
        conditional="mutate/if-graph-commit",
        weight=_weight,
        errors=WRITE_ERRORS,
        successor="mutate",
    ),
)
