"""A writer is killed at random instants: no acknowledged write is lost, none is half visible.

The parent draws every write from its own model and hears of each success over a pipe. After a kill it reopens
the graph and compares everything; of the one write that was cut off it accepts both outcomes.
"""

import os
import random
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

import pytest

import omnigraph
from omnigraph.commit.recovery.kinds import RecoveryKind
from tests.models.histories.contents import SCHEMA, Contents, difference
from tests.models.histories.operations import (
    ChangeSchema,
    CleanUp,
    EnsureIndices,
    Operation,
    Optimize,
    apply,
)
from tests.models.histories.programs import Program
from tests.models.histories.reading import check_whole, read_contents
from tests.protocol.crash.successors import Successors
from tests.protocol.crash.writer import Acknowledged, Opened, Request, Started, WriterProcess
from tests.support.seeds import fixed_seed, fresh_seed

ACKNOWLEDGED_MAX = 8  # writes before the clock of a kill starts
KILL_WITHIN_S = 0.12  # a write takes 30 to 100 ms
CLEANUPS = 0.15  # of what writers are asked for: every table is looked at, so it is cut off more often
SCHEMAS = 0.15  # of what writers are asked for
OPTIMIZE_SHARE = 0.12  # of what a writer is asked: it takes several times as long, and is killed more often
INDEXES = 0.06  # of what writers are asked for: a load that leaves indexes out, and then their build


@dataclass(slots=True)
class Tally:
    """What happened in a run."""

    rounds: int = 0
    acknowledged: int = 0
    landed: int = 0
    vanished: int = 0
    idle: int = 0
    cut_off: Counter[type[Operation]] = field(default_factory=Counter)


