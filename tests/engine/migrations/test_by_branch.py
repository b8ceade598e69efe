"""Branches are migrated by their first write, each for itself."""

import json
import shutil
from pathlib import Path

import lance
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import BranchNotFound
from omnigraph.history.legacy_lineage import LEGACY_ACTORS, LEGACY_COMMITS
from omnigraph.history.manifest_rows import MANIFEST_DIR
from tests.support.engine import copy_of, files, reopen
from tests.support.migrated import EVE, assert_history, controls, manifest, manifest_rows, of_kind, stamp_of
from tests.support.older_graphs import FEATURE_COMMITS, MAIN_COMMITS, Expected, OlderGraph
from tests.support.queries import mutation


@pytest.mark.case("engine", 42)
def test_a_branch_is_migrated_by_its_first_write(third: Path) -> None:
    before = files(third / MANIFEST_DIR / "tree" / "feature")
    with reopen(third) as graph:
        assert files(third / MANIFEST_DIR / "tree" / "feature") == before
        assert controls(third)["feature.json"]["ref"] == "feature"
        assert_history(graph, FEATURE_COMMITS, "feature")
        assert stamp_of(third, "feature") == 3
        main = manifest_rows(third)

        made = graph.mutate(EVE, branch="feature", actor="eve").commit

        assert manifest_rows(third) == main
        assert stamp_of(third, "feature") == INTERNAL_SCHEMA_VERSION
        assert made is not None
        assert made.parent_commit_id == FEATURE_COMMITS[-1].commit_id
        (head,) = of_kind(third, "graph_head", "feature")
        assert head["object_id"] == "graph_head:feature"
        assert json.loads(head["metadata"])["head_commit_id"] == made.graph_commit_id
        assert [commit.actor_id for commit in graph.commits(branch="feature")] == [
            *("eve", "cid", "bob", "ann", None)
        ]
        assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 480)
def test_a_branch_made_from_one_that_was_not_migrated_has_its_commits(third: Path) -> None:
    with reopen(third) as graph:
        graph.create_branch("next", "feature")

        assert stamp_of(third, "feature") == INTERNAL_SCHEMA_VERSION
        assert_history(graph, FEATURE_COMMITS, "feature")
        assert_history(graph, FEATURE_COMMITS, "next")
        graph.mutate(EVE, branch="next")
        assert graph.commits(branch="next")[0].parent_commit_id == FEATURE_COMMITS[-1].commit_id


def test_a_branch_that_was_not_migrated_is_merged_and_deleted(third: Path) -> None:
    with reopen(third) as graph:
        graph.mutate(mutation('delete Person where name = "cid"'))
        merged = graph.merge("feature")
        assert merged.commit is None or merged.commit.merged_parent_commit_id == FEATURE_COMMITS[-1].commit_id
        graph.delete_branch("feature")

        assert graph.branches() == ["main"]
        with pytest.raises(BranchNotFound):
            graph.commits(branch="feature")
    with reopen(third) as graph:
        assert graph.branches() == ["main"]


@pytest.mark.case("engine", 47)
def test_a_legacy_commit_added_after_the_migration_is_ignored(third: Path) -> None:
    reopen(third).close()
    OlderGraph(third, 3).record(Expected(9, 9, 6, "late", ()))

    for mode in ("rw", "ro"):
        with reopen(third, mode="rw" if mode == "rw" else "ro") as graph:
            assert_history(graph, MAIN_COMMITS)


@pytest.mark.case("engine", 48)
@pytest.mark.parametrize("lost", ["datasets", "ref"])
def test_after_the_migration_nobody_needs_the_legacy_datasets(third: Path, lost: str) -> None:
    with reopen(third) as graph:
        graph.mutate(EVE, branch="feature")
    if lost == "ref":
        lance.dataset(str(third / LEGACY_COMMITS)).branches.delete("feature")
    else:
        shutil.rmtree(third / LEGACY_COMMITS)
        shutil.rmtree(third / LEGACY_ACTORS)

    with reopen(third) as graph:
        assert_history(graph, MAIN_COMMITS)
        assert len(graph.commits(branch="feature")) == len(FEATURE_COMMITS) + 1
        assert "eve" in graph.table("Person", branch="feature")["name"].to_pylist()
        graph.create_branch("next", "feature")
        graph.mutate(mutation('insert Person { name: "fay" }'), branch="next")
        graph.mutate(mutation('insert Person { name: "gil" }'), branch="feature")
        merged = graph.merge("next", "feature").commit
        assert merged is not None
        assert merged.merged_parent_commit_id is not None
        assert graph.merge("feature").commit is not None


@pytest.mark.case("engine", 49)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_every_migration_of_one_graph_gives_the_same(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    outputs = []
    for number in range(3):
        root = copy_of(templates[stamp], tmp_path / str(number))
        reopen(root).close()
        schema = manifest(root).schema
        outputs.append((manifest_rows(root), controls(root), schema, schema.metadata, manifest(root).version))

    assert outputs[0] == outputs[1] == outputs[2]
    assert [row["object_id"] for row in outputs[0][0] if row["object_type"] == "graph_commit"] == [
        item.commit_id for item in MAIN_COMMITS
    ]
