"""Migrations that meet other migrations, and writers of earlier builds."""

from pathlib import Path

import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import RowLevelCasContention
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.history.migrations import MIGRATION_MERGE_RETRY_BUDGET
from tests.support.engine import copy_of, reopen, together
from tests.support.migrated import (
    ACTOR_OPEN,
    EVE,
    LEGACY_OPEN,
    PRE_STAMP,
    assert_history,
    manifest,
    manifest_rows,
    merge,
    of_kind,
    stamp_at,
    stamp_of,
)
from tests.support.older_graphs import FEATURE_COMMITS, MAIN_COMMITS, Expected, OlderGraph, annotation_of


@pytest.mark.case("engine", 38)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_two_handles_migrate_at_once(stamp: int, templates: dict[int, Path], tmp_path: Path) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    opened = together(*[lambda: reopen(root)] * 3)

    for graph in opened:
        assert isinstance(graph, Graph), graph
        assert_history(graph, MAIN_COMMITS)
        graph.close()
    assert len(of_kind(root, "graph_commit")) == len(MAIN_COMMITS)
    assert len(manifest_rows(root)) == len({row["object_id"] for row in manifest_rows(root)})
    assert stamp_of(root) == INTERNAL_SCHEMA_VERSION


def without_lock(root: Path) -> None:
    """Migrate main as a process on another host does, which shares no lock with this one."""
    from omnigraph.history.identity import MAIN_BRANCH
    from omnigraph.operations.context import make_publisher
    from omnigraph.operations.open import make_parts
    from omnigraph.storage.control.durability import Durability

    make_publisher(make_parts(str(root), durability=Durability.PROCESS)).bring_up(MAIN_BRANCH)


@pytest.mark.case("engine", 38)
@pytest.mark.parametrize(
    ("stamp", "place"),
    [
        (1, PRE_STAMP[1]),
        (2, "migration.v2_to_v3.post_ref_drop"),
        (2, PRE_STAMP[2]),
        (3, "migration.v3_to_v4.post_control"),
        (3, LEGACY_OPEN),
        (3, ACTOR_OPEN),
        (3, PRE_STAMP[3]),
        (3, "migration.v4_stamp.force_incompatible"),
    ],
)
def test_a_migration_that_another_one_overtakes_converges(
    stamp: int, place: str, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    done: list[bool] = []

    def overtake() -> None:
        if not done:
            done.append(True)
            without_lock(root)

    with failpoint(place, "call", overtake), reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert graph.branches() == ["feature", "main"]

    assert done
    assert len(manifest_rows(root)) == len({row["object_id"] for row in manifest_rows(root)})
    assert (stamp_of(root), annotation_of(root)) == (INTERNAL_SCHEMA_VERSION, True)
    stamps = [stamp_at(root, version) for version in range(1, manifest(root).version + 1)]
    assert stamps == sorted(stamps)


@pytest.mark.case("engine", 40)
@pytest.mark.parametrize("stamp", [1, 3])
def test_a_stamp_that_loses_every_round_is_contention(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")

    with (
        failpoint("migration.v4_stamp.force_incompatible", "contention"),
        pytest.raises(RowLevelCasContention, match="stamp 4"),
    ):
        reopen(root)

    assert stamp_of(root) == 3
    with reopen(root) as graph:
        assert_history(graph, MAIN_COMMITS)


class Rival:
    """A build of an earlier format that rewrites a row of a manifest, some times."""

    def __init__(self, root: Path, ref: str | None, rounds: int) -> None:
        self.root, self.ref, self.rounds = root, ref, rounds

    def __call__(self) -> None:
        if self.rounds:
            self.rounds -= 1
            dataset = manifest(self.root, self.ref)
            merge(dataset, dataset.to_table().slice(0, 1))


@pytest.mark.case("engine", 41)
def test_rows_that_lose_every_round_are_contention(third: Path) -> None:
    rival = Rival(third, None, MIGRATION_MERGE_RETRY_BUDGET)

    with failpoint(LEGACY_OPEN, "call", rival), pytest.raises(RowLevelCasContention, match="lineage"):
        without_lock(third)

    assert (stamp_of(third), rival.rounds) == (3, 0)
    assert of_kind(third, "graph_commit") == []


@pytest.mark.case("engine", 41)
def test_a_publish_tries_again_when_a_migration_lost_every_round(third: Path) -> None:
    with reopen(third) as graph:
        graph.snapshot("feature")
        rival = Rival(third, "feature", MIGRATION_MERGE_RETRY_BUDGET)
        rival.rounds += 10  # reads of the state pass the place as well

        def only_in_publishes() -> None:
            if of_kind(third, "graph_commit", "feature") == []:
                rival()

        with failpoint(LEGACY_OPEN, "call", only_in_publishes):
            made = graph.mutate(EVE, branch="feature").commit

        assert rival.rounds == 0
        assert made is not None
        assert made.parent_commit_id == FEATURE_COMMITS[-1].commit_id


@pytest.mark.case("engine", 485)
def test_what_an_earlier_build_publishes_beside_the_migration_is_brought_up_too(third: Path) -> None:
    older = OlderGraph(third, 3)
    done: list[bool] = []
    late = Expected(7, 6, 6, "eli", ("ann", "bob", "cid", "dan", "eli"))

    def publish() -> None:
        if not done:
            done.append(True)
            older.append("node:Person", [("eli", 1, "eli")])
            assert older.publish(("node:Person", None)) == late.version
            older.record(late)

    with failpoint(ACTOR_OPEN, "call", publish), reopen(third) as graph:
        assert_history(graph, (*MAIN_COMMITS, late))
        graph.mutate(EVE)

    assert of_kind(third, "graph_head")[0]["published_at"] is None
    assert len(manifest_rows(third)) == len({row["object_id"] for row in manifest_rows(third)})
