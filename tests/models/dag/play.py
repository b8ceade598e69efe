"""One random history, played on the engine and on the model: they must agree at every step."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, GraphCommit, OmnigraphError
from omnigraph.core.merge_conflict import MergeConflict
from tests.models.dag.model import MAIN, Commit, Conflict, MergePlan, Model, Refused, Rows, differences
from tests.models.dag.program import Program
from tests.models.dag.reading import committed, diffed, entity, queried_rows, stored_rows
from tests.models.dag.schema import RULES, SCHEMA
from tests.models.dag.steps import Create, Delete, Done, Merge, Step, Write, perform, written

STEPS = (15, 40)
CHECKS = 0.08  # of the steps are followed by a look at everything
QUERIES = 0.2  # of the commits looked at are read through queries, too
MAINTENANCE = "omnigraph:maintenance"
REFUSALS = {
    Create: {"AlreadyExistsError", "BranchNotFound"},
    Delete: {"BranchInUse", "BadRequest", "BranchNotFound"},
    Merge: {"MergeConflicts"},
}
WRITE_REFUSALS = {"ValidationError", "KeyConflict"}


class History:
    """A graph, its model, and what happened so far; `events` counts by kind, for people."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(f"checks {seed}")
        self.program = Program(seed)
        self.model = Model(RULES)
        self.events = Counter[str]()
        self.told: list[str] = []
        omnigraph.init(folder / "graph", SCHEMA, durability="process").close()
        self.graph: Graph = omnigraph.open(folder / "graph", durability="process")
        genesis = self.graph.commits()[-1]
        self.model.start(genesis.graph_commit_id, genesis.manifest_version)

    def play(self) -> None:
        """Play a whole history and compare everything at its end."""
        self.step(self.program.first())
        for _ in range(self.random.randint(*STEPS)):
            self.step(self.program.next(self.model))
            if self.random.random() < CHECKS:
                self.look(past=1)
        self.look(past=3)
        shown = self.random.choice(list(self.model.branches))
        same(queried_rows(self.graph, branch=shown), self.model.rows(shown), f"queries of {shown}")

    def close(self) -> None:
        self.graph.close()

    # Steps

    def step(self, step: Step) -> None:
        """Do one step on both sides."""
        self.told.append(str(step))
        if isinstance(step, Merge):
            self._merge(step)
        elif isinstance(step, Create | Delete):
            self._branch(step)
        else:
            self._write(step)

    def _branch(self, step: Create | Delete) -> None:
        try:
            if isinstance(step, Create):
                self.model.create(step.name, step.source)
            else:
                self.model.delete(step.name)
        except Refused:
            self._refused(step)
        else:
            perform(self.graph, step)
            self.events[type(step).__name__] += 1
        assert self.graph.branches() == sorted(self.model.branches)

    def _write(self, step: Write) -> None:
        try:
            expected = written(self.model, step)
        except Refused:
            self._refused(step)
            return
        done = perform(self.graph, step)
        if done.commit is None:
            assert expected == self.model.rows(step.branch), f"{step} did nothing"
        else:
            expected = written(self.model, step, self._new_id(step))
        self.events["write"] += 1
        self._follow(step.branch, done.commit, expected)

    def _new_id(self, step: Write) -> str:
        """Return the id of the edge that a link has made."""
        tag = getattr(step, "tag", None)
        rows = self.graph.table("Knows", branch=step.branch).to_pylist()
        return next((row["id"] for row in rows if row["tag"] == tag), "none")

    def _merge(self, step: Merge) -> None:
        plan = self.model.plan_merge(step.source, step.target)
        self.events[f"bases {len(plan.bases)}"] += 1
        self.events["in doubt"] += plan.is_in_doubt
        if step.is_dry_run:
            done = perform(self.graph, step)
            self.events["preview"] += 1
            assert done.outcome == plan.outcome
            same_conflicts(done.conflicts, plan.conflicts)
            self._follow(step.target, None, self.model.rows(step.target))
        elif plan.conflicts:
            error = self._refused(step)
            assert isinstance(error, omnigraph.MergeConflicts)
            same_conflicts(error.conflicts, plan.conflicts)
            self.events.update(f"conflict {kind}" for kind in {each.kind for each in plan.conflicts})
            if self.random.random() < 0.6:
                self.program.resolve(step, plan.conflicts, self.model)
        else:
            self._merged(step, plan, perform(self.graph, step))

    def _merged(self, step: Merge, plan: MergePlan, done: Done) -> None:
        assert done.outcome == plan.outcome
        self.events[plan.outcome] += 1
        is_new = plan.outcome != "already_up_to_date"
        assert (done.commit is not None) == is_new
        self._follow(step.target, done.commit, plan.rows, merged=self.model.head(step.source).id)
        if step.is_last:
            try:
                self.model.delete(step.source)
            except Refused:
                assert not done.is_deleted
            else:
                assert done.is_deleted
                self.events["Delete"] += 1
            assert self.graph.branches() == sorted(self.model.branches)

    def _refused(self, step: Step) -> OmnigraphError:
        """Return the error with which the engine refuses a step."""
        with pytest.raises(OmnigraphError) as refused:
            perform(self.graph, step)
        error, allowed = refused.value, REFUSALS.get(type(step), WRITE_REFUSALS)
        assert type(error).__name__ in allowed, f"{step} is refused with {type(error).__name__}: {error}"
        self.events[f"refused {type(step).__name__}"] += 1
        return error

    def _follow(
        self, branch: str, commit: GraphCommit | None, rows: Rows, *, merged: str | None = None
    ) -> None:
        """Take over the commits that a step has made on a branch: its own, then those of upkeep."""
        new = unknown(self.model, branch, self.graph.commits(branch=branch))
        own = [each for each in new if each.actor_id != MAINTENANCE]
        assert own == ([] if commit is None else [commit]), f"{own} for {commit}"
        for each in new:
            take_over(self.model, branch, each, rows)
            assert each.merged_parent_commit_id == (merged if each == commit else None)
        self.events["upkeep"] += len(new) - len(own)

    # Looks

    def look(self, *, past: int) -> None:
        """Compare every live branch, and so many commits of the past, differences and single entities."""
        for name, branch in self.model.branches.items():
            wanted = self.model.rows(name)
            same(stored_rows(self.graph, self.graph.snapshot(name)), wanted, name)
            log = [each.graph_commit_id for each in self.graph.commits(branch=name)]
            assert log == branch.log[::-1]
        for each in self.random.sample(list(self.model.commits), min(past, len(self.model.commits))):
            self._look_back(self.model.commits[each])
            self._look_between(self._target(), self._target())
            self._look_at_one(self._target())
        self.events["look"] += 1

    def _look_back(self, commit: Commit) -> None:
        if self.model.shows(commit.id):
            same(stored_rows(self.graph, self.graph.at(commit.id).snapshot), commit.rows, commit.id)
            if commit.parents:
                wanted = differences(self.model.commits[commit.parents[0]].rows, commit.rows)
                assert committed(self.graph, commit.id) == wanted, f"changes of {commit.id}"
            if self.random.random() < QUERIES:
                same(queried_rows(self.graph, snapshot=commit.id), commit.rows, f"queries of {commit.id}")
            return
        with pytest.raises(omnigraph.CommitNotFound):  # it went with its branch
            self.graph.at(commit.id)

    def _look_between(self, before: str, after: str) -> None:
        wanted = differences(*(self._rows_of(target) for target in (before, after)))
        found = diffed(self.graph, before, after)
        assert found == wanted, f"from {before} to {after}: found {found}, wanted {wanted}"

    def _look_at_one(self, target: str) -> None:
        key = self.random.choice(list(RULES))
        everywhere = {each for commit in self.model.commits.values() for each in commit.rows[key]}
        if everywhere:
            each = self.random.choice(sorted(everywhere))
            assert entity(self.graph, key, each, target) == self._rows_of(target)[key].get(each)

    def _target(self) -> str:
        """Return a branch, or a commit that some branch shows."""
        if self.random.random() < 0.4:
            return self.random.choice(list(self.model.branches))
        return self.random.choice([each for each in self.model.commits if self.model.shows(each)])

    def _rows_of(self, target: str) -> Rows:
        found = self.model.commits.get(target)
        return self.model.rows(target) if found is None else found.rows


