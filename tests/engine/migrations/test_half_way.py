"""Steps of a migration that end half-way, and legacy datasets that cannot be read."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import lance
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.core.failpoint import InjectedFault, failpoint
from omnigraph.history.legacy_lineage import LEGACY_ACTORS, LEGACY_COMMITS
from tests.support.engine import copy_of, reopen
from tests.support.migrated import (
    ACTOR_OPEN,
    EVE,
    LEGACY_OPEN,
    PRE_STAMP,
    assert_history,
    manifest,
    manifest_rows,
    of_kind,
    stamp_of,
)
from tests.support.older_graphs import MAIN_COMMITS, Expected, OlderGraph
from tests.support.queries import mutation


@pytest.mark.case("engine", 33)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_step_that_ended_before_its_stamp_is_only_stamped(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    with failpoint(PRE_STAMP[stamp], "raise"), pytest.raises(InjectedFault):
        reopen(root)
    assert stamp_of(root) == stamp
    before, rows = manifest(root).version, manifest_rows(root)

    with failpoint(PRE_STAMP.get(stamp + 1, "publish.before_update"), "raise"), suppress(InjectedFault):
        reopen(root)

    if stamp == 3:
        assert (manifest(root).version, manifest_rows(root)) == (before + 1, rows)
    assert stamp_of(root) > stamp
    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 34)
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_without_its_lineage_a_graph_begins_a_new_history(third: Path, mode: str) -> None:
    shutil.rmtree(third / LEGACY_COMMITS)

    if mode == "ro":
        with reopen(third, mode="ro") as graph:
            assert graph.commits() == []
            assert len(graph.table("Person")) == 4
        assert stamp_of(third) == 3
    with reopen(third) as graph:
        assert stamp_of(third) == INTERNAL_SCHEMA_VERSION
        assert graph.commits() == []
        assert of_kind(third, "graph_head") == []
        assert len(graph.query("query q() { match { $p: Person } return { $p.name } }").to_pylist()) == 4
        graph.create_branch("early")
        assert graph.commits(branch="early") == []
        made = graph.mutate(EVE).commit
        assert made is not None
        assert made.parent_commit_id is None
    with reopen(third) as graph:
        assert [commit.graph_commit_id for commit in graph.commits()] == [made.graph_commit_id]
        assert len(graph.table("Person")) == 5
        graph.mutate(EVE, branch="early")
        assert len(graph.commits(branch="early")) == 1
        graph.mutate(mutation('insert Person { name: "fay" }'))
        assert graph.commits()[0].parent_commit_id == made.graph_commit_id


def failing(kind: str) -> Callable[[], None]:
    """Return what fails like a store."""

    def fail() -> None:
        raise StorageError("the store failed: it was not found, perhaps", kind=kind)

    return fail


@pytest.mark.case("engine", 35)
@pytest.mark.case("engine", 36)
@pytest.mark.case("engine", 37)
@pytest.mark.parametrize("kind", ["transient", "not_found"])
@pytest.mark.parametrize("place", [LEGACY_OPEN, ACTOR_OPEN])
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_lineage_that_cannot_be_read_is_never_taken_for_empty(
    third: Path, kind: str, place: str, mode: str
) -> None:
    with failpoint(place, "call", failing(kind)), pytest.raises(StorageError, match="the store failed"):
        reopen(third, mode="rw" if mode == "rw" else "ro")
    assert stamp_of(third) == 3
    assert of_kind(third, "graph_commit") == []

    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 36)
def test_without_authors_the_commits_have_none(third: Path) -> None:
    shutil.rmtree(third / LEGACY_ACTORS)

    with reopen(third) as graph:
        assert [commit.graph_commit_id for commit in graph.commits()] == [
            item.commit_id for item in reversed(MAIN_COMMITS)
        ]
        assert {commit.actor_id for commit in graph.commits()} == {None}


@pytest.mark.parametrize("place", [LEGACY_OPEN, ACTOR_OPEN])
def test_a_fault_that_nobody_expects_leaves_the_stamp(third: Path, place: str) -> None:
    with failpoint(place, "raise"), pytest.raises(InjectedFault):
        reopen(third)

    assert stamp_of(third) == 3
    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 486)
def test_a_branch_without_its_part_of_the_lineage_is_refused_and_main_is_not(third: Path) -> None:
    lance.dataset(str(third / LEGACY_COMMITS)).branches.delete("feature")

    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)
        graph.mutate(EVE)
        for call in (graph.commits, lambda branch: graph.mutate(EVE, branch=branch)):
            with pytest.raises(StorageError, match="feature"):
                call(branch="feature")
    assert stamp_of(third, "feature") == 3


def test_rows_of_one_commit_that_contradict_each_other_are_loud(third: Path) -> None:
    older = OlderGraph(third, 3)
    older.record(Expected(6, 5, 5, None, ()))  # without the merge

    with pytest.raises(InvariantViolation, match="two rows of commit"):
        reopen(third)

    assert stamp_of(third) == 3


def test_a_ref_that_can_be_no_branch_is_loud(third: Path) -> None:
    manifest(third).create_branch("A" * 80)  # capitals take three bytes in the name of a control object

    with pytest.raises(InvariantViolation, match="cannot be a branch"):
        reopen(third)

    assert stamp_of(third) == 3


def test_the_lock_of_a_schema_change_is_no_branch(third: Path) -> None:
    manifest(third).create_branch("__schema_apply_lock__")

    with reopen(third, mode="ro") as graph:
        assert graph.branches() == ["feature", "main"]
    with reopen(third) as graph:
        assert graph.branches() == ["feature", "main"]
        graph.create_branch("other")
