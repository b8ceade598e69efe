"""Processes on hosts of their own that write one graph on an object store, killed and stopped at random.

C1  A write that was acknowledged is there: on its branch while that lives, on main after a merge that was
    begun later, and on main if its branch was deleted by a merge.
C2  A write that was refused without anything left to recover is nowhere. Any other one is there as a whole or
    not at all.
C3  Every branch is one chain that holds every acknowledged commit; its tables stand where its newest commit
    says; no sidecar is left.
C4  Nobody is ever told that a table needs a repair, or that something is damaged.

A write puts a person and an edge into two tables, a firm into a third, or takes a person with its edge away.
Every host works by itself and says what it begins and how that ends, with the time of one clock.
"""

import os
import random
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import TYPE_CHECKING, Literal

import omnigraph
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.errors import ConflictError, OmnigraphError, RecoveryRequired, WriterEnded
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
from tests.support.forked import server
from tests.support.seam import internals

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph

SCHEMA = "node Person { name: String @key }\nnode Firm { name: String @key }\nedge Knows: Person -> Person\n"
MAIN = "main"
LIFETIME_S = 2
HOSTS = 4
BRANCHES_MAX = 5
STOPPED_MAX = 2  # at a time: somebody must be there to find the others dead
MERGED, DROPPED = "merged", "dropped"  # how a branch ends, if it does, by the beginning of its name
HARMFUL = {"DriftNeedsRepair", "InvariantViolation", "GraphDamaged", "SidecarCorrupt", "SidecarTooNew"}
What = Literal["person", "firm", "delete", "create", "merge", "drop", "index", "open"]


@dataclass(slots=True)
class Attempt:
    """Something that a host began, and what became of it; times are of the machine's one clock."""

    what: What
    branch: str
    name: str
    began: float
    ended: float | None = None
    commit_id: str | None = None
    error: str | None = None
    text: str = ""
    is_clean: bool = False  # refused, with nothing left to recover
    has_deleted: bool = False

    @property
    def is_acknowledged(self) -> bool:
        return self.ended is not None and self.error is None


def person(name: str) -> str:
    return f'insert Person {{ name: "{name}" }} insert Knows {{ from: "{name}", to: "hub" }}'


def firm(name: str) -> str:
    return f'insert Firm {{ name: "{name}" }}'


# In the process of a host


def work(settings: Mapping[str, str], uri: str, host: str, seed: int, pipe: Connection) -> None:
    """Write until told to end; a host that was taken for dead opens the graph again."""
    os.environ.update(settings)
    socket.gethostname = lambda: host
    worker = _Worker(uri, host, random.Random(seed), pipe)
    while not pipe.poll():
        worker.step()
    worker.close()
    pipe.send(None)


class _Worker:
    def __init__(self, uri: str, host: str, drawn: random.Random, pipe: Connection) -> None:
        self.uri, self.host, self.random, self.pipe = uri, host, drawn, pipe
        self.graph: Graph | None = None
        self.number = 0
        self.own: list[str] = []  # people that this process has put on main

    def close(self) -> None:
        if self.graph is not None:
            with suppress(OmnigraphError):
                self.graph.close()
        self.graph = None

    def step(self) -> None:
        if self.graph is None:
            self.attempt("open", MAIN, "")
            return
        try:
            branches = self.graph.branches()
        except OmnigraphError:
            return
        self.number += 1
        name = f"{self.host}-{self.number}"
        branch = MAIN if self.random.random() < 0.6 else self.random.choice(branches)
        others = [found for found in branches if found != MAIN]
        drawn = self.random.random()
        if drawn < 0.08 and len(others) < BRANCHES_MAX:
            kind = MERGED if self.random.random() < 0.7 else DROPPED
            self.attempt("create", MAIN, f"{kind}-{name}")
        elif drawn < 0.22 and (merged := [found for found in others if found.startswith(MERGED)]):
            self.attempt("merge", self.random.choice(merged), "")
        elif drawn < 0.26 and (dropped := [found for found in others if found.startswith(DROPPED)]):
            self.attempt("drop", self.random.choice(dropped), "")
        elif drawn < 0.29:
            self.attempt("index", branch, "")
        elif drawn < 0.40 and self.own:
            self.attempt("delete", MAIN, self.own.pop(self.random.randrange(len(self.own))))
        elif drawn < 0.60:
            self.attempt("firm", branch, name)
        else:
            self.attempt("person", branch, name)
            if branch == MAIN:
                self.own.append(name)

    def attempt(self, what: What, branch: str, name: str) -> None:
        attempt = Attempt(what, branch, name, monotonic())
        self.pipe.send(attempt)
        try:
            self.carry_out(attempt)
        except OmnigraphError as error:
            attempt.error, attempt.text = type(error).__name__, str(error)[:300]
            if isinstance(error, ConflictError) and not isinstance(error, WriterEnded):
                attempt.is_clean = error.recovery_operation_id is None
            if isinstance(error, WriterEnded | RecoveryRequired):
                self.close()  # what is left may need an open
        attempt.ended = monotonic()
        self.pipe.send(attempt)

    def carry_out(self, attempt: Attempt) -> None:
        if attempt.what == "open":
            self.graph = omnigraph.open(self.uri)
            return
        assert self.graph is not None
        graph, branch = self.graph, None if attempt.branch == MAIN else attempt.branch
        commit = None
        match attempt.what:
            case "person":
                commit = graph.mutate(f"query q() {{ {person(attempt.name)} }}", branch=branch).commit
            case "firm":
                commit = graph.mutate(f"query q() {{ {firm(attempt.name)} }}", branch=branch).commit
            case "delete":
                query = f'query q() {{ delete Person where name = "{attempt.name}" }}'
                commit = graph.mutate(query).commit
            case "create":
                graph.create_branch(attempt.name)
            case "merge":
                merged = graph.merge(attempt.branch, MAIN, delete_branch=self.random.random() < 0.5)
                commit, attempt.has_deleted = merged.commit, merged.branch_deleted
            case "drop":
                graph.delete_branch(attempt.branch)
            case "index":
                graph.ensure_indices(branch=branch)
        attempt.commit_id = None if commit is None else commit.graph_commit_id


