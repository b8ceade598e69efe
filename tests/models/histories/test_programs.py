"""One random program of 500 operations on one graph: alone, with kills, and on a store that fails.

The operations are mutations, loads, index builds, branches made and deleted, merges between any of them, and
schema applies, optimize and cleanup of main. The hypothesis machines of `test_model` try many
short programs. These are long enough for upkeep, for folded manifests, for tables of many versions and for
branches that have merged each other again and again.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.models.histories.failing_runs import FailingRun
from tests.models.histories.killed_runs import KilledRun
from tests.models.histories.runs import Run
from tests.support.seeds import fresh_seed

OPERATIONS = 500
OPERATIONS_MAX = 1_000  # until every kind was met: ids, and so orders, differ from run to run
PROGRAMS_FUZZ = 20
KILL_EVERY = 20  # operations

KINDS = {"PutPerson", "SetAge", "DropPeople", "PutKnows", "DropEdge", "PutNote", "PutOwn", "Load"}
MAIN_KINDS = {"Optimize", "CleanUp", "ChangeSchema"}
BRANCH_KINDS = {"Create", "Delete", "Merge", "refused Create", "refused Delete", "refused Merge"}
OUTCOMES = {f"outcome {each}" for each in ("already_up_to_date", "fast_forward", "merged")}
# That of a unique property is too rare here: tests of merges and the machines of `test_model` meet it.
CONFLICTS = {
    f"conflict {each}"
    for each in (
        "divergent_insert",
        "divergent_update",
        "delete_vs_update",
        "orphan_edge",
        "cardinality_violation",
    )
}


def operations_until(is_met: Callable[[], bool]) -> Iterator[int]:
    """Count operations from 1, up to as many as a program has, and on until what it asserts was met."""
    for number in range(1, OPERATIONS_MAX + 1):
        if number > OPERATIONS and is_met():
            return
        yield number


@pytest.mark.fuzz
def test_programs_nobody_has_run_yet_leave_what_the_model_says_after_each(tmp_path: Path) -> None:
    first = fresh_seed("MODEL_SEED")
    for seed in range(first, first + PROGRAMS_FUZZ):
        run = Run(tmp_path / f"graph-{seed}", "process", seed)
        for _ in range(OPERATIONS):
            run.step()
        run.look()
        run.graph.close()


@pytest.mark.slow
@pytest.mark.case("engine", 284)
def test_five_hundred_operations_leave_what_the_model_says_after_each(tmp_path: Path) -> None:
    run = Run(tmp_path / "graph", durability="process")

    for _ in operations_until(lambda: run.done.keys() >= CONFLICTS | MAIN_KINDS):
        run.step()

    run.look()
    assert run.done.keys() >= KINDS | BRANCH_KINDS | MAIN_KINDS | OUTCOMES
    assert {"EnsureIndices", "reopen", "refused PutKnows"} <= run.done.keys()
    assert run.done.keys() >= CONFLICTS
    assert run.was_kept_up()
    assert run.audited() == []
    run.graph.close()


@pytest.mark.case("engine", 285)
@pytest.mark.slow
@pytest.mark.timeout(600)  # the disk is waited for, not the processor
def test_kills_at_failpoints_among_five_hundred_operations_change_nothing_else(tmp_path: Path) -> None:
    run = KilledRun(tmp_path / "graph")

    died = {"Create", "Delete", "Merge"} | MAIN_KINDS
    for number in operations_until(lambda: run.died_of.keys() > died):
        if number % KILL_EVERY:
            run.step()
        else:
            run.kill()

    run.next_writer.kill()
    run.look()
    assert run.died_at.total() >= OPERATIONS // KILL_EVERY
    assert len(run.died_at) > 10
    assert run.died_of.keys() > died
    assert run.sidecars
    run.graph.close()


@pytest.mark.case("engine", 286)
@pytest.mark.slow
@pytest.mark.timeout(600)  # the disk is waited for, not the processor
def test_a_store_that_fails_at_random_calls_fails_writes_with_our_errors_alone(tmp_path: Path) -> None:
    run = FailingRun(tmp_path / "graph")

    failed = {"Create", "Delete", "Merge"}
    with run.faults.installed():
        for _ in operations_until(lambda: run.failed.keys() > failed and run.asked.keys() >= MAIN_KINDS):
            run.attempt()

    run.look()
    assert {"StorageError", "RecoveryRequired"} <= run.told.keys()
    assert run.failed.keys() > failed
    assert run.asked.keys() >= MAIN_KINDS
    run.graph.close()
