"""What the client of a server sends again, and what it says when no answer comes: on real sockets."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.client.access import QueryCall
from omnigraph.client.http import Http
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.served import ServedAccess
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.access_errors import (
    AuthenticationError,
    CommitOutcomeUnknown,
    RateLimited,
    TransportError,
)
from omnigraph.core.errors import BadRequest, BranchNotFound, KeyConflict, MergeConflicts, RecoveryRequired
from omnigraph.core.source_errors import ParseError
from omnigraph.core.span import Source
from omnigraph.server.serve import bound
from omnigraph.server.settings import Bind
from omnigraph.wire.responses import BranchListOutput
from tests.support.in_process import invoke
from tests.support.scripted import CHANGED, HEAD, LOST, Answer, serving


def mutate(graph: ServedAccess) -> None:
    call = QueryCall(Source("query q() { delete Craft where code = 'x' }"))
    graph.mutate(call, branch="june", actor=None, if_commit=None, message=None, retry=None)


def refusal(status: int, of: str | None = None, **body: object) -> Answer:
    headers = {} if of is None else {"Omnigraph-Error": of}
    return status, {"error": "no", **body}, headers


@pytest.mark.case("surfaces", 407)
def test_what_cannot_have_been_done_is_sent_again_as_late_as_asked() -> None:
    done: Answer = (200, CHANGED, {})
    busy = (429, {"error": "busy", "code": "too_many_requests"}, {"Retry-After": "60"})

    with serving(busy, (503, {"error": "starting"}, {}), done) as script, script.graph() as graph:
        mutate(graph)

    assert script.asked == ["POST /mutate"] * 3
    assert script.waited == [60.0, 0.3]
    assert set(script.tokens) == {"Bearer tok-1"}


@pytest.mark.case("surfaces", 407)
def test_nobody_listening_is_tried_again_and_then_told() -> None:
    waited: list[float] = []
    with serving() as script:
        url = script.url
    http = Http(ServerUrl.parse(url), None, sleep=waited.append)

    with http, pytest.raises(TransportError, match="no server answers at"):
        http.get("/branches", BranchListOutput)

    assert waited == [0.1, 0.3, 0.9]


@pytest.mark.case("surfaces", 407)
@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (refusal(503, recovery_required={"operation_id": "op"}), RecoveryRequired),
        (refusal(401), AuthenticationError),
        (refusal(404, "BranchNotFound"), BranchNotFound),
        (refusal(400, "ParseError"), ParseError),
        (refusal(409, key_conflict={"table_key": "node:Craft", "row_id": "x"}), KeyConflict),
        (
            refusal(
                409,
                merge_conflicts=[
                    {"table_key": "node:Craft", "row_id": "x", "kind": "orphan_edge", "message": "m"}
                ],
            ),
            MergeConflicts,
        ),
        ((429, {"error": "busy"}, {"Retry-After": "3600"}), RateLimited),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_any_other_refusal_is_raised_at_once(answer: Answer, raised: type[Exception]) -> None:
    with serving(answer) as script, script.graph() as graph, pytest.raises(raised) as error:
        mutate(graph)

    assert type(error.value) is raised
    assert (len(script.asked), script.waited) == (1, [])
    if isinstance(error.value, KeyConflict):
        assert (error.value.table_key, error.value.row_id) == ("node:Craft", "x")
    if isinstance(error.value, RateLimited):
        assert error.value.retry_after_s == 3600


@pytest.mark.case("surfaces", 408)
@pytest.mark.parametrize(
    "answer",
    [
        LOST,
        *((status, b"<html>", {}) for status in (200, 408, 500, 502, 503)),
        (200, {}, {}),
        (200, {"affected_nodes": 1}, {}),
        (200, {**CHANGED, "commit": {}}, {}),
        (409, {"error": "no", "merge_conflicts": 5}, {}),
    ],
    ids=repr,
)
def test_a_write_whose_answer_is_lost_is_never_sent_again(answer: Answer) -> None:
    with serving(answer) as script, script.graph() as graph, pytest.raises(CommitOutcomeUnknown) as error:
        mutate(graph)

    assert script.asked == ["POST /mutate"]
    assert (error.value.branch, error.value.head_before) == ("june", HEAD)


@pytest.mark.case("surfaces", 780)
@pytest.mark.parametrize("document", [{}, {"commit": 5}, [], CHANGED | {"actor_id": 5}], ids=repr)
def test_another_document_in_place_of_an_answer_to_a_write_says_nothing_of_it(document: object) -> None:
    writes: list[Callable[[RemoteGraph], object]] = [
        lambda graph: graph.mutate("query q() { delete Craft where code = 'x' }", branch="june"),
        lambda graph: graph.load(b"{}", "append", branch="june"),
        lambda graph: graph.merge("may", into="june"),
        lambda graph: graph.create_branch("july", from_="june"),
        lambda graph: graph.delete_branch("june"),
        lambda graph: graph.apply_schema("node Craft { code: String @key }", branch="june"),
        lambda graph: graph.invoke("q", branch="june"),
    ]
    with serving(*[(200, document, {})] * len(writes)) as script, script.remote() as graph:
        for write in writes:
            with pytest.raises(CommitOutcomeUnknown) as error:
                write(graph)
            assert (error.value.branch, error.value.head_before) == ("june", HEAD)
            assert error.value.write_id is not None

    assert len(script.asked) == len(writes)


@pytest.mark.case("surfaces", 408)
def test_a_read_whose_answer_is_lost_changed_nothing() -> None:
    with (
        serving(LOST) as script,
        script.graph() as graph,
        pytest.raises(TransportError, match="lost on the way"),
    ):
        graph.branches()


@pytest.mark.case("surfaces", 408)
def test_a_redirect_is_not_followed_and_gets_no_token() -> None:
    with serving() as other:
        redirect = (307, b"", {"Location": f"{other.url}/branches"})
        with serving(redirect) as script, script.graph() as graph, pytest.raises(TransportError, match="307"):
            graph.branches()

        assert (other.asked, other.tokens) == ([], [])


READ: dict[str, object] = {
    "rows": [],
    "row_count": 0,
    "query_name": "q",
    "target": {"branch": "main", "snapshot": None},
    "columns": ["a"],
}


@pytest.mark.case("surfaces", 411)
@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, {}),
        (200, READ | {"rows": 5}, {}),
        (200, READ | {"rows": [5]}, {}),
        (200, READ | {"columns": 5}, {}),
        (200, READ | {"columns": [1, None]}, {}),
        (200, READ | {"target": "x"}, {}),
        (200, READ | {"target": {"branch": None, "snapshot": None}}, {}),
        (200, READ | {"query_name": 5}, {}),
        refusal(409, merge_conflicts=5),
        refusal(409, merge_conflicts=[{"table_key": "a", "kind": "zz", "message": "m"}]),
        refusal(400, cleared=[{"bad": 1}]),
        refusal(412, precondition_failure="abc"),
    ],
)
def test_a_document_that_is_none_of_this_api_is_one_typed_error(answer: Answer) -> None:
    call = QueryCall(Source("query q() { match { $c: Craft } return { $c.code } }"))
    with (
        serving(answer) as script,
        script.graph() as graph,
        pytest.raises(TransportError, match="the server's answer is not one of this API"),
    ):
        graph.query(call, branch=None, snapshot=None)


@pytest.mark.case("surfaces", 411)
@pytest.mark.parametrize("command", [["branch", "list"], ["snapshot"], ["schema", "show"]], ids=" ".join)
def test_what_cannot_be_printed_is_no_traceback(command: list[str], tmp_path: Path) -> None:
    for document in ({}, {"branches": 5, "tables": 5, "schema_source": 5}):
        with serving((200, document, {})) as script:
            outcome = invoke(*command, "--store", script.url, cwd=tmp_path)

        assert (outcome.code, outcome.stdout) == (1, "")
        assert "the server's answer is not one of this API" in outcome.stderr


@pytest.mark.case("surfaces", 411)
def test_the_text_of_a_server_does_not_steer_the_terminal(tmp_path: Path) -> None:
    shown = {"branch": "a\x1b[31m", "manifest_version": 1, "graph_commit_id": HEAD, "tables": []}
    with serving((200, shown | {"internal_schema_version": 1}, {})) as script:
        outcome = invoke("snapshot", "--store", script.url, cwd=tmp_path)

    assert outcome.stdout.startswith("branch a\\x1b[31m at version 1")


@pytest.mark.case("surfaces", 412)
def test_a_host_that_no_machine_can_have_is_refused() -> None:
    with Http(ServerUrl.parse(f"http://{'a' * 300}/x"), None) as http, pytest.raises(BadRequest) as error:
        http.get("/branches", BranchListOutput)

    assert "is not the address of a server" in str(error.value)
    with pytest.raises(BadRequest, match="port 0 is none"):
        ServerUrl.parse("http://127.0.0.1:0/x")
    with pytest.raises(BadRequest, match="cannot listen on aaa"), bound(Bind("a" * 300, 0)):
        pass