# In the process of the test


@dataclass(slots=True)
class Tally:
    """What happened in a run."""

    kills: int = 0
    stops: int = 0
    wakes: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    cut_short: int = 0
    recoveries: Counter[str] = field(default_factory=Counter)
    branches_deleted_by_merges: int = 0


class _Host:
    """One process, and everything that it has said."""

    def __init__(self, settings: Mapping[str, str], uri: str, name: str, seed: int) -> None:
        self.pipe, other = server().Pipe()
        self.process = server().Process(
            target=work, args=(dict(settings), uri, name, seed, other), daemon=True
        )
        self.process.start()
        other.close()
        self.attempts: list[Attempt] = []
        self.wakes_at: float | None = None
        self.is_over = False

    def listen(self) -> None:
        """Take down what it has said; what was said before it was killed is still there."""
        try:
            while not self.is_over and self.pipe.poll():
                said = self.pipe.recv()
                if said is None:
                    self.is_over = True
                elif said.ended is None:
                    self.attempts.append(said)
                else:
                    self.attempts[-1] = said
        except (EOFError, OSError):
            self.is_over = True

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.listen()
        self.pipe.close()
        self.is_over = True


class Crowd:
    """One graph, its hosts, and what is done to them."""

    def __init__(self, root: GraphRoot, settings: Mapping[str, str], seed: int) -> None:
        """Make the graph; the hosts reach it by the settings given."""
        self.root, self.seed = root, seed
        self.settings = {**settings, "OMNIGRAPH_WRITER_LIFETIME": str(LIFETIME_S)}
        self.random = random.Random(seed)
        self.tally = Tally()
        with omnigraph.init(root.uri, SCHEMA) as graph:
            graph.load(b'{"type": "Person", "data": {"name": "hub"}}\n', "append", index=False)
        self.started = 0
        self.past: list[_Host] = []
        self.hosts = [self._start() for _ in range(HOSTS)]

    def run(self, seconds: float, harms_each: int) -> None:
        """Let everybody work for a while, and for longer until there were so many kills and stops."""
        begun = monotonic()
        pace_s = min(seconds / (2 * harms_each), 2.0)
        next_harm = begun + pace_s
        while monotonic() - begun < seconds or min(self.tally.kills, self.tally.wakes) < harms_each:
            self._listen(0.05)
            if monotonic() >= next_harm:
                self._harm()
                next_harm = monotonic() + self.random.uniform(0.5, 1.5) * pace_s
        self._end()

    def _start(self) -> _Host:
        self.started += 1
        return _Host(self.settings, self.root.uri, f"h{self.started}", self.seed + self.started)

    def _listen(self, seconds: float) -> None:
        wait([host.pipe for host in self.hosts if not host.is_over], timeout=seconds)
        now = monotonic()
        for host in self.hosts:
            host.listen()
            if host.wakes_at is not None and now >= host.wakes_at:
                host.signal(signal.SIGCONT)
                host.wakes_at = None
                self.tally.wakes += 1
        for place, host in enumerate(self.hosts):
            assert not host.is_over, f"host {place} died by itself"

    def _harm(self) -> None:
        awake = [place for place, host in enumerate(self.hosts) if host.wakes_at is None]
        place = self.random.choice(awake)
        if self.tally.kills <= self.tally.stops or HOSTS - len(awake) >= STOPPED_MAX:
            if self.random.random() < 0.2 and len(awake) < HOSTS:  # sometimes one that sleeps
                place = self.random.choice([each for each in range(HOSTS) if each not in awake])
            self.hosts[place].kill()
            self.past.append(self.hosts[place])
            self.hosts[place] = self._start()
            self.tally.kills += 1
        else:
            self.hosts[place].signal(signal.SIGSTOP)
            self.hosts[place].wakes_at = monotonic() + LIFETIME_S * self.random.uniform(1.1, 2.5)
            self.tally.stops += 1

    def _end(self) -> None:
        for host in self.hosts:
            if host.wakes_at is not None:
                host.signal(signal.SIGCONT)
            host.pipe.send(None)
        deadline = monotonic() + 120
        while not all(host.is_over for host in self.hosts) and monotonic() < deadline:
            wait([host.pipe for host in self.hosts if not host.is_over], timeout=1)
            for host in self.hosts:
                host.listen()
        assert all(host.is_over for host in self.hosts), "a host does not come to its end"
        for host in self.hosts:
            host.kill()
        self.past += self.hosts
        self.hosts = []

    # What is there

    def check(self) -> None:
        """Look at everything, as the next writer (C1 to C4)."""
        attempts = [attempt for host in self.past for attempt in host.attempts]
        self._count(attempts)
        harmful = [attempt for attempt in attempts if attempt.error in HARMFUL]
        assert harmful == [], harmful  # C4
        with omnigraph.open(self.root.uri) as graph:
            branches = graph.branches()
            for branch in branches:
                graph.mutate(
                    f"query q() {{ {person(f'last-{branch}')} {firm(f'last-{branch}')} }}", branch=branch
                )
            found = {branch: _names(graph, branch) for branch in branches}
            for branch in branches:
                self._check_branch(graph, branch, found[branch], attempts)
            self._check_merges(found, attempts)
            self.tally.recoveries = Counter(record.recovery_kind.value for record in graph.recoveries())
        assert open_adapter(self.root, Durability.FULL).list_dir(RECOVERY_DIR) == []  # C3

    def _count(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            if attempt.is_acknowledged:
                self.tally.acknowledged[attempt.what] += 1
            elif attempt.error is not None:
                self.tally.errors[attempt.error] += 1
            else:
                self.tally.cut_short += 1

    def _check_branch(self, graph: "Graph", branch: str, found: set[str], attempts: list[Attempt]) -> None:
        deletes = [attempt for attempt in attempts if attempt.what == "delete" and not attempt.is_clean]
        gone = {attempt.name for attempt in deletes}
        for attempt in inserts(attempts):
            if attempt.branch == branch and attempt.is_acknowledged and attempt.name not in gone:
                assert attempt.name in found, f"lost on {branch}: {attempt}"  # C1
            if attempt.is_clean:
                assert attempt.name not in found, f"refused, and there on {branch}: {attempt}"  # C2
        if branch == MAIN:
            undone = [each for each in deletes if each.is_acknowledged and each.name in found]
            assert undone == [], f"deleted, and there: {undone}"
        commits = graph.commits(branch=branch)
        wanted = {
            attempt.commit_id
            for attempt in attempts
            if attempt.commit_id is not None
            and branch == (MAIN if attempt.what == "merge" else attempt.branch)
        }
        assert wanted <= {commit.graph_commit_id for commit in commits}, f"commits lost on {branch}"
        for commit, parent in pairwise(commits):
            assert commit.parent_commit_id == parent.graph_commit_id, f"{branch} is no chain"
        parts = internals(graph).parts
        for entry in graph.snapshot(branch).entries.values():
            if branch == MAIN or entry.pin.branch == branch:
                newest = parts.store.latest_version(parts.address(entry))
                assert newest == entry.version, f"{entry.table_key} of {branch} is ahead of its pin"

    def _check_merges(self, found: Mapping[str, set[str]], attempts: list[Attempt]) -> None:
        merges = [attempt for attempt in attempts if attempt.what == "merge" and attempt.is_acknowledged]
        made = {attempt.name for attempt in attempts if attempt.what == "create" and attempt.is_acknowledged}
        over = {branch for branch in made if branch.startswith(MERGED)} - found.keys()
        self.tally.branches_deleted_by_merges = len(over)
        for attempt in inserts(attempts):
            if not attempt.is_acknowledged or attempt.branch == MAIN:
                continue
            assert attempt.ended is not None
            later = any(m.branch == attempt.branch and m.began > attempt.ended for m in merges)
            if later or attempt.branch in over:
                assert attempt.name in found[MAIN], f"not merged: {attempt}"  # C1


def inserts(attempts: list[Attempt]) -> Iterator[Attempt]:
    return (attempt for attempt in attempts if attempt.what in {"person", "firm"})


def _names(graph: "Graph", branch: str) -> set[str]:
    people = [str(name) for name in graph.table("Person", branch=branch)["name"].to_pylist()]
    known = [str(name) for name in graph.table("Knows", branch=branch)["src"].to_pylist()]
    firms = [str(name) for name in graph.table("Firm", branch=branch)["name"].to_pylist()]
    assert sorted(name for name in people if name != "hub") == sorted(known), f"half of a write on {branch}"
    assert len(set(firms)) == len(firms)
    return {*people, *firms}


def timed_run(crowd: Crowd, seconds: float, harms_each: int) -> float:
    """Run and check, tell what happened, and return how many seconds the run took."""
    begun = monotonic()
    crowd.run(seconds, harms_each)
    took_s = monotonic() - begun
    crowd.check()
    sys.stdout.write(f"crowd: {crowd.tally} in {took_s:.0f} s\n")
    sys.stdout.flush()
    return took_s
