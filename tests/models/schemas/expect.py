"""What a step must come to, by the model."""

from dataclasses import dataclass, replace

from tests.models.dag.model import MAIN, Refused
from tests.models.dag.steps import Create, Delete
from tests.models.schemas.merging import Conflict, State
from tests.models.schemas.model import MergePlan, Model
from tests.models.schemas.steps import Apply, Insert, Load, Merge, Remove, Step, Update, Upgrade, written


@dataclass(frozen=True, slots=True)
class Expected:
    """The outcome of a step, and the commit it makes: on which branch, with which state and second parent."""

    outcome: str
    branch: str | None = None
    state: State | None = None
    merged: str | None = None
    upgraded_from: str | None = None
    conflicts: frozenset[Conflict] | None = None  # of rows, where all three schemas of a merge are the same


def expect(model: Model, step: Step) -> Expected:
    """Return what a step must come to; branches are made and removed at once.

    Raises:
        Undecided: nothing is said about it.
    """
    try:
        match step:
            case Create(name, source):
                model.create(name, source)
                return Expected("done")
            case Delete(name):
                model.delete(name)
                return Expected("done")
            case Load() | Insert() | Update() | Remove():
                return Expected("done", step.branch, written(model.state(step.branch), step))
            case Apply(branch, wanted):
                planned, state = model.plan_apply(branch, wanted)
                return Expected(planned.outcome, branch, state if planned.outcome == "applied" else None)
            case Upgrade(branch):
                found = _merged(model.plan_upgrade(branch), branch, None)
                return replace(found, upgraded_from=model.head(MAIN).id)
            case Merge(source, target, is_dry_run):
                planned_merge = model.plan_merge(source, target)
                found = _merged(planned_merge, target, model.head(source).id)
                return Expected(found.outcome, conflicts=found.conflicts) if is_dry_run else found
    except Refused:
        return Expected("refused")


def settle(model: Model, expected: Expected, commit_id: str) -> None:
    """Record the commit that a step has made."""
    assert expected.branch is not None
    assert expected.state is not None
    model.record(
        expected.branch,
        commit_id,
        expected.state,
        merged=expected.merged,
        upgraded_from=expected.upgraded_from,
    )


def _merged(planned: MergePlan, target: str, source_head: str | None) -> Expected:
    is_new = planned.outcome not in {"conflict", "already_up_to_date"}
    rows = planned.conflicts if planned.has_one_schema else None
    return Expected(planned.outcome, target, planned.state if is_new else None, source_head, conflicts=rows)
