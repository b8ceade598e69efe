"""History: commits, and finished recoveries."""

from starlette.responses import Response

from omnigraph.history.branches import given_name
from omnigraph.history.identity import MAIN
from omnigraph.policy.request import Action
from omnigraph.server.access import Need
from omnigraph.server.answers import json_answer
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.wire.commit_filter import CommitCondition, commit_condition
from omnigraph.wire.documents import commit_document, recovery_document
from omnigraph.wire.requests import CommitOfBranch, CommitQuery, RecoveryQuery
from omnigraph.wire.responses import CommitListOutput, CommitOutput, RecoveryListOutput


def _list(call: RouteCall) -> Response:
    wanted: CommitQuery = call.query
    found = call.graph.commits(branch=wanted.branch, limit=wanted.limit, where=_condition(wanted))
    return json_answer({"commits": [commit_document(commit) for commit in found]})


def _condition(wanted: CommitQuery) -> CommitCondition:
    given = {"actor": wanted.actor, "since": wanted.since, "until": wanted.until, "merge": wanted.merge}
    conditions = [commit_condition(key, value) for key, value in given.items() if value is not None]
    return lambda commit: all(condition(commit) for condition in conditions)


def _check(call: RouteCall) -> None:
    _condition(call.query)


def _show(call: RouteCall) -> Response:
    wanted: CommitOfBranch = call.query
    return json_answer(commit_document(call.graph.commit(call.path["commit_id"], branch=wanted.branch)))


def _recoveries(call: RouteCall) -> Response:
    wanted: RecoveryQuery = call.query
    records = call.graph.recoveries()[: wanted.limit]
    return json_answer({"recoveries": [recovery_document(record) for record in records]})


ROUTES = (
    GraphRoute(
        "GET",
        "/commits",
        "listCommits",
        "List commits, newest first.",
        _list,
        lambda call: [Need(Action.READ, given_name(call.query.branch))],
        Answers(CommitListOutput),
        query=CommitQuery,
        check=_check,
        errors=(404,),
    ),
    GraphRoute(
        "GET",
        "/commits/{commit_id}",
        "getCommit",
        "Show a commit.",
        _show,
        lambda _call: [Need(Action.READ)],
        Answers(CommitOutput),
        query=CommitOfBranch,
        errors=(404,),
    ),
    GraphRoute(
        "GET",
        "/recoveries",
        "listRecoveries",
        "List what was recovered after interrupted writes, newest first.",
        _recoveries,
        lambda _call: [Need(Action.READ, MAIN)],
        Answers(RecoveryListOutput),
        query=RecoveryQuery,
    ),
)
