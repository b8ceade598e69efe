"""`GET /events`: new commits of a branch, as they are made."""

from starlette.responses import Response

from omnigraph.history.branches import given_name
from omnigraph.policy.request import Action
from omnigraph.server.access import Need
from omnigraph.server.events import EVENT_STREAM, EventResponse, event_lines, missed_commits
from omnigraph.server.route import Answers, GraphRoute, RouteCall
from omnigraph.wire.requests import OnBranch

LAST_EVENT_ID = "Last-Event-ID"


def _events(call: RouteCall) -> Response:
    wanted: OnBranch = call.query
    serving = call.serving
    missed = missed_commits(call.graph, wanted.branch, call.request.headers.get(LAST_EVENT_ID) or None)
    followed = serving.events.follow(call.graph, wanted.branch, serving.threads)
    serving.events.reserve(followed)
    lines = event_lines(serving.events, followed, missed, serving.metrics)
    return EventResponse(serving.events, followed, lines)


ROUTES = (
    GraphRoute(
        "GET",
        "/events",
        "streamCommits",
        "Follow the new commits of a branch, as server-sent events.",
        _events,
        lambda call: [Need(Action.READ, given_name(call.query.branch))],
        Answers(None, (EVENT_STREAM,), "Events, one for each commit, until the caller goes."),
        query=OnBranch,
        errors=(404, 429),
        headers={LAST_EVENT_ID: "The last commit that the caller has seen."},
    ),
)