def unknown(model: Model, branch: str, newest_first: Iterable[GraphCommit]) -> list[GraphCommit]:
    """Return the commits of a branch that the model does not have yet, oldest first."""
    log = set(model.branches[branch].log)
    return list(takewhile(lambda each: each.graph_commit_id not in log, newest_first))[::-1]


def take_over(model: Model, branch: str, commit: GraphCommit, rows: Rows) -> None:
    """Record a commit that the engine has made on a branch; it must follow the last one."""
    assert commit.manifest_branch == (None if branch == MAIN else branch)
    assert commit.parent_commit_id is not None
    second = commit.merged_parent_commit_id
    parents = (commit.parent_commit_id, *([] if second is None else [second]))
    is_upkeep = commit.actor_id == MAINTENANCE
    model.record(branch, Commit(commit.graph_commit_id, commit.manifest_version, parents, rows, is_upkeep))


def same(found: Rows, wanted: Rows, where: str) -> None:
    """Say what differs, if anything does."""
    assert found == wanted, f"{where}: from what is wanted to what is found: {differences(wanted, found)}"


def same_conflicts(reported: Sequence[MergeConflict], wanted: frozenset[Conflict]) -> None:
    """Say which conflicts differ; they come in order, and one row of one kind twice only in other words."""
    found = [(each.table_key, each.row_id or "", str(each.kind)) for each in reported]
    told = f"only found: {sorted(set(found) - wanted)}; only wanted: {sorted(wanted - set(found))}"
    assert set(found) == wanted, told
    assert found == sorted(found)
    assert len({(*key, each.message) for key, each in zip(found, reported, strict=True)}) == len(found)
