"""The schema of a graph: showing it, planning a change, applying one; and checking queries against it."""

from starlette.responses import Response

from omnigraph.catalog.lint import lint
from omnigraph.core.span import Source
from omnigraph.history.identity import MAIN
from omnigraph.server.access import READ, Need
from omnigraph.server.answers import json_answer
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RouteCall
from omnigraph.wire.documents import schema_apply_document, schema_plan_document
from omnigraph.wire.requests import OnBranch, QueryCheckRequest, SchemaApplyRequest, SchemaPlanRequest
from omnigraph.wire.responses import LintOutput, SchemaApplyOutput, SchemaOutput, SchemaPlanOutput

APPLY = "schema_apply"
SENT = "<request>"  # what the report of a check calls a text that is no file


def _show(call: RouteCall) -> Response:
    wanted: OnBranch = call.query
    return json_answer({"schema_source": call.graph.schema(branch=wanted.branch)})


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
    return [Need(APPLY, target=MAIN if wanted.branch is None else wanted.branch)]


ROUTES = (
    GraphRoute(
        "GET",
        "/schema",
        "getSchema",
        "Show the schema, as it was given.",
        _show,
        lambda _call: [Need(READ)],
        Answers(SchemaOutput),
        query=OnBranch,
        errors=(404,),
    ),
    GraphRoute(
        "POST",
        "/schema/plan",
        "planSchema",
        "Show the steps to another schema; nothing is written.",
        _plan,
        lambda _call: [Need(READ)],
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
        lambda call: [Need(READ, call.body.branch)],
        Answers(LintOutput),
        body=JsonBody(QueryCheckRequest),
        errors=(404,),
    ),
)
