"""Many requests at once, writes that fail half-way, and the end of a server."""

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from omnigraph.core.failpoint import failpoint
from omnigraph.server.serving import Serving
from omnigraph.server.settings import DEFAULT_GRAPH, ServerLimits
from omnigraph.server.threads import Threads
from tests.support.atlas import GRAPH, MUTATIONS, place_atlas, rows
from tests.support.http_app import listening, settings_for
from tests.support.http_server import TOKENS, WAIT_S, error_of, running_server

BEFORE_EFFECTS = "write.post_gate_pre_sidecar"
BEFORE_PUBLISH = "write.post_finalize_pre_publisher"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of this test's own."""
    return place_atlas(tmp_path)


@contextmanager
def served(graph: Path, *, writers: int = 32, **limits: int) -> Iterator[tuple[Serving, httpx.Client]]:
    """Serve a graph with limits; the server is there to be looked at."""
    serving = Serving.begin(settings_for(graph, limits=ServerLimits(**limits)))
    serving = replace(serving, threads=Threads(writers=writers))
    try:
        with (
            listening(serving) as url,
            httpx.Client(base_url=url, timeout=WAIT_S, limits=httpx.Limits(max_connections=64)) as client,
        ):
            yield serving, client
    finally:
        serving.close()


class Gate:
    """Holds every writer that comes, until it is opened."""

    def __init__(self) -> None:
        self.came, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.came.set()
        assert self.opened.wait(WAIT_S)


def add(client: httpx.Client, code: str) -> httpx.Response:
    body = {"query": MUTATIONS, "name": "add_craft", "params": {"code": code, "name": "n"}}
    return client.post("/mutate", json=body)


def codes(graph: Path) -> set[str]:
    return {row["code"] for row in rows(graph, "Craft")}


def in_the_works(serving: Serving) -> int:
    return sum(share.requests for share in serving.admission._shares.values())


def wait_for(serving: Serving, count: int) -> None:
    """Wait until so many writes are in the works: each that comes or goes is seen by the next look."""
    moment, deadline = threading.Event(), WAIT_S * 100
    while in_the_works(serving) != count and deadline:
        moment.wait(0.01)
        deadline -= 1
    assert in_the_works(serving) == count


@pytest.mark.case("surfaces", 121)
def test_an_actor_has_only_so_many_writes_in_the_works(graph: Path) -> None:
    gate = Gate()
    with (
        served(graph, actor_inflight=4) as (serving, client),
        failpoint(BEFORE_EFFECTS, call=gate),
        ThreadPoolExecutor(4) as threads,
    ):
        first = [threads.submit(add, client, f"IN-{number}") for number in range(4)]
        wait_for(serving, 4)
        refused = [add(client, f"OUT-{number}") for number in range(3)]
        reads = client.post("/query", json={"query": "query q() { match { $c: Craft } return { $c.code } }"})
        serving.admission.reserve("act-tomas", 1)()
        gate.opened.set()
        answers = [one.result(WAIT_S) for one in first]

    assert {answer.status_code for answer in answers} == {200}
    for answer in refused:
        assert "in-flight cap 4" in error_of(answer, 429, "too_many_requests")
        assert answer.headers["retry-after"] == "60"
    assert reads.status_code == 200
    assert {"IN-0", "IN-1", "IN-2", "IN-3"} <= codes(graph)
    assert not {code for code in codes(graph) if code.startswith("OUT")}


@pytest.mark.case("surfaces", 122)
def test_a_denied_caller_takes_nothing_of_the_shares(graph: Path) -> None:
    settings = settings_for(graph, tokens=TOKENS, limits=ServerLimits(actor_inflight=1, actor_bytes=1))
    serving = Serving.begin(settings)
    try:
        with listening(serving) as url, ThreadPoolExecutor(8) as threads:
            headers = {"Authorization": f"Bearer {TOKENS['act-mira']}"}
            with httpx.Client(base_url=url, headers=headers, timeout=WAIT_S) as client:
                answers = list(threads.map(lambda number: add(client, f"D-{number}"), range(24)))
    finally:
        serving.close()

    assert {answer.status_code for answer in answers} == {403}


@pytest.mark.case("surfaces", 132)
def test_writers_of_one_server_all_succeed_one_after_the_other(graph: Path) -> None:
    texts = [
        f"query q() {{ insert {kind} }}"
        for number in range(4)
        for kind in (f'Craft {{ code: "P-{number}", name: "p" }}', f'Mission {{ title: "P-{number}" }}')
    ]
    with served(graph) as (_, client), ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda text: client.post("/mutate", json={"query": text}), texts))
        chain = client.get("/commits").json()["commits"]

    assert {answer.status_code for answer in answers} == {200}
    ids = [commit["graph_commit_id"] for commit in chain]
    assert [commit["parent_commit_id"] for commit in chain] == [*ids[1:], None]
    assert {answer.json()["commit"]["graph_commit_id"] for answer in answers} <= set(ids)


