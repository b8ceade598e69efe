"""Many clients at once, reading and writing, while workers are killed: nothing acknowledged is lost.

The short run kills a worker each time some writes are acknowledged. The long one is part of `make crash`: it
makes as many writes as HTTP_LOAD_WRITES says, and kills a worker every few seconds.
"""

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import httpx
import pytest

from omnigraph.graph.opening import open as open_graph
from tests.support.atlas import place_atlas
from tests.support.http_server import RunningServer, running_server
from tests.support.seeds import fixed_seed, fresh_seed

CLIENTS = 16
WRITES = 80  # of the short run, of all clients together
WRITES_OF_LONG_RUN = int(os.environ.get("HTTP_LOAD_WRITES", "5000"))
WRITES_BETWEEN_KILLS = 20  # acknowledged ones: a few seconds
SECONDS_BETWEEN_KILLS = (1.0, 5.0)
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


def write_and_read(
    server: RunningServer, ledger: Ledger, number: int, writes: int, got_on: Callable[[int], None]
) -> None:
    """Write rows of one's own, each of them once, and read every one that was acknowledged."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for place in range(writes):
            title = f"client {number} row {place}"
            commit_id = _written(client, ledger, title)
            if commit_id is None:
                continue
            got_on(ledger.add(title, commit_id))
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


@dataclass
class Killer:
    """Kills workers of a server, one at a time."""

    server: RunningServer
    chance: random.Random
    done: threading.Event = field(default_factory=threading.Event)
    wanted: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    count: int = 0

    def heard(self, acknowledged: int) -> None:
        """Take how many writes were acknowledged so far."""
        if acknowledged % WRITES_BETWEEN_KILLS == 0:
            self.wanted.release()

    def end(self) -> None:
        """Kill no more."""
        self.done.set()
        self.wanted.release()

    def by_progress(self) -> None:
        """Kill one each time the clients have got some way."""
        while True:
            self.wanted.acquire()
            if self.done.is_set():
                return
            self.kill()

    def by_time(self) -> None:
        """Kill one every few seconds."""
        while not self.done.wait(self.chance.uniform(*SECONDS_BETWEEN_KILLS)):
            self.kill()

    def kill(self) -> None:
        """Kill one, if any is there."""
        pid = self.server.process.pid
        listing = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        if workers := listing.split():
            os.kill(int(self.chance.choice(workers)), signal.SIGKILL)
            self.count += 1


@pytest.mark.slow
@pytest.mark.case("surfaces", 387)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [1, 4])
def test_nothing_acknowledged_is_lost(workers: int, tmp_path: Path) -> None:
    chance = random.Random(fixed_seed("HTTP_LOAD_SEED"))

    nothing_is_lost(place_atlas(tmp_path), workers, WRITES, chance, Killer.by_progress)


@pytest.mark.crash
@pytest.mark.case("surfaces", 387)
@pytest.mark.parametrize("workers", [1, 4])
def test_nothing_acknowledged_is_lost_in_a_long_run(workers: int, tmp_path: Path) -> None:
    chance = random.Random(fresh_seed("HTTP_LOAD_SEED"))

    nothing_is_lost(place_atlas(tmp_path), workers, WRITES_OF_LONG_RUN, chance, Killer.by_time)


def nothing_is_lost(
    graph: Path, workers: int, writes: int, chance: random.Random, killing: Callable[[Killer], None]
) -> None:
    """Write from many clients while workers are killed, then look for all that they were told."""
    ledger, log, began = Ledger(), graph.parent / "log", monotonic()
    each = -(-writes // CLIENTS)
    with (
        running_server(graph, "--workers", str(workers), log=log) as server,
        ThreadPoolExecutor(CLIENTS + 1) as pool,
    ):
        killer = Killer(server, chance)
        killed = pool.submit(killing, killer)
        clients = [
            pool.submit(write_and_read, server, ledger, number, each, killer.heard)
            for number in range(CLIENTS)
        ]
        try:
            for client in clients:
                client.result()
        finally:
            killer.end()
        killed.result()
    outcomes = f"{len(ledger.acknowledged)} writes acknowledged, {len(ledger.unknown)} unknown"
    who = f"{workers} workers, {CLIENTS} clients"
    sys.stdout.write(f"\n{who}: {outcomes}, {killer.count} kills in {monotonic() - began:.0f} s\n")

    assert ledger.unexpected == []
    assert killer.count > 0
    assert "is replaced" in log.read_text(encoding="utf-8")
    assert len(ledger.acknowledged) + len(ledger.unknown) == CLIENTS * each
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
