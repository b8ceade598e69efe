"""Several workers behind one address: one that is killed is replaced, and all of them end together."""

import json
import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.atlas import GRAPH, place_atlas
from tests.support.commands import omnigraph
from tests.support.http_server import TOKENS, RunningServer, running_server
from tests.support.s3 import s3_server, settings_of, stored

pytestmark = pytest.mark.slow
ADD = "query add($title: String) { insert Mission { title: $title } }"
EVERY = "query every() { match { $m: Mission } return { $m.title } }"
MIRA = TOKENS["act-mira"]
TRIES_MAX = 20_000  # a request each: far more than a restart takes


def workers_of(server: RunningServer) -> set[int]:
    """Return the process ids of the workers."""
    listing = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return {int(pid) for pid in listing.read_text().split()}


def asking_until(server: RunningServer, is_so: Callable[[], bool]) -> None:
    """Ask until something is so; every answer is good, on whichever connection it comes."""
    for _ in range(TRIES_MAX):
        if is_so():
            return
        with server.client(MIRA) as client:
            try:
                assert client.get("/snapshot").status_code == 200
            except httpx.TransportError:
                continue  # the one connection that the killed worker held
    raise AssertionError(server.told())


@pytest.mark.case("surfaces", 383)
def test_a_killed_worker_is_replaced_and_all_end_in_order(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    with running_server(graph, "--workers", "2", tokens=TOKENS, log=tmp_path / "log") as server:
        first = workers_of(server)
        assert len(first) == 2
        for pid in first:
            environment = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8")
            assert not any(token in environment for token in TOKENS.values())

        victim = min(first)
        os.kill(victim, signal.SIGKILL)
        asking_until(server, lambda: victim not in workers_of(server) and len(workers_of(server)) == 2)
        replaced = [json.loads(line) for line in server.told().splitlines() if "is replaced" in line]
        assert [line["level"] for line in replaced] == ["warning"]

        with server.client(MIRA) as client, server.client(MIRA) as other:
            before = _snapshots(client)
            client.get("/snapshot").raise_for_status()
            other.get("/snapshot").raise_for_status()
            assert _snapshots(client) == _snapshots(other) == before + 2


def _snapshots(client: httpx.Client) -> float:
    """Return how many snapshots were asked for, as one of the workers tells it."""
    lines = client.get("/metrics").raise_for_status().text.splitlines()
    wanted = 'omnigraph_http_requests_total{graph="default",method="GET",route="/snapshot",status="200"} '
    return next(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))


@pytest.mark.case("surfaces", 383)
def test_workers_write_a_graph_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = place_atlas(tmp_path)
    with s3_server() as endpoint:
        for name, value in settings_of(endpoint).items():
            monkeypatch.setenv(name, value)
        graph = stored(local)
        with running_server(graph, "--workers", "2", log=tmp_path / "log") as server:
            titles = {_added(server, f"before {number}") for number in range(4)}
            victim = min(workers_of(server))
            os.kill(victim, signal.SIGKILL)
            asking_until(server, lambda: victim not in workers_of(server) and len(workers_of(server)) == 2)
            titles |= {_added(server, f"after {number}") for number in range(4)}
            with server.client() as client:
                rows = client.post("/query", json={"query": EVERY}).raise_for_status().json()["rows"]

    assert {row["m.title"] for row in rows} >= titles


def _added(server: RunningServer, title: str) -> str:
    """Add a row on a connection of its own, so that any worker may get it."""
    with server.client() as client:
        client.post("/mutate", json={"query": ADD, "params": {"title": title}}).raise_for_status()
    return title


@pytest.mark.case("surfaces", 383)
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    killed = -signal.SIGKILL
    with running_server(graph, "--workers", "2", log=tmp_path / "log", ends_with=killed) as server:
        handles = [os.pidfd_open(pid) for pid in workers_of(server)]
        server.process.kill()
        for handle in handles:
            _wait_for_end(handle)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/healthz")


def _wait_for_end(handle: int) -> None:
    """Wait until a process that is not a child of this one has ended."""
    ended, _, _ = select.select([handle], [], [], 60)
    os.close(handle)
    assert ended


@pytest.mark.case("surfaces", 383)
def test_a_worker_that_cannot_start_ends_the_server_before_it_serves(tmp_path: Path) -> None:
    place_atlas(tmp_path)

    outcome = omnigraph(
        *("server", "elsewhere.omni", "--unauthenticated", "--workers", "2", "--bind", "127.0.0.1:0"),
        cwd=tmp_path,
    )
    refused = omnigraph("server", GRAPH, "--workers", "0", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "no graph at" in outcome.stderr
    assert refused.code == 2
