"""Writers that are killed while they change schemas, build indexes, optimize, clean up or copy.

U1  What `branch_rounds` says of steps holds here: each is there as a whole, or not at all.
U2  No row is another one afterwards, whatever became of the step that was cut off.
U3  A branch shows the schema that it had, or the one that it was given: nothing in between.
U4  A copy that was cut off is no graph, or a whole one of what was there when its run began, or later.
"""

import re
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from math import inf
from multiprocessing.connection import wait
from pathlib import Path
from time import monotonic

import omnigraph
from omnigraph.core.errors import CloneUnfinished, GraphNotFound
from omnigraph.graph.graph import Graph
from omnigraph.history.state import Snapshot
from tests.models.dag.model import MAIN, Rows
from tests.models.dag.play import same
from tests.models.dag.reading import stored_rows
from tests.models.dag.schema import SCHEMA
from tests.models.dag.steps import Create, Delete, Merge, Replace, Step
from tests.models.histories.branching import On
from tests.models.histories.operations import (
    ChangeSchema,
    CleanUp,
    EnsureIndices,
    Optimize,
    Upgrade,
    other_schema,
)
from tests.protocol.crash.branch_rounds import LATER, Asked, BranchRun, check_branch
from tests.protocol.crash.writer import Failed, Message, WriterProcess, branch_written
from tests.protocol.test_clone_crash import RUN
from tests.support.forked import Forked
from tests.support.library import compile_text

CLONE = "clone"
UPKEEP_KINDS = (
    "schema of main",
    "schema of a branch",
    "branch upgrade",
    "merge of schemas",
    "hard drop",
    "index build",
    "optimize",
    "optimize of a branch",
    "cleanup",
    CLONE,
)
LIVE_MAX = 4  # branches, main included
SCHEMAS = 8
WITH_DEFAULT = 2  # of the bits of a schema's number, the one for the property with a default
APPROACHES_MAX = 5  # in the hope of a merge without conflicts
LATER_S = (
    3_600,
    90_000,
    700_000,
)  # of a moment, of a day, or of a time after which nothing is too young to go
EXTRAS: Mapping[str, Mapping[str, object]] = {  # what every row has of the properties that come and go
    "node:Person": {"more": None},
    "node:Team": {"rank": None},
    "node:Note": {"stars": 3},
}
OVERWRITTEN = ("node:Note", "edge:Knows", "edge:Joined", "edge:Wrote")

_CONFLICT = re.compile(r"(\S+) '[^']*' \((\w+)\)")
Do = Callable[[Step | On], None]
Shape = dict[str, dict[str, str]]


