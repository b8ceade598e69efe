"""Callers that go while their write runs: before its effects begin it leaves nothing, then it is finished."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.core.cancellation import Cancellation
from omnigraph.core.failpoint import failpoint
from omnigraph.operations.turns import Claim
from omnigraph.server.serving import Serving
from omnigraph.server.settings import DEFAULT_GRAPH
from omnigraph.server.threads import Threads
from omnigraph.wire.write_id import WRITE_ID
from tests.support.atlas import MUTATIONS, craft, lines, place_atlas, rows
from tests.support.groups import Waiting
from tests.support.http_app import listening, settings_for
from tests.support.http_server import WAIT_S
from tests.support.seam import internals, patched

BEFORE_EFFECTS, AFTER_SIDECAR = "write.post_gate_pre_sidecar", "write.post_sidecar_pre_commit"
NAME = "name-of-a-write-0123456789"
JSON, NDJSON = "application/json", "application/x-ndjson"


@dataclass(frozen=True)
class Sent:
    """A write as it is sent, and where it stands still before and after its effects begin."""

    path: str
    media_type: str
    body: str
    before: str = BEFORE_EFFECTS
    after: str = AFTER_SIDECAR


def mutation(code: str, name: str = "add_craft") -> str:
    """Return the body of a mutation."""
    return json.dumps({"query": MUTATIONS, "name": name, "params": {"code": code, "name": "n"}})


MUTATION = Sent("/mutate", JSON, mutation("GONE-1"))
SENT = {
    "mutation": MUTATION,
    "load": Sent("/load/ndjson?mode=merge", NDJSON, lines(craft("GONE-1"))),
    "merge": Sent(
        "/branches/merge",
        JSON,
        '{"source": "june"}',
        "branch_merge.post_capture",
        "branch_merge.post_sidecar_pre_commit",
    ),
}


class Asked:
    """Tells when a server has noticed that callers have gone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Watch every cancellation."""
        self._times = threading.Semaphore(0)
        ask = Cancellation.ask

        def asked(cancellation: Cancellation) -> bool:
            is_in_time = ask(cancellation)
            self._times.release()
            return is_in_time

        patched(patch, "omnigraph.core.cancellation.Cancellation.ask", asked)

    def wait(self) -> None:
        """Wait until one more has."""
        assert self._times.acquire(timeout=WAIT_S)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What tells when the server has noticed that a caller has gone."""
    return Asked(monkeypatch)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of this test's own."""
    return place_atlas(tmp_path)


class Gate:
    """Holds every writer that comes, until it is opened."""

    def __init__(self) -> None:
        self.came, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.came.set()
        assert self.opened.wait(WAIT_S)


@contextmanager
def served(graph: Path, *, writers: int = 32) -> Iterator[tuple[Serving, httpx.Client]]:
    """Serve a graph; the server is there to be looked at."""
    serving = replace(Serving.begin(settings_for(graph)), threads=Threads(writers=writers))
    try:
        with listening(serving) as url, httpx.Client(base_url=url, timeout=WAIT_S) as client:
            yield serving, client
    finally:
        serving.close()


