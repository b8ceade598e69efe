"""Graphs that lost their stamp, or were put back to an older manifest."""

import shutil
from pathlib import Path

import lance
import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import InvariantViolation
from omnigraph.history.manifest_rows import MANIFEST_DIR, STAMP_KEY
from tests.support.engine import reopen
from tests.support.migrated import EVE, assert_history, controls, manifest, manifest_rows, stamp_of
from tests.support.older_graphs import MAIN_COMMITS, Expected, OlderGraph, write_older_graph


@pytest.mark.case("engine", 27)
def test_a_graph_that_lost_its_stamp_gets_it_back_and_nothing_else(third: Path) -> None:
    with reopen(third) as graph:
        graph.create_branch("june")
        graph.mutate(EVE, branch="june")
        graph.mutate(EVE)
    dataset = manifest(third)
    dataset.create_branch("left-over")
    rows, known, commits = manifest_rows(third), controls(third), graph_commits(third)
    OlderGraph(third, 3).record(Expected(9, 9, 6, "late", ()))  # nobody asks those datasets any more
    manifest(third).update_schema_metadata({STAMP_KEY: None})
    assert stamp_of(third) == 1

    with reopen(third, mode="ro") as graph:
        assert graph.snapshot().stamp == 1
        assert [commit.graph_commit_id for commit in graph.commits()] == commits
    with reopen(third) as graph:
        assert graph.branches() == ["feature", "june", "main"]
        assert [commit.graph_commit_id for commit in graph.commits()] == commits

    assert stamp_of(third) == INTERNAL_SCHEMA_VERSION
    assert (manifest_rows(third), controls(third)) == (rows, known)


def graph_commits(root: Path) -> list[str]:
    """Return the ids of main's commits, newest first."""
    with reopen(root) as graph:
        return [commit.graph_commit_id for commit in graph.commits()]


def test_a_manifest_that_was_put_back_is_migrated_again_without_new_branches(third: Path) -> None:
    before = manifest(third).version
    with reopen(third) as graph:
        graph.create_branch("june")
        graph.mutate(EVE, branch="june")
    lance.LanceDataset.commit(str(third / MANIFEST_DIR), lance.LanceOperation.Restore(before))
    assert stamp_of(third) == 3

    with reopen(third) as graph:
        assert graph.branches() == ["feature", "june", "main"]
        assert_history(graph, MAIN_COMMITS)
        assert "eve" in graph.table("Person", branch="june")["name"].to_pylist()


def test_rows_that_nothing_numbers_are_loud(third: Path) -> None:
    rows = manifest(third).to_table()
    shutil.rmtree(third / MANIFEST_DIR)
    lance.write_dataset(rows, str(third / MANIFEST_DIR))  # without stable row ids

    for mode in ("ro", "rw"):
        with pytest.raises(InvariantViolation, match="stable row ids"):
            reopen(third, mode="rw" if mode == "rw" else "ro")


@pytest.mark.case("engine", 484)
def test_a_branch_called_like_a_run_survives_a_lost_stamp(tmp_path: Path) -> None:
    older = write_older_graph(tmp_path / "graph", 3)
    older.branch("__run__mine")
    with reopen(older.root) as graph:
        assert graph.branches() == ["__run__mine", "feature", "main"]
    manifest(older.root).update_schema_metadata({STAMP_KEY: "2"})

    with reopen(older.root) as graph:
        assert graph.branches() == ["__run__mine", "feature", "main"]
        assert_history(graph, MAIN_COMMITS, "__run__mine")
