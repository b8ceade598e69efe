"""Runs on a store that fails at random calls; after each fault the graph is opened again."""

from collections import Counter
from pathlib import Path

import omnigraph
from omnigraph.core.errors import ConflictError, OmnigraphError, RecoveryRequired
from tests.models.dag.steps import Merge
from tests.models.histories.branching import Answer, Expected, On, Step, expect, perform_step
from tests.models.histories.faults import Faults
from tests.models.histories.operations import CleanUp, clean_up
from tests.models.histories.runs import Run, step_name

CALLS_BETWEEN_FAULTS = 600  # a step makes some seventy calls: about one in four of them fails
BRANCH_CALLS = 40  # of which making or deleting a branch, rare as it is, fails at one more often


class FailingRun(Run):
    """A run whose steps may fail, with an error of ours."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, durability="full")
        self.faults = Faults(self.seed, CALLS_BETWEEN_FAULTS)
        self.asked = Counter[str]()
        self.told = Counter[str]()
        self.failed = Counter[str]()

    def attempt(self) -> None:
        """Do one step, which may fail, and compare."""
        step = self.program.step(self.model)
        self.asked[step_name(step)] += 1
        expected = expect(self.model, step)
        count = len(self.faults.raised)
        answer, error = self._ask(step)
        if len(self.faults.raised) == count:
            if answer is None:
                assert error is not None
                self.be_refused(step, expected, error)
            else:
                assert not expected.refusals, f"{step} was not refused"
                self.accept(self.graph, step, expected, answer)
            self.compare(step, expected)
            return
        if error is not None:
            self.failed[step_name(step)] += 1
        pending = self.pending() | set(self.audited())
        self._reopen_in_spite_of_faults()
        self.settle(step, expected, landed=_has_landed(step, expected, error))
        assert set(self.audited()) == pending

    def _ask(self, step: Step) -> tuple[Answer | None, OmnigraphError | None]:
        try:
            with self.faults.armed(within=None if isinstance(step, On | Merge) else BRANCH_CALLS):
                if isinstance(step, On) and isinstance(step.operation, CleanUp):
                    return self._clean_up(step.operation), None
                return perform_step(self.graph, step), None
        except OmnigraphError as error:
            self.told[type(error).__name__] += 1
            return None, error

    def _clean_up(self, operation: CleanUp) -> Answer:
        """Clean up; what cannot be removed from one table is told, and the others go on."""
        count = len(self.faults.raised)
        failed = clean_up(self.graph, operation)
        assert not failed or len(self.faults.raised) > count, failed
        self.told.update(f"cleanup: {row.table_key}" for row in failed)
        return Answer()

    def _reopen_in_spite_of_faults(self) -> None:
        """Open the graph on a store that may fail, and then on one that does not.

        An open need not fail with its store: the sidecars of a branch that it could not read wait.
        """
        self.graph.close()
        try:
            with self.faults.armed():
                omnigraph.open(self.root, durability=self.durability).close()
        except OmnigraphError as error:
            self.told[f"open: {type(error).__name__}"] += 1
        self.graph = omnigraph.open(self.root, durability=self.durability)


def _has_landed(step: Step, expected: Expected, error: OmnigraphError | None) -> bool | None:
    """Return whether a step must have landed, after its error or without one; none if nobody can say.

    Whether a branch was made or removed is not known after an error: its control object alone says so.
    """
    if expected.refusals:
        assert error is not None, f"{step} was not refused"
        return False
    if error is None:
        return True
    if not isinstance(step, On | Merge):
        return None
    is_open = isinstance(error, RecoveryRequired) or (
        isinstance(error, ConflictError) and error.recovery_operation_id is not None
    )
    return None if is_open else False
