"""Copies between a disk and an object store, and inside one."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.core.errors import AlreadyInitialized, CloneUnfinished, HistoricalVersionReclaimed
from omnigraph.core.failpoint import ENVIRONMENT, EXIT_STATUS, InjectedFault, failpoint
from omnigraph.operations.clone.clone import clone
from omnigraph.storage.control.uri import GraphRoot
from tests.engine.clone.steps import DELETE, EDGES, INSERT, PERSONS, SCHEMA, UPDATE, persons, shown, shown_at
from tests.support.engine import new_graph
from tests.support.forked import Forked
from tests.support.s3 import new_root

pytestmark = [pytest.mark.slow, pytest.mark.case("engine", 527)]

RUN = """
import sys
from omnigraph.operations.clone.clone import clone
clone(sys.argv[1], sys.argv[2])
"""
WRITE = """
import sys
import omnigraph
with omnigraph.open(sys.argv[1]) as graph:
    for number in range(3):
        for branch in ("main", "review"):
            text = 'query q($n: String) { insert Person { name: $n } }'
            while True:
                try:
                    graph.mutate(text, params={"n": f"{sys.argv[2]} {number}"}, branch=branch)
                    break
                except omnigraph.ConflictError:
                    continue  # the other one came first
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A graph on a disk, whose branches share files with main and with each other."""
    root = tmp_path / "source"
    with new_graph(root, SCHEMA, *PERSONS, *EDGES) as graph:
        graph.mutate(DELETE, params={"n": "p0"})
        graph.ensure_indices()
        graph.create_branch("review")
        graph.mutate(UPDATE, params={"n": "p1", "a": 91}, branch="review")
        graph.create_branch("nested", from_="review")
        graph.mutate(INSERT, params={"n": "new"}, branch="nested")
        graph.mutate(INSERT, params={"n": "late"})
    return str(root)


def test_a_graph_goes_to_a_store_and_to_another_and_back(
    source: str, root: GraphRoot, endpoint: str, tmp_path: Path
) -> None:
    second, back = new_root(endpoint).uri, tmp_path / "back"
    expected = shown_at(source)

    clone(source, root.uri)
    clone(root.uri, second)
    clone(second, str(back))

    for place in (root.uri, second, str(back)):
        assert shown_at(place) == expected
        assert omnigraph.check_copy(source, place, deep=True).is_same
        with omnigraph.open(place) as graph:
            graph.mutate(UPDATE, params={"n": "p2", "a": 92}, branch="nested")
            graph.mutate(DELETE, params={"n": "p3"}, branch="review")
            graph.merge("nested", "review")
            graph.merge("review", "main")
            graph.create_branch("further", from_="nested")
            graph.mutate(INSERT, params={"n": "further"}, branch="further")
            assert {"new", "late"} <= set(graph.table("Person")["name"].to_pylist())
            assert graph.verify().is_whole
    assert shown_at(source) == expected
    with pytest.raises(AlreadyInitialized):
        clone(source, root.uri)


def test_a_part_of_a_graph_goes_to_a_store_and_back(
    source: str, root: GraphRoot, endpoint: str, tmp_path: Path
) -> None:
    expected = shown_at(source)
    oldest, early = expected["main"][-2][0], new_root(endpoint).uri

    result = clone(source, root.uri, branches=["nested"], depth=1)
    clone(root.uri, str(tmp_path / "back"))
    clone(source, early, at=oldest)

    assert result.unreadable == {name: len(expected[name]) - 1 for name in ("main", "nested")}
    for place in (root.uri, tmp_path / "back"):
        with omnigraph.open(place) as graph:
            assert graph.branches() == ["main", "nested"]
            head, rows = expected["nested"][0]
            assert persons(graph, head) == rows
            with pytest.raises(HistoricalVersionReclaimed):
                persons(graph, expected["nested"][-2][0])
            graph.mutate(INSERT, params={"n": "more"}, branch="nested")
            graph.merge("nested", "main")
    with omnigraph.open(early) as graph:
        assert shown(graph) == {"main": expected["main"][-2:]}
        graph.mutate(INSERT, params={"n": "next"})
        assert graph.verify().is_whole


@pytest.mark.case("engine", 880)
def test_a_past_commit_of_a_branch_goes_to_a_store_and_back(
    source: str, root: GraphRoot, endpoint: str, tmp_path: Path
) -> None:
    expected, second, back = shown_at(source)["review"], new_root(endpoint).uri, tmp_path / "back"
    commit, rows = expected[0]
    choice: Any = {"branches": ["review"], "at": commit}

    clone(source, root.uri, **choice)
    clone(root.uri, second, **choice)
    clone(second, str(back), **choice)

    for place in (root.uri, second, back):
        assert omnigraph.check_copy(source, place, **choice, deep=True).is_same
        with omnigraph.open(place) as graph:
            assert shown(graph)["review"] == expected
            assert "late" not in graph.table("Person")["name"].to_pylist()
            assert persons(graph, commit) == rows
            graph.mutate(INSERT, params={"n": "more"}, branch="review")
            graph.merge("review", "main")
            assert graph.verify(deep=True).is_whole


def test_a_run_that_was_killed_goes_on_from_the_objects_that_are_there(
    source: str, root: GraphRoot, tmp_path: Path
) -> None:
    for point in ("clone.before_file=skip:12,exit", "clone.post_control_pre_manifest=exit"):
        with Forked(RUN, source, root.uri, **{ENVIRONMENT: point}) as script:
            assert script.wait() == EXIT_STATUS
        for mode in ("ro", "rw"):
            with pytest.raises(CloneUnfinished):
                omnigraph.open(root.uri, mode=mode)
    copied: list[int] = []

    with failpoint("clone.before_file", "call", lambda: copied.append(1)):
        result = clone(source, root.uri)

    assert (copied, result.files_copied) == ([], 1)  # the last file alone
    assert shown_at(root.uri) == shown_at(source)
    with Forked(
        RUN, root.uri, tmp_path / "back", **{ENVIRONMENT: "clone.before_file=skip:12,exit"}
    ) as script:
        assert script.wait() == EXIT_STATUS
    clone(root.uri, str(tmp_path / "back"))
    assert shown_at(tmp_path / "back") == shown_at(source)


def test_a_copy_in_a_store_is_written_by_two_processes(source: str, root: GraphRoot) -> None:
    clone(source, root.uri)

    with Forked(WRITE, root.uri, "one") as one, Forked(WRITE, root.uri, "other") as other:
        assert (one.wait(), other.wait()) == (0, 0)

    with omnigraph.open(root.uri, mode="ro") as graph:
        for branch in ("main", "review"):
            names = set(graph.table("Person", branch=branch)["name"].to_pylist())
            assert {f"{who} {number}" for who in ("one", "other") for number in range(3)} <= names
        assert graph.verify().is_whole


@pytest.mark.case("engine", 653)
def test_a_copy_that_is_finished_from_another_copy_shows_what_that_shows(root: GraphRoot) -> None:
    one, other, target = (f"{root.uri}/{name}" for name in ("one", "other", "copy"))
    with omnigraph.init(one, "node Person {\n    name: String @key\n}\n") as graph:
        graph.mutate('query q() { insert Person { name: "both" } }')
    clone(one, other)
    for place, name in ((one, "one"), (other, "two")):
        with omnigraph.open(place) as graph:
            graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}')
    with failpoint("clone.post_files_pre_control", "raise"), pytest.raises(InjectedFault):
        clone(one, target)

    clone(other, target)

    with omnigraph.open(target, mode="ro") as graph:
        assert {row["name"] for row in graph.table("Person").to_pylist()} == {"both", "two"}
