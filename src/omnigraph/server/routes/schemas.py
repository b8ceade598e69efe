"""The schema of a graph: showing it, planning a change, applying one; and checking queries against it."""

from starlette.responses import Response

from omnigraph.catalog.build import compile_schema
from omnigraph.catalog.lint import lint
from omnigraph.core.errors import BadRequest
from omnigraph.core.span import Source
from omnigraph.core.values import Json
from omnigraph.history.branches import given_name
from omnigraph.history.identity import branch_name
from omnigraph.policy.request import Action
from omnigraph.server.access import AnyNeed, Need, SomewhereNeed
from omnigraph.server.answers import json_answer
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RouteCall
from omnigraph.wire.catalog_document import catalog_document
from omnigraph.wire.documents import schema_apply_document, schema_plan_document
from omnigraph.wire.requests import QueryCheckRequest, SchemaApplyRequest, SchemaPlanRequest, SchemaQuery
from omnigraph.wire.responses import LintOutput
from omnigraph.wire.schema_responses import SchemaApplyOutput, SchemaOutput, SchemaPlanOutput

SENT = "<request>"  # what the report of a check calls a text that is no file


def _show(call: RouteCall) -> Response:
    wanted: SchemaQuery = call.query
    branch: Json = {}
    if wanted.snapshot is None:
        text = call.graph.schema(branch=wanted.branch)
    else:
        view = call.graph.at(wanted.snapshot)
        text, branch = view.schema(), {"branch": branch_name(view.snapshot.branch)}
    catalog: Json = {}
    if wanted.format == "catalog":  # of this very text: the branch may have another schema by now
        catalog = {"catalog": catalog_document(compile_schema(Source(text)))}
    return json_answer({"schema_source": text, **branch, **catalog})


def _show_needs(call: RouteCall) -> list[AnyNeed]:
    wanted: SchemaQuery = call.query
    if wanted.snapshot is not None:
        return [SomewhereNeed(Action.READ)]
    return [Need(Action.READ, wanted.branch)]


def _check_show(call: RouteCall) -> None:
    wanted: SchemaQuery = call.query
    if wanted.branch is not None and wanted.snapshot is not None:
        raise BadRequest("'branch' and 'snapshot' exclude each other")


def _plan(call: RouteCall) -> Response:
    wanted: SchemaPlanRequest = call.body
    source = Source(wanted.schema_source)  # and never a text alone, which may be the name of a file
    planned = call.graph.plan_schema(source, branch=wanted.branch, allow_data_loss=wanted.allow_data_loss)
    return json_answer(schema_plan_document(planned.migration, planned.rows, call.uri))


def _apply(call: RouteCall) -> Response:
    wanted: SchemaApplyRequest = call.body
    result = call.graph.apply_schema(
        Source(wanted.schema_source),
        branch=wanted.branch,
        base=wanted.base,
        allow_data_loss=wanted.allow_data_loss,
        index=wanted.index,
        message=wanted.message,
        engine="local",
        actor=call.actor,
    )
    return json_answer(schema_apply_document(result, call.uri))


def _check_query(call: RouteCall) -> Response:
    wanted: QueryCheckRequest = call.body
    report = lint(
        call.graph.catalog_on(wanted.branch),
        Source(wanted.query),
        query_path=SENT,
        schema_source={"kind": "graph", "uri": call.uri},
    )
    return json_answer(report.to_json())


def _apply_needs(call: RouteCall) -> list[Need]:
    wanted: SchemaApplyRequest = call.body
    return [Need(Action.SCHEMA_APPLY, target=given_name(wanted.branch))]


ROUTES = (
    GraphRoute(
        "GET",
        "/schema",
        "getSchema",
        "Show the schema, as it was given; of a snapshot, without comments; with its types if asked.",
        _show,
        _show_needs,
        Answers(SchemaOutput),
        query=SchemaQuery,
        check=_check_show,
        errors=(404,),
    ),
    GraphRoute(
        "POST",
        "/schema/plan",
        "planSchema",
        "Show the steps to another schema; nothing is written.",
        _plan,
        lambda call: [Need(Action.READ, call.body.branch)],
        Answers(SchemaPlanOutput),
        body=JsonBody(SchemaPlanRequest),
        errors=(404,),
    ),
    GraphRoute(
        "POST",
        "/schema/apply",
        "applySchema",
        "Give a branch another schema, as one commit.",
        _apply,
        _apply_needs,
        Answers(SchemaApplyOutput),
        body=JsonBody(SchemaApplyRequest),
        weight=lambda call: len(call.body.schema_source.encode()),
        errors=(404, 409, 413, 429, 503),
    ),
    GraphRoute(
        "POST",
        "/query/check",
        "checkQuery",
        "Check a query file against the schema of a branch.",
        _check_query,
        lambda call: [Need(Action.READ, given_name(call.body.branch))],
        Answers(LintOutput),
        body=JsonBody(QueryCheckRequest),
        errors=(404,),
    ),
)
