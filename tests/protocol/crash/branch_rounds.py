"""Writers of several branches that are killed: what they were asked, what they said, and what is there then.

R1  A step that was acknowledged is there, on its branch and in its place.
R2  Of the one step that was cut off, everything is there or nothing.
R3  Every branch is one chain; its tables stand where its newest commit says.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import monotonic

import omnigraph
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.graph.graph import Graph
from omnigraph.history.state import Snapshot
from tests.models.dag.model import MAIN, Model, Refused, Rows
from tests.models.dag.play import MAINTENANCE, same, take_over, unknown
from tests.models.dag.program import Program
from tests.models.dag.reading import stored_rows
from tests.models.dag.schema import RULES, SCHEMA
from tests.models.dag.steps import Create, Delete, Merge, Step, Write, written
from tests.models.histories.branching import On
from tests.protocol.crash.successors import Successors
from tests.protocol.crash.writer import (
    Acknowledged,
    Failed,
    Message,
    Opened,
    Started,
    StepRequest,
    WriterProcess,
    branch_written,
)
from tests.support.seam import internals

ACKNOWLEDGED_MAX = 6  # steps before the one that is cut off
FIRST_GUESS_S = 0.1  # how long a step takes, until some of its kind were seen
LATER = 1.15  # a step that left nothing was cut off early: the next of its kind gets more time
TRIES_MAX = 6  # steps that may answer before their time has come
DRAWS_MAX = 80  # steps drawn in the hope of one of the kind that is aimed at
KINDS = ("create", "delete", "first write", "later write", "merge into main", "merge into a branch")
REFUSALS = {"ValidationError", "MergeConflicts", "AlreadyExistsError", "BranchInUse", "BadRequest"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A step with what the model says it must do; no rows are for a step that must be refused."""

    name: str
    step: Step | On
    kind: str
    rows: Rows | None
    merged: str | None = None  # the head that a merge brings in


@dataclass(slots=True)
class Tally:
    """What happened in a run; cut-off steps by kind."""

    rounds: int = 0
    acknowledged: int = 0
    refused: int = 0
    idle: int = 0
    landed: Counter[str] = field(default_factory=Counter)
    vanished: Counter[str] = field(default_factory=Counter)


