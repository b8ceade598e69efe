"""Many clients at once, reading and writing, while workers are killed: nothing acknowledged is lost."""

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from omnigraph.graph.opening import open as open_graph
from tests.support.atlas import place_atlas
from tests.support.http_server import RunningServer, running_server
from tests.support.seeds import fixed_seed

pytestmark = pytest.mark.slow

CLIENTS = 16
WRITES = int(os.environ.get("HTTP_LOAD_WRITES", "5"))  # of each client
WRITES_BETWEEN_KILLS = 20  # acknowledged ones: a few seconds
TRIES_MAX = 500
ADD = "query add($title: String) { insert Mission { title: $title } }"
COUNT = "query n($title: String) { match { $m: Mission { title: $title } } return { $m.title } }"


@dataclass
class Ledger:
    """What clients were told."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    acknowledged: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    unexpected: list[str] = field(default_factory=list)

    def add(self, title: str, commit_id: str) -> int:
        with self.lock:
            self.acknowledged[title] = commit_id
            return len(self.acknowledged)


def write_and_read(server: RunningServer, ledger: Ledger, number: int, kills: threading.Semaphore) -> None:
    """Write rows of one's own, each of them once, and read every one that was acknowledged."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for place in range(WRITES):
            title = f"client {number} row {place}"
            commit_id = _written(client, ledger, title)
            if commit_id is None:
                continue
            if ledger.add(title, commit_id) % WRITES_BETWEEN_KILLS == 0:
                kills.release()
            _read(client, ledger, title)


def _written(client: httpx.Client, ledger: Ledger, title: str) -> str | None:
    """Write one row; a refusal that says to try again is tried again, a lost answer is an unknown outcome."""
    body = {"query": ADD, "params": {"title": title}}
    for _ in range(TRIES_MAX):
        try:
            answer = client.post("/mutate", json=body)
        except httpx.ConnectError:
            continue  # nothing was sent
        except httpx.TransportError:
            ledger.unknown.add(title)
            return None
        if answer.status_code == 200:
            return str(answer.json()["commit"]["graph_commit_id"])
        if answer.status_code not in {409, 429, 503}:
            ledger.unexpected.append(f"{answer.status_code} {answer.text}")
            return None
    ledger.unexpected.append(f"{title} was refused {TRIES_MAX} times")
    return None


def _read(client: httpx.Client, ledger: Ledger, title: str) -> None:
    """Read a row that was acknowledged, from whichever worker answers."""
    for _ in range(TRIES_MAX):
        try:
            answer = client.post("/query", json={"query": COUNT, "params": {"title": title}})
        except httpx.TransportError:
            continue  # a read may be repeated
        if answer.status_code != 200 or answer.json()["row_count"] != 1:
            ledger.unexpected.append(f"read of {title}: {answer.status_code} {answer.text}")
        return


def kill_now_and_then(server: RunningServer, kills: threading.Semaphore, done: threading.Event) -> int:
    """Kill one of the workers each time the clients have got some way; return how often."""
    chance, count = random.Random(fixed_seed("HTTP_LOAD_SEED")), 0
    while True:
        kills.acquire()
        if done.is_set():
            return count
        listing = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
        workers = [int(pid) for pid in listing.split()]
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
            count += 1


@pytest.mark.case("surfaces", 387)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [1, 4])
def test_nothing_acknowledged_is_lost(workers: int, tmp_path: Path) -> None:
    graph = place_atlas(tmp_path)
    ledger, kills, done = Ledger(), threading.Semaphore(0), threading.Event()
    with (
        running_server(graph, "--workers", str(workers), log=tmp_path / "log") as server,
        ThreadPoolExecutor(CLIENTS + 1) as pool,
    ):
        killer = pool.submit(kill_now_and_then, server, kills, done)
        clients = [pool.submit(write_and_read, server, ledger, number, kills) for number in range(CLIENTS)]
        for client in clients:
            client.result()
        done.set()
        kills.release()
        killed = killer.result()

    assert ledger.unexpected == []
    assert killed > 0
    assert "is replaced" in (tmp_path / "log").read_text(encoding="utf-8")
    assert len(ledger.acknowledged) + len(ledger.unknown) == CLIENTS * WRITES
    with open_graph(graph) as opened:
        titles = {
            row["m.title"]
            for row in opened.query("query all() { match { $m: Mission } return { $m.title } }")
        }
        commits = {commit.graph_commit_id for commit in opened.commits()}
        report = opened.verify(deep=True)
    assert set(ledger.acknowledged) <= titles
    assert titles - {"Grand Tour", "Jupiter"} <= {*ledger.acknowledged, *ledger.unknown}
    assert set(ledger.acknowledged.values()) <= commits
    assert report.is_whole, report.findings
