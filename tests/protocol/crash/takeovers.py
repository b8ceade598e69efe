"""Hosts that are stopped and woken at random instants while they take one graph from each other.

T1  A write that was acknowledged is there, on its branch, and its commit is in the history.
T2  A write that was not is there as a whole or not at all; what it was once found to be it stays.
T3  Every branch is one chain; its tables stand where its newest commit says; no sidecar is left.
T4  Nobody is ever told that a table needs a repair.

Every write puts a person and an edge into two tables, or takes both away.
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event
from time import monotonic

import omnigraph
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.graph.graph import Graph
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.lease import WRITER_LEASE, LeaseRecord
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.uri import GraphRoot
from tests.support.hosts import LEASE_S, Answer, Host
from tests.support.seam import internals

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person\n"
MAIN = "main"
BRANCHES_MAX = 4
WRITES_BEFORE_MAX = 2  # of a holder, before the one that it is stopped in
FIRST_GUESS_S = 0.5  # how long a write takes, until some were seen
STOP_WITHIN = 1.3  # times as long as a write takes: sometimes the host has answered before
WAKE_WITHIN = 2.0  # times as long, after the lease has gone: a recovery takes about as long as a write
SECOND_STOPS = 0.3  # of the successors are stopped as well, while they recover
EARLY_WAKES = 0.1  # of the holders wake before their lease has run out
TRIES_MAX = 3  # of a write that somebody else's late publish comes in the way of
UNHARMED = {"WriterLeaseHeld", "WriterEnded", "RecoveryRequired", "ExpectedVersionMismatch", "ReadSetChanged"}


@dataclass(slots=True)
class Write:
    """One write, and what is known of it."""

    branch: str
    name: str
    is_delete: bool
    commit_id: str | None = None


@dataclass(slots=True)
class Tally:
    """What happened in a run."""

    takeovers: int = 0
    stops: int = 0
    early: int = 0
    acknowledged: int = 0
    landed: int = 0
    vanished: int = 0
    first_touches: int = 0
    index_builds: int = 0
    recoveries: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


class Run:
    """One graph and the hosts that write it by turns."""

    def __init__(self, root: GraphRoot, hosts: tuple[Host, ...], seed: int) -> None:
        """Make the graph; the first host becomes its writer."""
        self.root, self.hosts = root, hosts
        self.random = random.Random(seed)
        self.tally = Tally()
        self.adapter = open_adapter(root, Durability.FULL)
        self.present: dict[str, set[str]] = {MAIN: set()}
        self.commit_ids: dict[str, list[str]] = {MAIN: []}
        self.doubtful: list[Write] = []
        self.in_flight: set[str] = set()  # names that a stopped host may yet write or take away
        self.number = 0
        self.write_s = FIRST_GUESS_S
        with omnigraph.init(root.uri, SCHEMA) as graph:
            graph.load(b'{"type": "Person", "data": {"name": "hub"}}\n', "append", index=False)
        self.holder = hosts[0]
        assert "writer" in self.holder.ask("open", uri=root.uri, writers="one")

    def takeovers(self, count: int) -> None:
        """Go on until the graph was taken over so many times from a holder that had not let go."""
        while self.tally.takeovers < count:
            self._round()
            if self.tally.takeovers % 5 == 0:
                sys.stdout.write(f"two hosts: {self.tally.takeovers} of {count} take-overs\n")
                sys.stdout.flush()

    def close(self) -> None:
        """End what is open."""
        self.holder.ask("close")

    def _round(self) -> None:
        """Stop the holder in a write, let another host take over, wake the first one, look at everything."""
        self._branch_off()
        for _ in range(self.random.randrange(WRITES_BEFORE_MAX + 1)):
            self._write(self.holder)
        stopped = [(self.holder, self._write_and_stop(self.holder))]
        successor, before = self._other(self.holder), self._epoch()
        successor.tell("open", uri=self.root.uri, writers="one")
        if self.random.random() < EARLY_WAKES:
            self._wake_early(stopped.pop(), successor, before)
        else:
            self._await_takeover(before)
            if self.random.random() < SECOND_STOPS:
                successor = self._stop_successor(successor, stopped)
            self._finish(successor, stopped)
        self.holder = successor
        self._check()

    def _branch_off(self) -> None:
        if len(self.present) <= BRANCHES_MAX and self.random.random() < 0.3:
            name = f"b{len(self.present)}"
            assert self.holder.ask("create_branch", branch=name) == {}
            self.present[name] = set(self.present[MAIN])
            self.commit_ids[name] = []

    # Stopping and waking

    def _write_and_stop(self, host: Host) -> Write | None:
        """Begin a write, stop the host somewhere in it, and return it; none where an index was built."""
        write = self._begin(host)
        if write is not None:
            self.in_flight.add(write.name)
        _pause(self.random.random() * STOP_WITHIN * self.write_s)
        host.stop()
        self.tally.stops += 1
        return write

    def _stop_successor(self, successor: Host, stopped: "list[tuple[Host, Write | None]]") -> Host:
        """Stop whoever has just taken over while it recovers, and let the third host come."""
        _pause(self.random.random() * WAKE_WITHIN * self.write_s)
        successor.stop()
        self.tally.stops += 1
        stopped.append((successor, None))
        (third,) = [host for host in self.hosts if host not in [host for host, _ in stopped]]
        before = self._epoch()
        third.tell("open", uri=self.root.uri, writers="one")
        self._await_takeover(before)
        return third

    def _wake_early(self, stopped: "tuple[Host, Write | None]", successor: Host, before: int) -> None:
        """Let the holder go on before its lease has run out, if that is not over already."""
        host, write = stopped
        host.resume()
        self._note(host.answer(), write)
        if self._epoch() > before:
            self.tally.takeovers += 1
        else:
            self.tally.early += 1
        host.ask("close")
        self._opened(successor)
        self._settle(successor)

    def _finish(self, successor: Host, stopped: "list[tuple[Host, Write | None]]") -> None:
        """Wake everybody at random instants of the recovery and of the writes behind it."""
        self.random.shuffle(stopped)
        instants = [self.random.choice(("recovering", "opened", "written")) for _ in stopped]
        for instant, (host, _) in zip(instants, stopped, strict=True):
            if instant == "recovering":
                _pause(self.random.random() * WAKE_WITHIN * self.write_s)
                host.resume()
        self._opened(successor)
        for instant, (host, _) in zip(instants, stopped, strict=True):
            if instant == "opened":
                host.resume()
        for _ in range(self.random.randrange(1, 3)):
            self._write(successor)
        for instant, (host, _) in zip(instants, stopped, strict=True):
            if instant == "written":
                host.resume()
        for host, write in stopped:
            self._note(host.answer(), write)
            host.ask("close")
        self._settle(successor)

    def _opened(self, successor: Host) -> None:
        answer = successor.answer()
        assert "writer" in answer, answer

    def _settle(self, successor: Host) -> None:
        """Write once more on every branch: whatever came late is recovered by that."""
        for branch in self.present:
            self._write(successor, branch)

    def _await_takeover(self, before: int) -> None:
        """Wait until somebody else has the lease; nobody tells but the object itself."""
        while self._epoch() == before:
            _pause(LEASE_S / 20)
        self.tally.takeovers += 1

    def _epoch(self) -> int:
        return LeaseRecord.from_json(self.adapter.read_text(WRITER_LEASE)).epoch

    # Writes

    def _begin(self, host: Host, branch: str | None = None) -> Write | None:
        branch = branch or self.random.choice(sorted(self.present))
        if self.random.random() < 0.1:
            self.tally.index_builds += 1
            host.tell("index", branch=None if branch == MAIN else branch)
            return None
        certain = sorted(self.present[branch] - self.in_flight - {write.name for write in self.doubtful})
        is_delete = bool(certain) and self.random.random() < 0.25
        self.number += 1
        name = self.random.choice(certain) if is_delete else f"w{self.number}"
        insert = f'insert Person {{ name: "{name}" }} insert Knows {{ from: "{name}", to: "hub" }}'
        query = f'delete Person where name = "{name}"' if is_delete else insert
        self.tally.first_touches += not self.commit_ids[branch] and branch != MAIN
        host.tell("mutate", query=f"query q() {{ {query} }}", branch=None if branch == MAIN else branch)
        return Write(branch, name, is_delete)

    def _write(self, host: Host, branch: str | None = None) -> None:
        """Let the holder write until it has: somebody who wakes may publish in between, and no more."""
        for _ in range(TRIES_MAX):
            started = monotonic()
            write = self._begin(host, branch)
            if self._note(host.answer(), write):
                self.write_s = 0.8 * self.write_s + 0.2 * (monotonic() - started)
                return
        raise AssertionError(f"the holder cannot write: {self.tally.errors}")

    def _note(self, answer: Answer, write: Write | None) -> bool:
        """Take down what became of a write, or of an open that was stopped."""
        error = answer.get("error")
        if error is not None:
            assert error in UNHARMED, answer  # T4
            self.tally.errors[str(error)] += 1
            if write is not None:
                self.doubtful.append(write)
            return False
        if write is not None:
            commit_id = answer["commit"]
            assert isinstance(commit_id, str)
            write.commit_id = commit_id
            self._apply(write)
            self.commit_ids[write.branch].append(commit_id)
            self.tally.acknowledged += 1
        return True

    def _apply(self, write: Write) -> None:
        if write.is_delete:
            self.present[write.branch].discard(write.name)
        else:
            self.present[write.branch].add(write.name)

    def _other(self, host: Host) -> Host:
        return self.random.choice([other for other in self.hosts if other is not host])

    # What is there

    def _check(self) -> None:
        with omnigraph.open(self.root.uri, mode="ro") as graph:
            for branch in self.present:
                self._check_branch(graph, branch)
            self.tally.recoveries = Counter(found.recovery_kind.value for found in graph.recoveries())
        self.doubtful.clear()
        self.in_flight.clear()
        assert self.adapter.list_dir(RECOVERY_DIR) == []  # T3

    def _check_branch(self, graph: Graph, branch: str) -> None:
        name = None if branch == MAIN else branch
        people = {str(row) for row in graph.table("Person", branch=name)["name"].to_pylist()} - {"hub"}
        known = [str(row) for row in graph.table("Knows", branch=name)["src"].to_pylist()]
        assert sorted(people) == sorted(known), f"half of a write is visible on {branch}"
        for write in (write for write in self.doubtful if write.branch == branch):
            has_landed = (write.name in people) != write.is_delete
            self.tally.landed += has_landed
            self.tally.vanished += not has_landed
            if has_landed:
                self._apply(write)
        assert people == self.present[branch], f"{branch}: {people ^ self.present[branch]}"  # T1, T2
        commits = graph.commits(branch=name)
        assert {commit.graph_commit_id for commit in commits} >= set(self.commit_ids[branch])
        for commit, parent in pairwise(commits):
            assert commit.parent_commit_id == parent.graph_commit_id
        parts = internals(graph).parts
        for entry in graph.snapshot(name).entries.values():
            if branch == MAIN or entry.pin.branch == branch:
                newest = parts.store.latest_version(parts.address(entry))
                assert newest == entry.version, f"{entry.table_key} of {branch} is ahead of its pin"


def _pause(seconds: float) -> None:
    """Let the hosts work; every instant is as good as another one."""
    Event().wait(seconds)


def timed(run: Run, count: int) -> float:
    """Return how many seconds so many take-overs took."""
    started = monotonic()
    run.takeovers(count)
    return monotonic() - started
