"""The power fails at every sync boundary: what was acknowledged is there, and the graph opens."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import omnigraph
from omnigraph.core.failpoint import failpoint
from omnigraph.operations.ensure_indices import IndexResult
from omnigraph.operations.merge.merge import MergeResult
from omnigraph.operations.schema.apply import SchemaApplyResult
from tests.models.histories.operations import (
    ChangeSchema,
    DropPeople,
    Load,
    Operation,
    PutKnows,
    PutNote,
    PutOwn,
    PutPerson,
    SetAge,
    apply,
    other_schema,
    perform,
)
from tests.models.histories.programs import Program
from tests.protocol.powercut.cuts import Bench, Tally
from tests.support.seeds import fixed_seed, fresh_seed

UPKEEP_INTERVAL = 64

WRITES: list[Operation] = [
    PutPerson("ada", 36, "t1"),
    PutPerson("ben", None, "t2", "ada", "k1"),
    Load(
        "append",
        {"cy": (50, "t3"), "dot": (20, "t4")},
        {"red": 3},
        ("n1", "n2"),
        {"L1": ("cy", "ada")},
        {"L2": ("dot", "red")},
    ),
    SetAge("ada", 0, 37),
    PutKnows("k2", ("dot", "cy")),
    Load("merge", {"cy": (51, "t5"), "eve": (9, "t6")}, {}, (), {"L1": ("cy", "eve")}, {}),
    DropPeople("cy", 0),
    Load("overwrite", {}, {"blue": None}, (), {}, {"L3": ("eve", "blue")}, ("Team", "Joined")),
]


SOME = 6  # one cut of so many is looked at
SOME_OF_MANY = 11  # the same for long programs; odd, because syncs of files and of folders take turns


@pytest.fixture(params=[pytest.param("some"), pytest.param("every", marks=pytest.mark.powercut)])
def bench(tmp_path: Path, request: pytest.FixtureRequest, tally: Tally) -> Iterator[Bench]:
    some = SOME_OF_MANY if request.node.get_closest_marker("slow") else SOME
    yield Bench(tmp_path, stride=1 if request.param == "every" else some, tally=tally)
    sys.stdout.write(
        f"\npowercut: {tally.cuts} cuts, {tally.images} images opened, {tally.unsafe_files} unsynced files "
        f"lost or hollow, {tally.quarantined} versions quarantined, {tally.recovered} recoveries; "
        f"unanswered write absent in {tally.before}, present in {tally.after}; 0 acknowledged commits lost\n"
    )


def cut_through(bench: Bench, graph: omnigraph.Graph, operation: Operation) -> None:
    after = apply(bench.allowed[-1], operation)
    bench.cut_during(lambda: perform(graph, operation), after)


def quietly(bench: Bench, graph: omnigraph.Graph, operation: Operation) -> None:
    """Do a write without cutting; the machine is idle for a while after it."""
    commit_id = perform(graph, operation)
    assert commit_id is not None
    bench.acknowledged.add(commit_id)
    bench.allowed = [apply(bench.allowed[-1], operation)]


def test_every_sync_of_a_two_table_commit(bench: Bench) -> None:
    with omnigraph.open(bench.root) as graph:
        quietly(bench, graph, WRITES[0])
        cut_through(bench, graph, WRITES[1])


@pytest.mark.slow
@pytest.mark.case("engine", 294)
def test_every_sync_of_every_kind_of_write(bench: Bench) -> None:
    for operation in WRITES:
        with omnigraph.open(bench.root) as graph:  # a new process each time: nothing is known to be synced
            cut_through(bench, graph, operation)
    assert bench.tally.quarantined > 0
    assert bench.tally.recovered > 0
    assert bench.tally.before > 0
    assert bench.tally.after > 0


UNINDEXED = Load("append", {"cy": (50, "t3")}, {"red": 3}, (), {"L1": ("cy", "ada")}, {}, index=False)


@pytest.mark.slow
@pytest.mark.case("engine", 294)
def test_every_sync_of_an_index_build_and_a_merge(bench: Bench) -> None:
    """What changes schemas has a test of its own."""
    bench.tally.verb = "indexes"
    with omnigraph.open(bench.root) as graph:
        quietly(bench, graph, WRITES[0])
        quietly(bench, graph, UNINDEXED)
    with omnigraph.open(bench.root) as graph:
        bench.cut_during(lambda: commit_of(graph.ensure_indices()), bench.allowed[-1])
    with omnigraph.open(bench.root) as graph:
        graph.create_branch("june")
        with graph.branch("june") as june:
            perform(june, WRITES[5])
    with omnigraph.open(bench.root) as graph:
        bench.cut_during(lambda: commit_of(graph.merge("june")), apply(bench.allowed[-1], WRITES[5]))
    assert bench.tally.before
    assert bench.tally.after


@pytest.mark.slow
@pytest.mark.case("engine", 294)
def test_every_sync_of_changes_of_the_schema(bench: Bench) -> None:
    """On main, on a branch, as an upgrade, and within a merge: the rows of main stay or come as a whole."""
    bench.tally.verb = "schema"
    with omnigraph.open(bench.root) as graph:
        quietly(bench, graph, WRITES[0])
        quietly(bench, graph, UNINDEXED)
        graph.create_branch("june")
        graph.create_branch("july")
        with graph.branch("june") as june:
            perform(june, WRITES[5])
    for number in (1, 3, 7, 0):
        with omnigraph.open(bench.root) as graph:
            bench.cut_during(
                lambda graph=graph, number=number: perform(graph, ChangeSchema(number)),  # type: ignore[misc]
                bench.allowed[-1],
            )
    with omnigraph.open(bench.root) as graph:
        bench.cut_during(
            lambda: _apart(graph.apply_schema(other_schema(7), branch="july", index=False)), bench.allowed[-1]
        )
    with omnigraph.open(bench.root) as graph:
        perform(graph, ChangeSchema(4))
    with omnigraph.open(bench.root) as graph:
        bench.cut_during(lambda: _apart(graph.upgrade_branch("june", index=False)), bench.allowed[-1])
    with omnigraph.open(bench.root) as graph:
        graph.apply_schema(other_schema(5), branch="june", index=False)
    with omnigraph.open(bench.root) as graph:
        bench.cut_during(lambda: commit_of(graph.merge("june")), apply(bench.allowed[-1], WRITES[5]))
    assert bench.tally.recovered > 0


def _apart(done: SchemaApplyResult) -> None:
    """Expect a commit of a branch, which the history of main does not show."""
    assert done.commit is not None


def commit_of(done: IndexResult | MergeResult) -> str:
    """Return the commit that something made."""
    assert done.commit is not None
    return done.commit.graph_commit_id


@pytest.mark.slow
def test_every_sync_of_upkeep(bench: Bench) -> None:
    with omnigraph.open(bench.root) as graph:
        versions = 2
        while versions % UPKEEP_INTERVAL != UPKEEP_INTERVAL - 1:
            quietly(bench, graph, PutOwn(0, f"k{versions}", versions))
            versions = graph.snapshot().entry("node:Own0").version
        before = len(graph.commits())
        cut_through(bench, graph, PutOwn(0, "last", 1))
        assert len(graph.commits()) == before + 2, "the write, and its upkeep"


@pytest.mark.slow
def test_every_sync_of_a_random_program(bench: Bench) -> None:
    program = Program(fresh_seed("CRASH_SEED") if bench.stride == 1 else fixed_seed("CRASH_SEED"))
    with omnigraph.open(bench.root) as graph:
        for _ in range(12):
            cut_through(bench, graph, program.next(bench.allowed[-1]))


@pytest.mark.case("engine", 333)
@pytest.mark.parametrize(
    "is_warm", [False, True], ids=["a fresh process", "a process that had published before"]
)
def test_a_publish_syncs_the_unsynced_one_that_it_builds_on(bench: Bench, is_warm: bool) -> None:
    with omnigraph.open(bench.root) as graph:
        quietly(bench, graph, WRITES[0])
        dead_write, second = PutNote("of the dead"), PutNote("of the living")
        killed = apply(bench.allowed[-1], dead_write)

        def both() -> str | None:
            die_at(bench, dead_write, "durability.pre_manifest_sync")
            if is_warm:
                return perform(graph, second)
            with omnigraph.open(bench.root) as fresh:
                return perform(fresh, second)

        bench.cut_during(both, apply(killed, second), between=[killed])


@pytest.mark.case("engine", 334)
def test_recovery_syncs_what_it_rolls_forward(bench: Bench) -> None:
    with omnigraph.open(bench.root) as graph:
        quietly(bench, graph, WRITES[0])
    operation = WRITES[1]
    killed = apply(bench.allowed[-1], operation)

    def recover() -> str | None:
        die_at(bench, operation, "durability.pre_table_sync")
        with omnigraph.open(bench.root) as graph:
            assert graph.snapshot().head.actor_id == "omnigraph:recovery"
            return graph.snapshot().head.graph_commit_id

    bench.cut_during(recover, killed)


def die_at(bench: Bench, operation: Operation, place: str) -> None:
    """Do what a process leaves that dies at a failpoint: it lets go of its locks and cleans nothing up."""
    with omnigraph.open(bench.root) as graph, failpoint(place, call=_die), pytest.raises(Death):
        perform(graph, operation)


class Death(BaseException):
    """The end of a process, as far as one that goes on can have it: nobody handles this."""


def _die() -> NoReturn:
    raise Death
