"""One graph and its model: steps that the engine does or refuses as the model says, and looks at both."""

import random
from collections import Counter
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import MergeConflicts, OmnigraphError
from omnigraph.graph.graph import Graph
from tests.models.dag.model import MAIN, Conflict, Model
from tests.models.dag.play import MAINTENANCE, take_over, unknown
from tests.models.dag.steps import Delete, Merge
from tests.models.histories.branch_programs import BranchProgram
from tests.models.histories.branching import (
    BRANCH_SCHEMA,
    RULES,
    Answer,
    Expected,
    On,
    Step,
    change_branches,
    contents_of,
    expect,
    perform_step,
    rows_of,
    shown,
)
from tests.models.histories.contents import difference
from tests.models.histories.operations import PutKnows
from tests.models.histories.reading import (
    Seen,
    check_heads,
    check_nothing_left,
    check_whole,
    read_contents,
)
from tests.support.seeds import fixed_seed

LOOK_EVERY = 25  # steps; in between only what a step has written is read
NEWEST = 20  # commits that a step with all its upkeep stays below


class Run:
    """A graph, its model, and what was done so far."""

    def __init__(self, root: Path, durability: str, seed: int | None = None) -> None:
        self.root = root
        self.durability = durability
        self.seed = fixed_seed("MODEL_SEED") if seed is None else seed
        self.random = random.Random(self.seed)
        self.program = BranchProgram(self.seed)
        self.model = Model(RULES)
        self.done = Counter[str]()
        self.seen: Seen = {}
        self.steps = 0
        self.graph = omnigraph.init(root, BRANCH_SCHEMA, durability=durability)
        genesis = self.graph.commits()[-1]
        self.model.start(genesis.graph_commit_id, genesis.manifest_version)

    # Steps

    def step(self) -> None:
        """Do one step that succeeds or is refused as it must be, and compare."""
        draw = self.random.random()
        if draw < 0.03:
            self.reopen()
        elif draw < 0.06:
            branch = self.random.choice(list(self.model.branches))
            self.do(On(branch, PutKnows("dangling", ("nobody", "nobody"))))
        else:
            self.do(self.program.step(self.model))

    def do(self, step: Step) -> None:
        expected = expect(self.model, step)
        if expected.refusals:
            with pytest.raises(OmnigraphError) as refused:
                perform_step(self.graph, step)
            self.be_refused(step, expected, refused.value)
        else:
            self.accept(self.graph, step, expected, perform_step(self.graph, step))
        self.compare(step, expected)

    def reopen(self) -> None:
        self.graph.close()
        self.graph = omnigraph.open(self.root, durability=self.durability)
        self.done["reopen"] += 1

    def be_refused(self, step: Step, expected: Expected, error: OmnigraphError) -> None:
        """Take a refusal, which must be the one that is expected."""
        assert type(error).__name__ in expected.refusals, f"{step} is refused with {error!r}"
        self.done[f"refused {step_name(step)}"] += 1
        if isinstance(error, MergeConflicts):
            assert isinstance(step, Merge)
            found = {Conflict(each.table_key, each.row_id or "", str(each.kind)) for each in error.conflicts}
            assert {_known(*each) for each in found} == {_known(*each) for each in expected.conflicts}
            assert len(found) == len(expected.conflicts)
            self.done.update(f"conflict {kind}" for kind in {each.kind for each in expected.conflicts})
            self.program.resolve(step, expected.conflicts, self.model)

    def accept(self, graph: Graph, step: Step, expected: Expected, answer: Answer) -> None:
        """Take over what a step has done: its commit, then those of upkeep."""
        self.done[step_name(step)] += 1
        assert answer.outcome == expected.outcome
        if answer.outcome is not None:
            self.done[f"outcome {answer.outcome}"] += 1
        change_branches(self.model, step)
        if expected.branch is None:
            return
        assert expected.rows is not None
        has_commit = answer.commit_id is not None
        assert has_commit or expected.rows == self.model.rows(expected.branch), f"{step} did nothing"
        assert has_commit or expected.merged is None
        new = unknown(self.model, expected.branch, graph.commits(branch=expected.branch, limit=NEWEST))
        own = [each for each in new if each.graph_commit_id == answer.commit_id]
        assert len(own) == has_commit
        for each in new:
            assert each in own or each.actor_id == MAINTENANCE
            assert each.merged_parent_commit_id == (expected.merged if each in own else None)
            take_over(self.model, expected.branch, each, expected.rows)

    # Looks

    def compare(self, step: Step, expected: Expected) -> None:
        """Compare what a step may have written, and now and then everything."""
        self.steps += 1
        assert self.graph.branches() == sorted(self.model.branches)
        if self.steps % LOOK_EVERY == 0 or isinstance(step, Delete):
            self.look()
        elif expected.branch is not None:
            self._compare_newest(expected.branch)

    def look(self) -> None:
        """Compare everything that all branches hold; what was read before is read again."""
        assert self.graph.branches() == sorted(self.model.branches)
        self.seen.clear()
        for name, branch in self.model.branches.items():
            self._compare(name)
            assert check_whole(self.graph, _named(name)) == branch.log

    def _compare_newest(self, name: str) -> None:
        entries = self.graph.snapshot(name).entries.values()
        places = {(entry.location, entry.owner, entry.version): entry for entry in entries}
        check_heads(self.graph, (places[each] for each in places.keys() - self.seen.keys()), _named(name))
        check_nothing_left(self.graph)
        self._compare(name)

    def _compare(self, name: str) -> None:
        found = read_contents(self.graph, self.graph.snapshot(name), self.seen)
        told = difference(found, shown(self.model, name))
        assert told == "", f"{name}: {told}"

    # Outcomes that nobody was told

    def settle(self, step: Step, expected: Expected, *, landed: bool | None) -> None:
        """Learn whether a step without an answer has landed, all of it or nothing, and look."""
        found, known = set(self.graph.branches()), set(self.model.branches)
        if isinstance(step, On | Merge):
            assert found == known
            self._settle_commits(expected, landed)
        else:
            assert found in (known, known ^ {step.name}), f"{found} after {step}, before {known}"
            assert landed in (None, found != known)
            if found != known:
                assert not expected.refusals
                change_branches(self.model, step)
        self.look()

    def _settle_commits(self, expected: Expected, landed: bool | None) -> None:
        branch, after = expected.branch, expected.rows
        assert branch is not None
        assert after is not None
        before = self.model.rows(branch)
        for each in unknown(self.model, branch, self.graph.commits(branch=branch)):
            found = rows_of(read_contents(self.graph, self.graph.at(each.graph_commit_id).snapshot))
            assert found in (before, after), (
                f"half visible: {difference(contents_of(found), contents_of(after))}"
            )
            assert each.merged_parent_commit_id in (None, expected.merged)
            take_over(self.model, branch, each, found)
        now = self.model.rows(branch)
        assert landed is None or now == (after if landed else before)

    def audited(self) -> list[str]:
        """Return the operations that were recovered, each of them once."""
        found = [record.operation_id for record in self.graph.recoveries()]
        assert len(set(found)) == len(found), "a recovery twice in the audit"
        return found

    def pending(self) -> set[str]:
        return {path.stem for path in (self.root / "__recovery").glob("*.json")}

    def was_kept_up(self) -> bool:
        """Return whether a table has gone through a round of upkeep."""
        return any(entry.pin.upkeep_version for entry in self.graph.snapshot().entries.values())


def step_name(step: Step) -> str:
    """Return the kind of a step, or of its operation."""
    return type(step.operation if isinstance(step, On) else step).__name__


def _named(branch: str) -> str | None:
    return None if branch == MAIN else branch


def _known(table_key: str, row_id: str, kind: str) -> Conflict:
    """Return a conflict without the id that the engine made: of edges, loads alone name it."""
    is_made = table_key == "edge:Knows" and not row_id.startswith("L")
    return Conflict(table_key, "" if is_made else row_id, kind)
