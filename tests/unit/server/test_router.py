"""Routes by their paths and methods."""

import asyncio
from collections.abc import Mapping

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from omnigraph.core.errors import BadRequest
from omnigraph.server.paths import routed_path
from omnigraph.server.refusal import Refusal
from omnigraph.server.router import Endpoint, Router


def answering(name: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        values = " ".join(f"{key}={value}" for key, value in request.path_params.items())
        return Response(f"{name} {values}".strip())

    return answer


@pytest.fixture
def router() -> Router:
    made = Router()
    made.add("GET", "/branches", answering("list"))
    made.add("POST", "/branches", answering("create"))
    made.add("POST", "/branches/merge", answering("merge"))
    made.add("DELETE", "/branches/{branch}", answering("delete"))
    made.add("GET", "/graphs/{graph_id}/commits/{commit_id}/changes", answering("changes"))
    made.add("GET", "/snapshot", answering("snapshot"), graph="atlas")
    return made


def asked(router: Router, method: str, path: str) -> tuple[str, Mapping[str, object]]:
    """Return what a router answers, and what it tells of the request."""
    scope = {"type": "http", "method": method, "path": routed_path(path.encode()), "state": {}}
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    asyncio.run(router(scope, receive, send))
    return sent[-1]["body"].decode(), scope["state"]  # type: ignore[return-value]  # as made above


def test_words_come_before_values_and_values_serve_other_methods(router: Router) -> None:
    assert asked(router, "GET", "/branches")[0] == "list"
    assert asked(router, "POST", "/branches")[0] == "create"
    assert asked(router, "POST", "/branches/merge")[0] == "merge"
    assert asked(router, "DELETE", "/branches/merge")[0] == "delete branch=merge"
    assert asked(router, "DELETE", "/branches/review%2Fjune")[0] == "delete branch=review/june"


def test_route_and_graph_of_a_request_are_told(router: Router) -> None:
    text, told = asked(router, "GET", "/graphs/lab/commits/C%252F1/changes")

    assert text == "changes graph_id=lab commit_id=C%2F1"
    assert told == {"route": "/graphs/{graph_id}/commits/{commit_id}/changes", "graph": "lab"}
    assert asked(router, "GET", "/snapshot")[1] == {"route": "/snapshot", "graph": "atlas"}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/branches", "GET, POST"),
        ("HEAD", "/snapshot", "GET"),
        ("GET", "/branches/merge", "DELETE, POST"),
        ("GET", "/branches/june", "DELETE"),
    ],
)
def test_another_method_is_refused_with_those_there_are(
    router: Router, method: str, path: str, allowed: str
) -> None:
    with pytest.raises(Refusal) as refused:
        asked(router, method, path)

    assert (refused.value.status, refused.value.code) == (405, "method_not_allowed")
    assert refused.value.headers == {"Allow": allowed}


@pytest.mark.parametrize(
    "path", ["/", "", "/graphs", "/snapshot/", "//snapshot", "/branches/a/b", "/Branches"]
)
def test_there_is_no_such_route(router: Router, path: str) -> None:
    with pytest.raises(Refusal) as refused:
        asked(router, "GET", path)

    assert (refused.value.status, refused.value.code) == (404, "not_found")


def test_a_value_has_at_least_one_character(router: Router) -> None:
    with pytest.raises(Refusal) as refused:
        asked(router, "DELETE", "/branches/")

    assert refused.value.status == 404


def test_every_spelling_of_a_path_is_one_path() -> None:
    assert routed_path(b"/graphs/lab-1/commits/A.b_c~d") == "/graphs/lab-1/commits/A.b_c~d"
    assert routed_path(b"/%67raphs/%6Cab%2d1/commits/A%2Eb_c%7ed") == "/graphs/lab-1/commits/A.b_c~d"
    assert routed_path(b"/branches/review%2fjune?x=1") == "/branches/review%2Fjune"
    assert routed_path("/branches/é".encode()) == routed_path(b"/branches/%c3%A9") == "/branches/%C3%A9"
    with pytest.raises(BadRequest, match="UTF-8"):
        routed_path(b"/branches/%ff")
