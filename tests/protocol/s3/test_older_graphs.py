"""Graphs of earlier formats in an object store, where no lock makes hosts take turns."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from tests.support.forked import Forked
from tests.support.older_graphs import FEATURE_COMMITS, MAIN_COMMITS, write_older_graph
from tests.support.s3 import settings_of, stored
from tests.support.seam import internals

pytestmark = pytest.mark.slow

OPEN = "import sys, omnigraph; omnigraph.open(sys.argv[1]).close(); print('done')"
EVE = 'query q() { insert Person { name: "eve" } }'


@pytest.fixture
def place(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in settings_of(endpoint).items():
        monkeypatch.setenv(name, value)
    return endpoint


def assert_whole(graph: Graph) -> None:
    for branch, expected in (("main", MAIN_COMMITS), ("feature", FEATURE_COMMITS)):
        found = [(commit.graph_commit_id, commit.actor_id) for commit in graph.commits(branch=branch)]
        assert found[::-1][: len(expected)] == [(item.commit_id, item.actor) for item in expected]
    for item in MAIN_COMMITS:
        rows = graph.at(item.commit_id).query("query q() { match { $p: Person } return { $p.name } }")
        assert sorted(str(row["p.name"]) for row in rows.to_pylist()) == list(item.persons)
    assert graph.branches() == ["feature", "main"]


def keys(uri: str) -> list[str]:
    """Return the keys of main's manifest."""
    with omnigraph.open(uri, mode="ro") as graph:
        coordinator = internals(graph).parts.coordinator
        handle = coordinator.manifest.open_fresh(coordinator.address())
        return [str(key) for key in coordinator.manifest.read(handle)["object_id"].to_pylist()]


@pytest.mark.case("engine", 489)
@pytest.mark.parametrize("stamp", [1, 2, 3])
def test_an_older_graph_is_served_and_migrated(stamp: int, place: str, tmp_path: Path) -> None:
    uri = stored(write_older_graph(tmp_path / "graph", stamp).root)

    with omnigraph.open(uri, mode="ro") as graph:
        assert_whole(graph)
        assert graph.snapshot().stamp == stamp
    with omnigraph.open(uri) as graph:
        assert_whole(graph)
        assert graph.snapshot().stamp == omnigraph.INTERNAL_SCHEMA_VERSION
        graph.mutate(EVE, branch="feature")
        graph.mutate(EVE)
        graph.delete_branch("feature")
    with omnigraph.open(uri) as graph:
        assert graph.branches() == ["main"]
        assert len(graph.commits()) == len(MAIN_COMMITS) + 1


@pytest.mark.case("engine", 489)
@pytest.mark.parametrize("stamp", [1, 3])
def test_two_hosts_migrate_at_once(stamp: int, place: str, tmp_path: Path) -> None:
    uri = stored(write_older_graph(tmp_path / "graph", stamp).root)

    with Forked(OPEN, uri) as one, Forked(OPEN, uri) as other:
        assert (one.read_line(), other.read_line()) == ("done", "done")

    with omnigraph.open(uri) as graph:
        assert_whole(graph)
    assert len(keys(uri)) == len(set(keys(uri)))


@pytest.mark.case("engine", 489)
def test_a_branch_deleted_beside_a_host_that_stalls_stays_deleted(place: str, tmp_path: Path) -> None:
    uri = stored(write_older_graph(tmp_path / "graph", 2).root)
    done: list[bool] = []

    def overtake() -> None:
        if not done:
            done.append(True)
            with omnigraph.open(uri) as other:
                other.delete_branch("feature")

    with failpoint("migration.v2_to_v3.post_ref_drop", "call", overtake), omnigraph.open(uri) as graph:
        assert graph.branches() == ["main"]
        assert len(graph.commits()) == len(MAIN_COMMITS)

    assert done
