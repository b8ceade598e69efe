"""A reader serves a graph of an earlier storage format, and changes nothing."""

from pathlib import Path

import pytest

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.core.errors import BranchNotFound
from tests.support.engine import copy_of, files, reopen
from tests.support.migrated import EVE, assert_history
from tests.support.older_graphs import FEATURE_COMMITS, FIRST, MAIN_COMMITS, Expected, OlderGraph


@pytest.mark.case("engine", 45)
@pytest.mark.case("engine", 46)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_a_reader_serves_an_older_graph_and_changes_nothing(
    stamp: int, templates: dict[int, Path], tmp_path: Path
) -> None:
    root = copy_of(templates[stamp], tmp_path / "graph")
    before = files(root)

    with reopen(root, mode="ro") as graph:
        assert graph.branches() == ["feature", "main"]
        assert_history(graph, MAIN_COMMITS)
        assert_history(graph, FEATURE_COMMITS, "feature")
        assert graph.snapshot().stamp == stamp
        assert graph.verify().is_whole
        with pytest.raises(BranchNotFound):
            graph.commits(branch="__run__a")
        assert list(graph.diff(FIRST[1].commit_id, MAIN_COMMITS[-1].commit_id))

    assert files(root) == before


@pytest.mark.case("engine", 487)
def test_a_reader_of_an_older_graph_follows_its_migration(third: Path) -> None:
    with reopen(third, mode="ro") as reader:
        assert_history(reader, MAIN_COMMITS)
        with reopen(third) as writer:
            writer.create_branch("june")
            writer.mutate(EVE, branch="june")
            writer.mutate(EVE)

        assert reader.branches() == ["feature", "june", "main"]
        assert reader.snapshot().stamp == INTERNAL_SCHEMA_VERSION
        assert "eve" in reader.table("Person", branch="june")["name"].to_pylist()
        assert len(reader.commits()) == len(MAIN_COMMITS) + 1
        assert_history(reader, FEATURE_COMMITS, "feature")


def test_a_reader_sees_what_an_earlier_build_still_publishes(third: Path) -> None:
    older = OlderGraph(third, 3)
    with reopen(third, mode="ro") as graph:
        assert len(graph.commits()) == len(MAIN_COMMITS)
        older.append("node:Person", [("eli", 1, "eli")])
        version = older.publish(("node:Person", None))
        assert "eli" in graph.table("Person")["name"].to_pylist()

        older.record(Expected(7, version, 6, "eli", ()))

        assert graph.commits()[0].actor_id == "eli"
