"""Writes whose answers get lost: sent once, reported as unknown, and asked for by their names."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response

import omnigraph
from omnigraph.client.http import Http, HttpPatience
from omnigraph.client.remote.graph import RemoteGraph
from omnigraph.client.remote.outcome import WriteFate
from omnigraph.config.server_url import ServerUrl
from omnigraph.core.errors import BadRequest, KeyConflict
from omnigraph.core.failpoint import failpoint
from omnigraph.server.sent_writes import SentWrites, WriteName, WriteState
from omnigraph.server.serving import Serving
from tests.support.atlas import GRAPH, craft, lines, place_atlas
from tests.support.gates import policy_of
from tests.support.http_app import listening, settings_for
from tests.support.http_server import WAIT_S
from tests.support.proxy import StoreProxy, store_proxy

ADD = "query add($code: String) { insert Craft { code: $code, name: $code } }"
NAME = "a-name-of-a-write-01"
TOKEN = "ann-token-0123456789"


@contextmanager
def served(graph: Path, **settings: Any) -> Iterator[str]:  # noqa: ANN401 - what the settings take
    serving = Serving.begin(settings_for(graph, **settings))
    try:
        with listening(serving) as url:
            yield url
    finally:
        serving.close()


@pytest.fixture(scope="module")
def graph_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lost")
    place_atlas(folder)
    return folder / GRAPH


@pytest.fixture(scope="module")
def url(graph_place: Path) -> Iterator[str]:
    with served(graph_place) as url:
        yield url


@pytest.fixture
def losing(url: str) -> Iterator[StoreProxy]:
    """A proxy that drops the answers to writes, after the server has carried them out."""
    with store_proxy(url) as proxy:
        proxy.drops = lambda request: request.kind == "POST"
        yield proxy


@pytest.mark.case("surfaces", 193)
@pytest.mark.case("surfaces", 615)
def test_a_write_that_landed_is_sent_once_and_found_by_its_name(losing: StoreProxy) -> None:
    with omnigraph.connect(losing.endpoint) as graph:
        assert isinstance(graph, RemoteGraph)
        before = graph.commits()[0].graph_commit_id
        losing.taken()

        with pytest.raises(omnigraph.CommitOutcomeUnknown, match="compare heads") as lost:
            graph.mutate(ADD, params={"code": "LOST-1"})

        assert [request.kind for request in losing.taken()].count("POST") == 1
        assert (lost.value.branch, lost.value.head_before) == ("main", before)
        outcome = graph.outcome_of(lost.value)
        newest = graph.commits()[0]
        assert (outcome.fate, outcome.commit, outcome.error) == (WriteFate.LANDED, newest, None)
        assert outcome.answer is not None
        assert outcome.answer["affected_nodes"] == 1
        assert newest.parent_commit_id == before


@pytest.mark.case("surfaces", 615)
def test_a_write_that_was_refused_did_not_land(losing: StoreProxy) -> None:
    with omnigraph.connect(losing.endpoint) as graph:
        assert isinstance(graph, RemoteGraph)
        with pytest.raises(omnigraph.CommitOutcomeUnknown) as lost:
            graph.load(lines(craft("VGR-1")).encode(), mode="append")

        outcome = graph.outcome_of(lost.value)

        assert outcome.fate is WriteFate.NOT_LANDED
        assert isinstance(outcome.error, KeyConflict)
        assert outcome.error.row_id == "VGR-1"


@pytest.mark.case("surfaces", 615)
def test_a_server_that_has_forgotten_leaves_it_unknown_and_names_the_commits_since(
    losing: StoreProxy, graph_place: Path
) -> None:
    with omnigraph.connect(losing.endpoint) as graph:
        with pytest.raises(omnigraph.CommitOutcomeUnknown) as lost:
            graph.mutate(ADD, params={"code": "LOST-2"})
        newest = graph.commits()[0]

    with (
        served(graph_place) as other,
        omnigraph.connect(other) as graph,
    ):  # another process, as after a restart
        assert isinstance(graph, RemoteGraph)
        outcome = graph.outcome_of(lost.value)

    assert (outcome.fate, outcome.since) == (WriteFate.UNKNOWN, (newest,))


@pytest.mark.case("surfaces", 808)
def test_who_may_change_and_not_read_learns_what_became_of_a_write(graph_place: Path) -> None:
    guarded = {"tokens": {"ann": TOKEN}, "policy": policy_of("change")}
    with served(graph_place, **guarded) as url, store_proxy(url) as losing:
        losing.drops = lambda request: request.kind == "POST"
        with omnigraph.connect(losing.endpoint, token=TOKEN) as graph:
            assert isinstance(graph, RemoteGraph)
            with pytest.raises(omnigraph.CommitOutcomeUnknown) as lost:
                graph.mutate(ADD, params={"code": "LOST-3"})
            assert lost.value.head_before is None
            assert graph.outcome_of(lost.value).fate is WriteFate.LANDED
    with served(graph_place, **guarded) as other, omnigraph.connect(other, token=TOKEN) as graph:
        assert isinstance(graph, RemoteGraph)
        forgotten = graph.outcome_of(lost.value)
        assert (forgotten.fate, forgotten.since) == (WriteFate.UNKNOWN, None)


@pytest.mark.case("surfaces", 615)
def test_a_write_that_is_under_way_is_waited_for(url: str) -> None:
    release, waited = threading.Event(), list[float]()

    def let_go(seconds: float) -> None:
        waited.append(seconds)
        release.set()
        threading.Event().wait(seconds)  # as the client does, which asks again

    def hold() -> None:
        release.wait(WAIT_S)

    patience = HttpPatience(timeout_s=0.3, retries=0)
    http = Http(ServerUrl.parse(url), None, patience=patience, sleep=let_go)
    with (
        RemoteGraph(http) as graph,
        failpoint("write.post_sidecar_pre_commit", call=hold),
    ):
        with pytest.raises(omnigraph.CommitOutcomeUnknown) as lost:
            graph.mutate(ADD, params={"code": "SLOW-1"})
        outcome = graph.outcome_of(lost.value)

    assert waited[0] == 0.1
    assert outcome.fate is WriteFate.LANDED


def test_only_an_error_of_a_lost_answer_can_be_asked_about(url: str) -> None:
    other: Any = KeyConflict(table_key="node:Craft", row_id="x")
    with (
        RemoteGraph(Http(ServerUrl.parse(url), None)) as graph,
        pytest.raises(BadRequest, match="takes a CommitOutcomeUnknown"),
    ):
        graph.outcome_of(other)


@pytest.mark.case("surfaces", 616)
def test_a_name_is_of_one_write_and_is_checked(url: str) -> None:
    body = {"query": ADD, "params": {"code": "ONCE-1"}}
    with httpx.Client(base_url=url, timeout=WAIT_S) as client:
        first = client.post("/mutate", json=body, headers={"Omnigraph-Write-Id": NAME})
        again = client.post("/mutate", json=body, headers={"Omnigraph-Write-Id": NAME})
        wrong = client.post("/mutate", json=body, headers={"Omnigraph-Write-Id": "short"})
        asked = client.get(f"/writes/{NAME}")
        unknown = client.get("/writes/another-name-of-a-write")

    assert (first.status_code, again.status_code, wrong.status_code) == (200, 400, 400)
    assert "was sent before" in again.json()["error"]
    assert asked.json() == {"write_id": NAME, "state": "done", "status": 200, "answer": first.json()}
    assert (asked.headers["cache-control"], unknown.status_code) == ("no-store", 404)


@pytest.mark.case("surfaces", 616)
def test_a_write_is_its_actors_and_what_is_kept_is_bounded() -> None:
    writes = SentWrites(kept_max=2)
    mine = [WriteName("act-mira", "g", f"{NAME}{number}") for number in range(3)]
    ended = writes.begin(mine[0])
    with pytest.raises(BadRequest, match="was sent before"):
        writes.begin(mine[0])

    assert writes.find(WriteName("act-tomas", "g", mine[0].write_id)) is None
    assert writes.find(WriteName("act-mira", "h", mine[0].write_id)) is None
    ended()  # without an answer: its caller had gone before it began
    found = writes.find(mine[0])
    assert found is not None
    assert found.state is WriteState.NOT_BEGUN
    writes.begin(mine[0])
    writes.answered(mine[0], Response(b"x" * 100_000, 200))
    found = writes.find(mine[0])
    assert found is not None
    assert (found.state, found.status, found.content) == (WriteState.DONE, 200, None)
    for name in mine[1:]:
        writes.begin(name)
    assert writes.find(mine[0]) is None