class BranchRun:
    """One graph, its model, and the writers that are killed on it."""

    kinds: tuple[str, ...] = KINDS

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.program = Program(seed, is_plain=True)
        self.model = Model(RULES)
        self.tally = Tally()
        self.usual_s = dict.fromkeys(self.kinds, FIRST_GUESS_S)
        self.number = 0
        self.went_forward = 0
        with omnigraph.init(root, SCHEMA) as graph:
            genesis = graph.commits()[-1]
        self.model.start(genesis.graph_commit_id, genesis.manifest_version)
        self.writers = Successors(root, self.random)

    def round(self) -> None:
        """Let a writer work, kill it, kill perhaps the next one while it opens, look at what is there."""
        self.tally.rounds += 1
        doubtful = self._work_and_kill(self.writers.next())
        self.writers.kill_opens()
        with omnigraph.open(self.root) as graph:
            self._check(graph, doubtful)

    def close(self) -> None:
        self.writers.close()

    # Writers

    def _work_and_kill(self, writer: WriterProcess) -> Asked | None:
        """Return the step that was cut off, if one was."""
        assert writer.receive(60) == Opened()
        for _ in range(self.random.randrange(ACKNOWLEDGED_MAX)):
            self._ask(writer, self._any(), within=None)
        return self._cut_off(writer, self._kind())

    def _any(self) -> Asked:
        """Return a step that is not aimed at."""
        return self._draw(self.random.choice((None, *KINDS)))

    def _kind(self) -> str:
        """Return the kind of step that is cut off next."""
        return self.random.choice(self.kinds)

    def _approach(self, _writer: WriterProcess, kind: str) -> Asked:
        """Return a step of a kind, if possible, after what it needs before it."""
        return self._draw(kind)

    def _cut_off(self, writer: WriterProcess, kind: str) -> Asked | None:
        """Kill a writer in a step of a kind; return the step, if it had no answer yet."""
        asked, has_answered = self._approach(writer, kind), False
        for _ in range(TRIES_MAX):
            has_answered = self._ask(writer, asked, within=self.random.random())
            if not has_answered:
                break
            asked = self._approach(writer, kind)
        for message in writer.kill():
            if message != Started(asked.name):
                self._hear(message, asked)
                has_answered = True
        self.tally.idle += has_answered
        return None if has_answered else asked

    def _ask(self, writer: WriterProcess, asked: Asked, *, within: float | None) -> bool:
        """Ask for a step and hear the answer; false if none comes within that part of the usual time."""
        writer.ask(StepRequest(asked.name, asked.step))
        started = monotonic()
        wait_s = 60 if within is None else within * self.usual_s[asked.kind]
        while (message := writer.receive_until(started + wait_s)) == Started(asked.name):
            pass
        if message is None:
            assert within is not None, f"no answer to {asked}"
            return False
        self._hear(message, asked)
        if asked.rows is not None and asked.kind in self.usual_s:
            self.usual_s[asked.kind] += ((monotonic() - started) - self.usual_s[asked.kind]) / 4
        return True

    def _draw(self, kind: str | None) -> Asked:
        """Return a step, if possible one of a kind that has something to do."""
        self.number += 1
        name = f"step-{self.number}"
        if self.number == 1:
            return self._planned(name, self.program.first())
        asked = self._planned(name, self.program.next(self.model))
        for _ in range(DRAWS_MAX):
            if kind is None or (asked.kind == kind and asked.rows is not None):
                break
            asked = self._planned(name, self.program.next(self.model))
        return asked

    def _planned(self, name: str, step: Step | On) -> Asked:
        """Say of a step what it must do, without doing it."""
        match step:
            case Create(branch, source):
                is_fine = branch not in self.model.branches and source in self.model.branches
                return Asked(name, step, "create", {} if is_fine else None)
            case Delete(branch):
                return Asked(name, step, "delete", {} if self._is_free(branch) else None)
            case Merge(source, target, is_dry_run):
                plan = self.model.plan_merge(source, target)
                kind = "merge into main" if target == MAIN else "merge into a branch"
                is_new = plan.outcome != "already_up_to_date" and not is_dry_run
                is_refused = bool(plan.conflicts) and not is_dry_run
                head = self.model.head(source).id if is_new else None
                rows = None if is_refused else self.model.rows(target) if is_dry_run else plan.rows
                return Asked(name, step, kind, rows, head)
            case On(branch):
                return Asked(name, step, "layout", self.model.rows(branch))
            case _:
                return self._planned_write(name, step)

    def _planned_write(self, name: str, step: Write) -> Asked:
        own = self.model.branches[step.branch]
        parent = self.model.branches.get(own.parent or "")
        is_first = parent is not None and own.log[-1] in parent.log
        try:
            rows: Rows | None = written(self.model, step)
        except Refused:
            rows = None
        return Asked(name, step, "first write" if is_first else "later write", rows)

    def _is_free(self, branch: str) -> bool:
        return branch != MAIN and all(other.parent != branch for other in self.model.branches.values())

    # Answers

    def _hear(self, message: Message | None, asked: Asked) -> None:
        """Take an answer: the model does what the writer says it has done."""
        if asked.rows is None:
            assert isinstance(message, Failed), f"{asked} was answered with {message}"
            assert message.error in REFUSALS, message
            self.tally.refused += 1
            return
        assert isinstance(message, Acknowledged), f"{asked.step} was answered with {message}"
        branch = branch_written(asked.step)
        if branch is not None:
            new = unknown(self.model, branch, message.newest)
            ids = [each.graph_commit_id for each in new if each.actor_id in {asked.name, MAINTENANCE}]
            own = [each for each in ids if each == message.commit_id]
            assert asked.name not in {each.actor_id for each in new if each.graph_commit_id not in own}
            assert own == ([] if message.commit_id is None else [message.commit_id])
            assert own or asked.rows == self.model.rows(branch), f"{asked.step} did nothing"
            for each in new:
                take_over(self.model, branch, each, asked.rows)
        self._apply_to_branches(asked)
        self.tally.acknowledged += 1

    def _apply_to_branches(self, asked: Asked) -> None:
        match asked.step:
            case Create(name, source):
                self.model.create(name, source)
            case Delete(name) | Merge(name, is_dry_run=False, is_last=True) if self._is_free(name):
                self.model.delete(name)
            case _:
                pass

    # Looks

    def _check(self, graph: Graph, doubtful: Asked | None) -> None:
        """Compare everything after an open, and learn what became of the step that was cut off."""
        has_landed = self._settle_branches(graph, doubtful)
        for name in self.model.branches:
            is_its = doubtful is not None and name == branch_written(doubtful.step)
            has_landed |= self._settle_commits(graph, name, doubtful if is_its else None)
        went_forward = sum(each.recovery_kind is RecoveryKind.ROLLED_FORWARD for each in graph.recoveries())
        has_landed |= went_forward > self.went_forward
        self.went_forward = went_forward
        if doubtful is not None:
            (self.tally.landed if has_landed else self.tally.vanished)[doubtful.kind] += 1
            self.usual_s[doubtful.kind] *= 1 if has_landed else LATER
        for name in self.model.branches:
            same(self._stored(graph, graph.snapshot(name)), self.model.rows(name), name)
            check_branch(graph, name, self.model.branches[name].log)
        left = [path.name for path in (self.root / "__recovery").glob("*") if "#" not in path.name]
        assert left == [], f"left in __recovery: {left}"
        audited = [record.operation_id for record in graph.recoveries()]
        assert len(audited) == len(set(audited))
        assert set(audited) == self.writers.sidecars

    def _stored(self, graph: Graph, snapshot: Snapshot) -> Rows:
        """Return the rows of a snapshot that the model has, too."""
        return stored_rows(graph, snapshot)

    def _settle_branches(self, graph: Graph, doubtful: Asked | None) -> bool:
        """Find out whether a branch was made or removed; no other has come or gone (R2)."""
        found, known = set(graph.branches()), set(self.model.branches)
        if found == known:
            return False
        assert doubtful is not None
        assert doubtful.rows is not None
        named = (
            doubtful.step.source if isinstance(doubtful.step, Merge) else getattr(doubtful.step, "name", "")
        )
        assert found ^ known == {named}, f"{found} after {doubtful.step}, before {known}"
        if isinstance(doubtful.step, Merge):
            self._settle_commits(graph, doubtful.step.target, doubtful)  # while the model has its source
        self._apply_to_branches(doubtful)
        assert found == set(self.model.branches)
        return True

    def _settle_commits(self, graph: Graph, branch: str, doubtful: Asked | None) -> bool:
        """Take over the commits of recovery and of a writer without an answer; say whether it landed (R2)."""
        before = self.model.rows(branch)
        after = before if doubtful is None or doubtful.rows is None else doubtful.rows
        new = unknown(self.model, branch, graph.commits(branch=branch))
        rows, has_landed = before, False
        for each in new:
            found = self._stored(graph, graph.at(each.graph_commit_id).snapshot)
            assert found in (rows, after), f"{doubtful} is half visible at {each}"
            is_own = doubtful is not None and each.actor_id == doubtful.name
            assert is_own or (each.actor_id or "").startswith("omnigraph:"), f"{each} of nobody"
            is_merge = each.merged_parent_commit_id is not None
            assert not is_merge or (doubtful is not None and each.merged_parent_commit_id == doubtful.merged)
            has_landed |= is_own or is_merge or each.actor_id == MAINTENANCE or found != before
            take_over(self.model, branch, each, found)
            rows = found
        assert rows == (after if has_landed else before)
        if doubtful is not None and doubtful.merged is not None and has_landed:
            assert doubtful.merged in {each.merged_parent_commit_id for each in new}
        return has_landed


def check_branch(graph: Graph, name: str, log: list[str]) -> None:
    """Check that a branch is one chain, and that the tables it owns stand where it says (R3)."""
    commits = graph.commits(branch=name)
    assert [each.graph_commit_id for each in commits] == log[::-1]
    for child, parent in pairwise(commits):
        assert child.parent_commit_id == parent.graph_commit_id, f"{child} does not follow {parent}"
        assert child.manifest_version > parent.manifest_version
    parts, snapshot = internals(graph).parts, graph.snapshot(name)
    branch = None if name == MAIN else name
    for entry in snapshot.entries.values():
        if branch is None or (entry.owner is not None and entry.pin.branch == branch):
            head = parts.store.latest_version(parts.address(entry))
            assert head == entry.version, f"{name}: {entry.table_key}: HEAD {head}, pin {entry.version}"
