"""Branches: listing, making, upgrading, deleting and merging them."""

from starlette.responses import Response

from omnigraph.history.branches import given_name
from omnigraph.history.identity import MAIN
from omnigraph.policy.request import Action
from omnigraph.server.access import Need
from omnigraph.server.answers import json_answer
from omnigraph.server.route import Answers, GraphRoute, JsonBody, RouteCall
from omnigraph.server.routes.queries import WRITE_ERRORS
from omnigraph.wire.documents import (
    branch_created_document,
    branch_deleted_document,
    merge_document,
    schema_apply_document,
)
from omnigraph.wire.requests import BranchCreateRequest, BranchMergeRequest, BranchUpgradeRequest
from omnigraph.wire.responses import (
    BranchCreateOutput,
    BranchDeleteOutput,
    BranchListOutput,
    BranchMergeOutput,
)
from omnigraph.wire.schema_responses import SchemaApplyOutput

BRANCH_WEIGHT = 256  # bytes that an operation on branches counts: it has hardly any


def _list(call: RouteCall) -> Response:
    return json_answer({"branches": call.graph.branches()})


def _create(call: RouteCall) -> Response:
    wanted: BranchCreateRequest = call.body
    made = call.graph.create_branch(wanted.name, wanted.from_, actor=call.actor)
    return json_answer(branch_created_document(made, call.uri, call.actor))


def _delete(call: RouteCall) -> Response:
    name = call.path["branch"]
    call.graph.delete_branch(name, actor=call.actor)
    return json_answer(branch_deleted_document(name, call.uri, call.actor))


def _upgrade(call: RouteCall) -> Response:
    wanted: BranchUpgradeRequest = call.body
    result = call.graph.upgrade_branch(
        call.path["branch"],
        allow_data_loss=wanted.allow_data_loss,
        index=wanted.index,
        message=wanted.message,
        engine="local",
        actor=call.actor,
    )
    return json_answer(schema_apply_document(result, call.uri))


def _merge(call: RouteCall) -> Response:
    wanted: BranchMergeRequest = call.body
    result = call.graph.merge(
        wanted.source,
        _target(wanted),
        message=wanted.message,
        delete_branch=wanted.delete_branch,
        dry_run=wanted.dry_run,
        actor=call.actor,
    )
    document = merge_document(
        result, call.actor, is_dry_run=wanted.dry_run, is_delete_asked=wanted.delete_branch
    )
    return json_answer(document)


def _merge_needs(call: RouteCall) -> list[Need]:
    wanted: BranchMergeRequest = call.body
    # What else is asked for, `branch_delete`, is asked behind the merge: its refusal is a part of the answer.
    return [Need(Action.BRANCH_MERGE, wanted.source, _target(wanted))]


def _target(wanted: BranchMergeRequest) -> str:
    return MAIN if wanted.target is None else wanted.target


def _weight(_call: RouteCall) -> int:
    return BRANCH_WEIGHT


ROUTES = (
    GraphRoute(
        "GET",
        "/branches",
        "listBranches",
        "List the branches.",
        _list,
        lambda _call: [Need(Action.READ)],
        Answers(BranchListOutput),
    ),
    GraphRoute(
        "POST",
        "/branches",
        "createBranch",
        "Make a branch.",
        _create,
        lambda call: [Need(Action.BRANCH_CREATE, given_name(call.body.from_), call.body.name)],
        Answers(BranchCreateOutput),
        body=JsonBody(BranchCreateRequest),
        weight=_weight,
        errors=(404, 409, 429, 503),
    ),
    GraphRoute(
        "POST",
        "/branches/merge",
        "mergeBranches",
        "Merge a branch into another, as one commit.",
        _merge,
        _merge_needs,
        Answers(BranchMergeOutput),
        body=JsonBody(BranchMergeRequest),
        weight=_weight,
        errors=(404, 409, 410, 413, 429, 503),
    ),
    GraphRoute(
        "POST",
        "/branches/{branch}/upgrade",
        "upgradeBranch",
        "Bring the changes of main's schema to a branch, as one commit; its rows stay.",
        _upgrade,
        lambda call: [Need(Action.SCHEMA_APPLY, target=call.path["branch"])],
        Answers(SchemaApplyOutput),
        body=JsonBody(BranchUpgradeRequest, may_be_absent=True),
        weight=_weight,
        errors=WRITE_ERRORS,
    ),
    GraphRoute(
        "DELETE",
        "/branches/{branch}",
        "deleteBranch",
        "Delete a branch and the commits that only it has.",
        _delete,
        lambda call: [Need(Action.BRANCH_DELETE, target=call.path["branch"])],
        Answers(BranchDeleteOutput),
        weight=_weight,
        errors=(404, 409, 429, 503),
    ),
)