class UpkeepRun(BranchRun):
    """One graph on which everything but a plain write is killed; `schemas` has those of branches."""

    kinds = UPKEEP_KINDS

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, seed)
        self.schemas = {MAIN: 0}
        self.branches_made = 0
        self.timed = set[str]()

    # Steps

    def _kind(self) -> str:
        """Return one of the kinds that were cut off least."""
        count = {kind: self.tally.landed[kind] + self.tally.vanished[kind] for kind in self.kinds}
        return self.random.choice([kind for kind in self.kinds if count[kind] == min(count.values())])

    def _any(self) -> Asked:
        if not self.number:
            return self._named(self.program.first())
        return self._named(self._write(self.random.choice(list(self.model.branches))))

    def _approach(self, writer: WriterProcess, kind: str) -> Asked:
        if kind not in self.timed:
            asked = self._approached(writer, kind)
            started = monotonic()
            self._ask(writer, asked, within=None)
            self._take_time(kind, monotonic() - started)
        return self._approached(writer, kind)

    def _approached(self, writer: WriterProcess, kind: str) -> Asked:
        def do(step: Step | On) -> None:
            self._ask(writer, self._named(step), within=None)

        for _ in range(APPROACHES_MAX):
            asked = replace(self._named(self._led_to(kind, do)), kind=kind)
            if asked.rows is not None:
                break
        return asked

    def _take_time(self, kind: str, took_s: float) -> None:
        """Learn how long a step of a kind takes, so that kills come while it is at work."""
        self.timed.add(kind)
        self.usual_s[kind] = took_s

    def _led_to(self, kind: str, do: Do) -> Step | On:
        """Return a step of a kind; do before it what gives it something to do."""
        match kind:
            case "schema of main":
                do(self._write(MAIN))
                return On(MAIN, self._change(MAIN))
            case "schema of a branch":
                branch = self._new_branch(do)
                return On(branch, self._change(branch))
            case "branch upgrade":
                branch = self._new_branch(do)
                kept = self.schemas[MAIN] & WITH_DEFAULT  # what the branch wrote to it would be lost
                do(On(MAIN, self._change(MAIN, kept=kept)))
                return On(branch, Upgrade())
            case "merge of schemas":
                branch = self._new_branch(do)
                do(On(branch, self._change(branch)))
                do(self._write(MAIN))
                return Merge(branch, MAIN)
            case "hard drop":
                branch = MAIN if self.random.random() < 0.6 else self._new_branch(do)
                do(On(branch, ChangeSchema(SCHEMAS - 1, of=SCHEMA)))
                for _ in range(2):
                    do(self._write(branch))
                return On(branch, ChangeSchema(self.random.randrange(SCHEMAS - 1), is_hard=True, of=SCHEMA))
            case "index build":
                branch = self.random.choice(list(self.model.branches))
                for key in self.random.sample(OVERWRITTEN, 2):
                    do(Replace(branch, key, self.model.rows(branch)[key]))  # the same rows, without indexes
                return On(branch, EnsureIndices())
            case "optimize":
                for _ in range(self.random.randint(2, 4)):
                    do(self._write(MAIN))
                return On(MAIN, Optimize())
            case "optimize of a branch":
                branch = self._new_branch(do)
                for _ in range(self.random.randint(1, 3)):
                    do(self._write(branch))
                return On(branch, Optimize())
            case _:
                for branch in self.model.branches:
                    do(self._write(branch))
                do(On(MAIN, Optimize()))
                return On(MAIN, CleanUp(self.random.randint(1, 3), self.random.choice(LATER_S)))

    def _new_branch(self, do: Do) -> str:
        """Make a branch of main with a write of its own; return its name."""
        if len(self.model.branches) >= LIVE_MAX:
            do(Delete(self.random.choice([name for name in self.model.branches if self._is_free(name)])))
        self.branches_made += 1
        name = f"branch-{self.branches_made}"
        do(Create(name, MAIN))
        do(self._write(name))
        return name

    def _write(self, branch: str) -> Step:
        return self.program.write(branch, self.model)

    def _change(self, branch: str, kept: int = 0) -> ChangeSchema:
        """Return the change of a branch's schema to another one that has what is `kept`."""
        others = [each for each in range(SCHEMAS) if each != self.schemas[branch] and each & kept == kept]
        return ChangeSchema(self.random.choice(others), of=SCHEMA)

    def _named(self, step: Step | On) -> Asked:
        self.number += 1
        return self._planned(f"step-{self.number}", step)

    # Answers

    def _hear(self, message: Message | None, asked: Asked) -> None:
        if isinstance(message, Failed) and self._is_in_doubt(message, asked.step):
            self.tally.refused += 1
            return
        super()._hear(message, asked)
        if asked.rows is not None:
            self._take_schema(asked.step)

    def _is_in_doubt(self, refused: Failed, step: Step | On) -> bool:
        """Return whether a merge was refused because of rows that its ancestors disagree about (case 847).

        Only where one side drops the property with a default, of which every row has a value: the model of
        rows does not know it. Rows without a value of what is dropped are no reason.
        """
        if not isinstance(step, Merge) or refused.error != "MergeConflicts":
            return False
        schemas = self.schemas[step.source] ^ self.schemas[step.target]
        found = set(_CONFLICT.findall(refused.message))
        return bool(schemas & WITH_DEFAULT) and found == {("node:Note", "dropped_property")}

    def _take_schema(self, step: Step | On) -> None:
        """Note the schema that a branch has after a step (U3)."""
        match step:
            case Create(name, source):
                self.schemas[name] = self.schemas[source]
            case _ if (branch := branch_written(step)) is not None:
                self.schemas[branch] = self._schema_after(step, branch)
            case _:
                pass

    def _schema_after(self, step: Step | On, branch: str) -> int:
        """Return the schema that a step leaves; main is as it was when what is merged was made of it."""
        match step:
            case On(_, ChangeSchema(number)):
                return number
            case On(_, Upgrade()):
                return self.schemas[MAIN]
            case Merge(source):
                return self.schemas[source]
            case _:
                return self.schemas[branch]

    # Looks

    def _check(self, graph: Graph, doubtful: Asked | None) -> None:
        super()._check(graph, doubtful)
        for branch in self.model.branches:
            allowed = [self.schemas[branch]]
            if doubtful is not None and branch_written(doubtful.step) == branch:
                allowed.append(self._schema_after(doubtful.step, branch))
            found = _shape(graph.schema(branch=branch))
            matching = [number for number in allowed if _shape(other_schema(number, SCHEMA)) == found]
            assert matching, f"{branch} has neither of the schemas {allowed}: {found}"
            self.schemas[branch] = matching[-1]
        if self.tally.rounds % 5 == 0:
            assert graph.verify().is_whole

    def _stored(self, graph: Graph, snapshot: Snapshot) -> Rows:
        """Return the rows without the properties that come and go, whose values are looked at (U2)."""
        found = stored_rows(graph, snapshot)
        for key, extras in EXTRAS.items():
            for row in found[key].values():
                for name in extras.keys() & row.keys():
                    assert row.pop(name) == extras[name], f"{key}: {name} beside {row}"
        return found

    # Copies

    def _cut_off(self, writer: WriterProcess, kind: str) -> Asked | None:
        if kind != CLONE:
            return super()._cut_off(writer, kind)
        self._copy(writer, self.root.parent / "copy")
        assert writer.kill() == []
        return None

    def _copy(self, writer: WriterProcess, target: Path) -> None:
        """Copy the graph beside its writer, in runs of which the first are killed; look at what is there."""
        is_there = False
        for _ in range(self.random.randint(1, 3)):
            begun = self._logs()
            if not self._is_copy_cut_off(writer, target):
                is_there = True
                break
            is_there = _is_graph(target)
            (self.tally.landed if is_there else self.tally.vanished)[CLONE] += 1
            if is_there:
                break
        if not is_there:
            begun = self._logs()
            omnigraph.clone(str(self.root), str(target))
        self._check_copy(target, begun)
        shutil.rmtree(target)

    def _logs(self) -> dict[str, int]:
        return {name: len(branch.log) for name, branch in self.model.branches.items()}

    def _is_copy_cut_off(self, writer: WriterProcess, target: Path) -> bool:
        """Run a copy for part of the time that it takes, while the writer goes on."""
        within_s = self.random.random() * self.usual_s[CLONE] if CLONE in self.timed else inf
        with Forked(RUN, self.root, target) as copier:
            started = monotonic()
            while not wait([copier.fileno()], 0) and monotonic() < started + within_s:
                self._ask(writer, self._beside(), within=None)
            took_s = monotonic() - started
            copier.kill()
            status = copier.wait()
        assert status in {0, -signal.SIGKILL}
        self._take_time(CLONE, took_s if status == 0 else self.usual_s[CLONE] * LATER)
        return status != 0

    def _beside(self) -> Asked:
        """Return what a writer does while its graph is copied; no branch goes meanwhile."""
        share = self.random.random()
        if share < 0.1:
            return self._named(On(MAIN, Optimize()))
        if share < 0.2:
            return self._named(On(MAIN, self._change(MAIN)))
        return self._any()

    def _check_copy(self, target: Path, begun: Mapping[str, int]) -> None:
        """Check that a copy shows of each branch what it had when the copy began, or later (U4)."""
        with omnigraph.open(target) as graph:
            assert graph.verify().is_whole
            assert graph.branches() == sorted(begun)
            for name, count in begun.items():
                log = [each.graph_commit_id for each in graph.commits(branch=name)][::-1]
                own = self.model.branches[name].log
                assert log == own[: len(log)], f"{name} of the copy has another history"
                assert len(log) >= count, f"{name} of the copy lacks what was there when it began"
                same(self._stored(graph, graph.snapshot(name)), self.model.commits[log[-1]].rows, name)
                check_branch(graph, name, log)
            graph.load(b'{"type":"Note","data":{"body":"written to the copy"}}', "append")


@cache
def _shape(schema: str) -> Shape:
    """Return the types of a schema with those of their properties."""
    return {
        each.table_key: {item.name: str(item.type) for item in each.properties.values()}
        for each in compile_text(schema).types
    }


def _is_graph(place: Path) -> bool:
    try:
        omnigraph.open(place, mode="ro").close()
    except (CloneUnfinished, GraphNotFound):
        return False
    return True