class Run:
    """One graph, its model, and the writers that are killed on it."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.program = Program(seed)
        self.contents = Contents()
        self.commit_ids: list[str] = []
        self.tally = Tally()
        self.number = 0
        self.is_index_missing = False
        omnigraph.init(root, SCHEMA).close()
        self.writers = Successors(root, self.random)

    def round(self) -> None:
        """Let a writer work, kill it, kill perhaps the next one while it opens, look at what is there."""
        self.tally.rounds += 1
        doubtful = self._write_and_kill(self.writers.next())
        self.writers.kill_opens()
        self._check(doubtful)

    def close(self) -> None:
        self.writers.close()

    def _write_and_kill(self, writer: WriterProcess) -> Operation | None:
        """Return the write that was cut off, if one was."""
        assert writer.receive(60) == Opened()
        first = self.random.randrange(ACKNOWLEDGED_MAX)
        operation = self._ask(writer)
        for _ in range(first):
            while (message := writer.receive(60)) == Started(self._name):
                pass
            self._acknowledge(message, operation)
            operation = self._ask(writer)
        deadline = monotonic() + self.random.random() * KILL_WITHIN_S
        while (message := writer.receive_until(deadline)) is not None:
            if message != Started(self._name):
                self._acknowledge(message, operation)
                operation = self._ask(writer)
        for message in writer.kill():
            if message != Started(self._name):
                self._acknowledge(message, operation)
                self.tally.idle += 1
                return None
        return operation

    @property
    def _name(self) -> str:
        return f"write-{self.number}"

    def _ask(self, writer: WriterProcess) -> Operation:
        self.number += 1
        operation = self._chosen()
        writer.ask(Request(self._name, operation))
        return operation

    def _chosen(self) -> Operation:
        """Return what a writer is asked next."""
        if self.is_index_missing:
            self.is_index_missing = False
            return EnsureIndices()
        share = self.random.random()
        if share < CLEANUPS:  # of a moment, of a day, or of a time after which nothing is too young to go
            return CleanUp(
                keep=self.random.randint(1, 5), later_s=self.random.choice([3_600, 90_000, 700_000])
            )
        if share < CLEANUPS + OPTIMIZE_SHARE:
            return Optimize()
        if share < CLEANUPS + OPTIMIZE_SHARE + SCHEMAS:
            return ChangeSchema(self.random.randrange(8))
        if share < CLEANUPS + OPTIMIZE_SHARE + SCHEMAS + INDEXES:
            self.is_index_missing = True
            return replace(self.program.overwrite(self.contents), index=False)
        return self.program.next(self.contents)

    def _acknowledge(self, message: object, operation: Operation) -> None:
        assert isinstance(message, Acknowledged), f"{operation} was answered with {message}"
        assert message.name == self._name
        after = apply(self.contents, operation)
        assert (message.commit_id is not None) or after == self.contents
        self.contents = after
        self.tally.acknowledged += 1
        if message.commit_id is not None:
            self.commit_ids.append(message.commit_id)

    def _check(self, doubtful: Operation | None) -> None:
        with omnigraph.open(self.root) as graph:
            found = read_contents(graph)
            allowed = [self.contents] if doubtful is None else [self.contents, apply(self.contents, doubtful)]
            assert found in allowed, f"after {doubtful}: {difference(found, self.contents)}"
            if doubtful is not None:
                self.tally.cut_off[type(doubtful)] += 1
                self.tally.landed += found == allowed[1]
                self.tally.vanished += found != allowed[1]
            self.contents = found
            chain = check_whole(graph)
            positions = {commit_id: place for place, commit_id in enumerate(chain)}
            places = [positions[commit_id] for commit_id in self.commit_ids]
            assert places == sorted(places), "acknowledged commits stand in the order of their answers"
            audited = [record.operation_id for record in graph.recoveries()]
            assert len(audited) == len(set(audited))
            assert set(audited) == self.writers.sidecars


def run(root: Path, rounds: int, seed: int) -> Tally:
    """Kill a writer in every round; a seed repeats the writes, not the instants."""
    started = monotonic()
    crash = Run(root, seed)
    try:
        for number in range(1, rounds + 1):
            crash.round()
            if number % 50 == 0:
                sys.stdout.write(f"crash: {number} rounds after {monotonic() - started:.0f} s\n")
                sys.stdout.flush()
    finally:
        crash.close()
    with omnigraph.open(root, mode="ro") as graph:
        assert graph.verify().is_whole
        records = graph.recoveries()
        commits = graph.commits()
    forward = sum(record.recovery_kind is RecoveryKind.ROLLED_FORWARD for record in records)
    back = sum(
        record.recovery_kind is RecoveryKind.ROLLED_BACK and bool(record.outcomes) for record in records
    )
    maintenance = sum(commit.actor_id == "omnigraph:maintenance" for commit in commits)
    tally = crash.tally
    cut_off = ", ".join(f"{count} {kind.__name__}" for kind, count in tally.cut_off.most_common())
    sys.stdout.write(
        f"crash: {tally.rounds} rounds, {tally.acknowledged} acknowledged writes, {len(commits)} commits "
        f"({maintenance} of maintenance), {crash.writers.opens_killed} opens killed, "
        f"{monotonic() - started:.0f} s\n"
        f"crash: writes cut off: {tally.landed} landed, {tally.vanished} did not; "
        f"{tally.idle} kills came after the answer\n"
        f"crash: cut off: {cut_off}\n"
        f"crash: {len(records)} recoveries: {forward} forward, {back} back, "
        f"{len(records) - forward - back} effect-free\n"
        f"crash: 0 acknowledged writes lost, 0 half visible, 0 failed opens, pin = HEAD after every open\n"
    )
    return tally


def test_no_acknowledged_write_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    run(tmp_path / "graph", rounds=13, seed=fixed_seed("CRASH_SEED"))


@pytest.mark.crash
def test_no_acknowledged_write_is_lost_in_hundreds_of_kills(tmp_path: Path) -> None:
    rounds = int(os.environ.get("CRASH_ROUNDS", "500"))

    tally = run(tmp_path / "graph", rounds, seed=fresh_seed("CRASH_SEED"))

    assert tally.landed + tally.vanished >= rounds // 2
    for kind in (ChangeSchema, Optimize, CleanUp, EnsureIndices):
        assert tally.cut_off[kind] >= rounds // 50, f"too few kills hit {kind.__name__}"