@contextmanager
def gone(client: httpx.Client, sent: Sent, name: str = NAME) -> Iterator[socket.socket]:
    """Send a write over a connection that ends with the block, before there is an answer."""
    body = sent.body.encode()
    head = (
        f"POST {sent.path} HTTP/1.1\r\nHost: x\r\nContent-Type: {sent.media_type}\r\n"
        f"{WRITE_ID}: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((client.base_url.host, client.base_url.port or 0), WAIT_S) as connection:
        connection.sendall(head.encode() + body)
        yield connection


def send(client: httpx.Client, sent: Sent, **headers: str) -> httpx.Response:
    """Send a write and wait for its answer."""
    return client.post(sent.path, content=sent.body, headers={"Content-Type": sent.media_type, **headers})


def add(client: httpx.Client, code: str) -> httpx.Response:
    """Add a craft."""
    return send(client, replace(MUTATION, body=mutation(code)))


def prepare(client: httpx.Client, sent: Sent) -> None:
    """Make what a merge merges, or nothing."""
    if sent.path == "/branches/merge":
        assert client.post("/branches", json={"name": "june"}).status_code == 200
        body = {**json.loads(mutation("GONE-1")), "branch": "june"}
        assert client.post("/mutate", json=body).status_code == 200


def state_of(client: httpx.Client, name: str = NAME) -> dict[str, Any]:
    """Return what is known of a named write."""
    found: dict[str, Any] = client.get(f"/writes/{name}").json()
    return found


def codes(graph: Path) -> set[str]:
    """Return the codes of all craft."""
    return {row["code"] for row in rows(graph, "Craft")}


def until(condition: Callable[[], bool]) -> None:
    """Wait until something that other threads do has been done."""
    looks = int(WAIT_S * 100)
    while not condition() and looks:
        threading.Event().wait(0.01)
        looks -= 1
    assert condition()


def wait_for(serving: Serving, count: int) -> None:
    """Wait until so many writes are in the works."""
    until(lambda: sum(share.requests for share in serving.admission._shares.values()) == count)


@pytest.mark.case("surfaces", 334)
def test_a_caller_that_goes_before_its_turn_leaves_nothing(graph: Path) -> None:
    gate = Gate()
    with (
        served(graph, writers=1) as (serving, client),
        failpoint(BEFORE_EFFECTS, call=gate),
        ThreadPoolExecutor(1) as threads,
    ):
        first = threads.submit(add, client, "FIRST-1")
        assert gate.came.wait(WAIT_S)
        with gone(client, MUTATION):
            wait_for(serving, 2)
        wait_for(serving, 1)
        gate.opened.set()
        assert first.result(WAIT_S).status_code == 200
        assert state_of(client)["state"] == "not_begun"

    assert "FIRST-1" in codes(graph)
    assert "GONE-1" not in codes(graph)


@pytest.mark.case("surfaces", 334)
@pytest.mark.parametrize("kind", SENT)
def test_a_caller_that_goes_before_phase_a_leaves_nothing(kind: str, graph: Path, asked: Asked) -> None:
    sent, gate = SENT[kind], Gate()
    with served(graph) as (serving, client):
        prepare(client, sent)
        before = client.get("/commits").json()
        with failpoint(sent.before, call=gate):
            with gone(client, sent):
                assert gate.came.wait(WAIT_S)
            asked.wait()
            gate.opened.set()
            wait_for(serving, 0)

        assert client.get("/commits").json() == before
        assert not list((graph / "__recovery").glob("*"))
        assert state_of(client) == {"write_id": NAME, "state": "not_begun"}
        again = send(client, sent, **{WRITE_ID: NAME})  # nobody stands in the way
        assert again.status_code == 200, again.text
        assert state_of(client)["state"] == "done"
    assert "GONE-1" in codes(graph)


@pytest.mark.case("surfaces", 334)
@pytest.mark.parametrize("kind", SENT)
def test_a_caller_that_goes_after_phase_a_does_not_stop_its_write(
    kind: str, graph: Path, asked: Asked
) -> None:
    sent, gate = SENT[kind], Gate()
    with served(graph) as (serving, client):
        prepare(client, sent)
        with failpoint(sent.after, call=gate):
            with gone(client, sent):
                assert gate.came.wait(WAIT_S)
            asked.wait()
            gate.opened.set()
            wait_for(serving, 0)

        known = state_of(client)
        assert (known["state"], known["status"]) == ("done", 200)
        newest = client.get("/commits").json()["commits"]
        assert known["answer"]["commit"]["graph_commit_id"] in {one["graph_commit_id"] for one in newest}
    assert "GONE-1" in codes(graph)


@pytest.mark.case("surfaces", 830)
@pytest.mark.parametrize("place", [0, 1], ids=["leader", "member"])
def test_a_member_of_a_group_that_has_gone_leaves_alone(place: int, graph: Path, asked: Asked) -> None:
    gate, sent = Gate(), [replace(MUTATION, body=mutation(f"M-{number}")) for number in range(3)]
    with (
        served(graph) as (serving, client),
        failpoint(BEFORE_EFFECTS, call=gate),
        ThreadPoolExecutor(2) as threads,
        ExitStack() as leaving,
    ):
        line, answers = internals(serving.graphs[DEFAULT_GRAPH].graph).turns, []
        with line.turn(Claim("main", None)):
            for number, one in enumerate(sent):
                if number == place:
                    leaving.enter_context(gone(client, one))
                else:
                    answers.append(threads.submit(send, client, one))
                Waiting.until(lambda: len(line._line) == number + 2)  # noqa: B023 - waited for at once
        assert gate.came.wait(WAIT_S)
        leaving.close()
        asked.wait()
        gate.opened.set()

        landed = [answer.result(WAIT_S).json()["commit"] for answer in answers]
        wait_for(serving, 0)
        assert state_of(client)["state"] == "not_begun"
        (commit_id,) = {commit["graph_commit_id"] for commit in landed}
        assert client.get("/commits").json()["commits"][0]["graph_commit_id"] == commit_id
    assert codes(graph) & {"M-0", "M-1", "M-2"} == {"M-0", "M-1", "M-2"} - {f"M-{place}"}


@pytest.mark.case("surfaces", 830)
def test_a_leader_can_still_leave_when_its_group_is_prepared_again(graph: Path, asked: Asked) -> None:
    first, second = Gate(), Gate()
    gates = iter([first, second])

    def stop() -> None:
        next(gates, lambda: None)()

    leader, member = (replace(MUTATION, body=mutation(code)) for code in ("LEAD-1", "MEMBER-1"))
    with served(graph) as (serving, client), failpoint(BEFORE_EFFECTS, call=stop):
        line = internals(serving.graphs[DEFAULT_GRAPH].graph).turns
        with ExitStack() as leading:
            with ExitStack() as following:
                with line.turn(Claim("main", None)):
                    leading.enter_context(gone(client, leader))
                    Waiting.until(lambda: len(line._line) == 2)
                    following.enter_context(gone(client, member, f"{NAME}-2"))
                    Waiting.until(lambda: len(line._line) == 3)
                assert first.came.wait(WAIT_S)
            asked.wait()
            first.opened.set()
            assert second.came.wait(WAIT_S)
        asked.wait()
        second.opened.set()
        wait_for(serving, 0)
        assert state_of(client)["state"] == "not_begun"
    assert not codes(graph) & {"LEAD-1", "MEMBER-1"}