@pytest.mark.case("engine", 283)
@pytest.mark.case("surfaces", 131)
def test_a_table_that_moved_is_named_with_both_versions(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITE_RETRY", "0")
    overtakes, won = iter([True]), []

    def rename(client: httpx.Client, name: str) -> httpx.Response:
        body = {"query": MUTATIONS, "name": "rename", "params": {"code": "VGR-1", "name": name}}
        return client.post("/mutate", json=body)

    def overtake() -> None:
        if next(overtakes, False):  # the rival passes here, too
            won.append(rename(rival, "first"))

    with served(graph) as (serving, client), served(graph) as (_, rival):
        version = serving.graphs[DEFAULT_GRAPH].graph.snapshot().entry("node:Craft").version
        with failpoint("write.post_stage_pre_gate", call=overtake):
            lost = rename(client, "late")

    assert ([answer.status_code for answer in won], lost.status_code) == ([200], 409)
    assert {row["name"] for row in rows(graph, "Craft") if row["code"] == "VGR-1"} == {"first"}
    assert lost.json() == {
        "error": lost.json()["error"],
        "code": "conflict",
        "manifest_conflict": {"table_key": "node:Craft", "expected": version, "actual": version + 1},
    }
    assert f"node:Craft moved: expected version {version}, found {version + 1}" in lost.json()["error"]


@pytest.mark.case("surfaces", 125)
def test_a_write_behind_one_that_failed_half_way_heals_and_succeeds(graph: Path) -> None:
    with served(graph) as (_, client):
        with failpoint(BEFORE_PUBLISH, "raise:once"):
            failed = add(client, "HALF-1")
        after = add(client, "WHOLE-1")

    assert failed.status_code >= 500
    assert after.status_code == 200, after.text
    assert "WHOLE-1" in codes(graph)


def test_a_write_without_a_body_waits_for_its_thread_like_any_other(graph: Path) -> None:
    gate = Gate()
    with (
        served(graph, writers=1) as (serving, client),
        ThreadPoolExecutor(2) as threads,
    ):
        assert client.post("/branches", json={"name": "june"}).status_code == 200
        with failpoint(BEFORE_EFFECTS, call=gate):
            first = threads.submit(add, client, "FIRST-2")
            assert gate.came.wait(WAIT_S)
            deleted = threads.submit(client.delete, "/branches/june")
            wait_for(serving, 2)
            gate.opened.set()
            assert first.result(WAIT_S).status_code == 200
        assert deleted.result(WAIT_S).status_code == 200
        assert client.get("/branches").json() == {"branches": ["main"]}


@pytest.mark.slow
@pytest.mark.case("surfaces", 124)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_server_that_is_told_to_stop_answers_what_it_has_begun(
    number: signal.Signals, graph: Path, tmp_path: Path
) -> None:
    slow = f"{BEFORE_EFFECTS}=delay:1500"
    with (
        running_server(tmp_path / GRAPH, log=tmp_path / "log", OMNIGRAPH_FAILPOINTS=slow) as server,
        server.client() as client,
        server.client() as other,
        ThreadPoolExecutor(1) as threads,
    ):
        answer = threads.submit(add, client, "LAST-1")
        while "omnigraph_http_requests_in_flight 2" not in (told := other.get("/metrics").text):
            assert "omnigraph_http" in told
            assert not answer.done()
        code = server.stop(number)

        assert answer.result(WAIT_S).status_code == 200
        assert code == 0
    assert "LAST-1" in codes(graph)


@pytest.mark.slow
@pytest.mark.case("surfaces", 344)
def test_a_read_without_end_does_not_keep_a_server_from_ending(graph: Path, tmp_path: Path) -> None:
    slow = "query.post_pin_pre_read=delay:600000"
    with (
        running_server(
            tmp_path / GRAPH, log=tmp_path / "log", OMNIGRAPH_FAILPOINTS=slow, OMNIGRAPH_DRAIN_WAIT_S="1"
        ) as server,
        server.client() as client,
        server.client() as other,
        ThreadPoolExecutor(1) as threads,
    ):
        query = {"query": "query q() { match { $c: Craft } return { $c.code } }"}
        answer = threads.submit(client.post, "/query", json=query)
        while "omnigraph_http_requests_in_flight 2" not in other.get("/metrics").text:
            assert not answer.done()

        assert server.stop() == 0
        assert "are given up" in server.told()
        assert "the server ends" in error_of(answer.result(WAIT_S), 500, "internal")
    assert codes(graph)
