"""What changed: in a commit, since a cursor, between two sides."""

from starlette.responses import Response

from omnigraph.changes.documents import commit_changes_document, feed_document
from omnigraph.core.limits import PAGE_CHANGES
from omnigraph.history.branches import given_name
from omnigraph.operations.changes.feed import FeedPosition
from omnigraph.policy.request import Action
from omnigraph.server.access import Need, SomewhereNeed
from omnigraph.server.answers import json_answer
from omnigraph.server.diff_pages import DiffPage
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.wire.documents import diff_page_document
from omnigraph.wire.requests import ChangeFeedQuery, ChangesOfCommit, DiffQuery
from omnigraph.wire.responses import ChangeFeedOutput, CommitChangesOutput, DiffOutput


def _of_commit(call: RouteCall) -> Response:
    wanted: ChangesOfCommit = call.query
    page = call.graph.commit_changes_page(
        call.path["commit_id"],
        limit=_limit(wanted),
        page_token=wanted.page_token,
        kinds=wanted.kind,
        types=wanted.type,
        ops=wanted.op,
        actor=call.actor,
    )
    return json_answer(commit_changes_document(page.cause, page.changes, page.next_page_token))


def _poll(call: RouteCall) -> Response:
    wanted: ChangeFeedQuery = call.query
    page = call.graph.poll_changes(
        cursor=wanted.cursor,
        start=wanted.start,
        page_token=wanted.page_token,
        branch=wanted.branch,
        limit=_limit(wanted),
        kinds=wanted.kind,
        types=wanted.type,
        ops=wanted.op,
        actor=call.actor,
    )
    return json_answer(feed_document(page.blocks, page.next_page_token, page.cursor, page.caught_up))


def _check_poll(call: RouteCall) -> None:
    wanted: ChangeFeedQuery = call.query
    FeedPosition(wanted.cursor, wanted.start, wanted.page_token)  # which refuses more than one


def _diff(call: RouteCall) -> Response:
    wanted: DiffQuery = call.query
    page = DiffPage.of(wanted)
    found = call.graph.diff(
        page.to_side,
        page.from_side,
        kinds=wanted.kind,
        types=wanted.type,
        ops=wanted.op,
        actor=call.actor,
    )
    changes, token = page.take(found, _limit(wanted))
    return json_answer(diff_page_document(found, changes, token))


def _limit(wanted: ChangesOfCommit) -> int:
    return PAGE_CHANGES if wanted.limit is None else wanted.limit


ROUTES = (
    GraphRoute(
        "GET",
        "/commits/{commit_id}/changes",
        "getCommitChanges",
        "Show what a commit changed, compared with its first parent.",
        _of_commit,
        lambda _call: [SomewhereNeed(Action.READ)],
        Answers(CommitChangesOutput),
        query=ChangesOfCommit,
        errors=(404, 409, 410, 413),
    ),
    GraphRoute(
        "GET",
        "/changes",
        "pollChanges",
        "Show what was committed since a cursor.",
        _poll,
        lambda call: [Need(Action.READ, given_name(call.query.branch))],
        Answers(ChangeFeedOutput),
        query=ChangeFeedQuery,
        check=_check_poll,
        errors=(404, 409, 410, 413),
    ),
    GraphRoute(
        "GET",
        "/diff",
        "diffBranches",
        "Show what differs between two branches or commits.",
        _diff,
        lambda _call: [SomewhereNeed(Action.READ)],  # the engine knows which sides are branches
        Answers(DiffOutput),
        query=DiffQuery,
        errors=(404, 409, 410, 413),
    ),
)
