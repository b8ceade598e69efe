"""One random history of schemas, played on the engine and on the model: they must agree at every step."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import omnigraph
from omnigraph import Graph, GraphCommit
from tests.models.dag.model import MAIN
from tests.models.schemas.drive import EVOLVES, perform, rows_of, schema_of, table_of
from tests.models.schemas.expect import Expected, expect, settle
from tests.models.schemas.model import Model, View, view
from tests.models.schemas.program import FIRST, Program
from tests.models.schemas.shape import Schema
from tests.models.schemas.steps import Apply, Merge, Step, Upgrade
from tests.models.schemas.texts import render, type_text

STEPS = (12, 22)
CHANGED = (Apply, Merge, Upgrade)  # after these the whole of their branch is compared
LOOKS = 0.1  # of the other steps are followed by a comparison
OTHERS = 0.4  # of the comparisons include any branch


class History:
    """A graph, its model, and what happened so far; `events` counts by kind, for people."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(f"looks {seed}")
        self.program = Program(seed, evolves=EVOLVES)
        self.model = Model()
        self.events = Counter[str]()
        self.steps: list[Step] = []
        omnigraph.init(folder / "graph", render(FIRST), durability="process").close()
        self.graph: Graph = omnigraph.open(folder / "graph", durability="process")
        self.model.start(self.graph.commits()[-1].graph_commit_id, FIRST)

    def play(self) -> None:
        """Play a whole history and compare everything at its end."""
        self.step(self.program.first(self.model))
        for _ in range(self.random.randint(*STEPS)):
            self.step(self.program.next(self.model))
        self.look_around()

    def play_again(self, steps: Sequence[Step]) -> None:
        """Play given steps and compare everything after each."""
        for step in steps:
            self.step(step)
            self.look_around()

    def look_around(self) -> None:
        """Compare every branch, and a few commits of the past."""
        for name in self.model.branches:
            self.look(name)
        for each in self.random.sample(self.model.shown(), min(3, len(self.model.shown()))):
            self.look_back(each)

    def close(self) -> None:
        self.graph.close()

    def step(self, step: Step) -> None:
        """Do one step on both sides."""
        self.steps.append(step)
        expected = expect(self.model, step)
        done = perform(self.graph, step)
        self.events[f"{type(step).__name__} {expected.outcome}"] += 1
        assert done.outcome == expected.outcome, f"{done.outcome}, wanted {expected.outcome} {done.told}"
        if expected.conflicts is not None and expected.outcome == "conflict":
            assert done.conflicts == expected.conflicts
        self._follow(expected, done.commit)
        if expected.outcome == "conflict":
            self.program.after_conflict(step)
        if isinstance(step, CHANGED) or self.random.random() < LOOKS:
            self.look(expected.branch or MAIN)
            if self.random.random() < OTHERS:
                self.look(self.random.choice(list(self.model.branches)))
        assert self.graph.branches() == sorted(self.model.branches)

    def _follow(self, expected: Expected, commit: GraphCommit | None) -> None:
        """Take over the commit that a step has made; a write that changes nothing need not make one."""
        if commit is None:
            assert expected.state is None or expected.outcome == "done", "there is no commit"
            unchanged = expected.state is None or expected.state == self.model.state(expected.branch or MAIN)
            assert unchanged, "the write did nothing"
            return
        assert expected.branch is not None
        log = set(self.model.branches[expected.branch].log)
        commits = self.graph.commits(branch=expected.branch)
        new = list(takewhile(lambda each: each.graph_commit_id not in log, commits))
        assert new == [commit], f"new on {expected.branch}: {new}"
        assert commit.merged_parent_commit_id == expected.merged
        settle(self.model, expected, commit.graph_commit_id)

    # Looks

    def look(self, branch: str) -> None:
        """Compare what a branch shows: its schema, its rows and one table, its commits."""
        state = self.model.state(branch)
        assert schema_of(self.graph, branch) == _described(state.schema), f"the schema of {branch}"
        wanted = view(state)
        _same(rows_of(self.graph, wanted, branch=branch), wanted, branch)
        if wanted:
            key = self.random.choice(sorted(wanted))
            assert table_of(self.graph, key, branch) == wanted[key], f"the table {key} of {branch}"
        log = [each.graph_commit_id for each in self.graph.commits(branch=branch)]
        assert log == self.model.branches[branch].log[::-1]
        self.events["look"] += 1

    def look_back(self, commit_id: str) -> None:
        """Compare a commit of the past, under the schema of that time."""
        wanted = view(self.model.commits[commit_id].state)
        _same(rows_of(self.graph, wanted, snapshot=commit_id), wanted, commit_id)


def _described(schema: Schema) -> dict[str, dict[str, str]]:
    return {
        f"{each.kind}:{each.name}": {shape.name: type_text(shape) for shape in each.properties.values()}
        for each in schema.values()
    }


def _same(found: View, wanted: View, where: str) -> None:
    differing = {
        f"{key} {each}": (wanted[key].get(each), found[key].get(each))
        for key in wanted
        for each in wanted[key].keys() | found[key].keys()
        if wanted[key].get(each) != found[key].get(each)
    }
    assert not differing, f"{where}: wanted and found: {differing}"
