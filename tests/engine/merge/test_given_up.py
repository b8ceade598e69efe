"""Merges after a branch has given commits up that another one had merged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.core.errors import AmbiguousMergeBase
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from omnigraph.operations.merge.merge import MergeOutcome
from tests.engine.merge.world import ages, node, put, remove, set_age

START = {"ann": 30, "bob": 30, "cid": 30, "dan": 30}


@pytest.fixture
def root(world: Graph) -> Path:
    """June and may have merged eve and the new age of bob, which main has given up since."""
    root = Path(world.uri)
    to = world.snapshot().manifest_version
    world.create_branch("may")
    set_age(world, "june", "ann", 31)
    set_age(world, "may", "cid", 33)
    put(world, None, node("Person", name="eve", age=1))
    set_age(world, None, "bob", 41)
    for branch in ("june", "may"):
        world.merge("main", into=branch)
    world.close()
    omnigraph.repair(root, to)
    return root


@pytest.fixture
def graph(root: Path) -> Iterator[Graph]:
    """The graph, opened again."""
    with open_graph(root, durability="process") as graph:
        yield graph


@pytest.mark.case("engine", 419)
def test_what_was_given_up_comes_back_with_the_branch_that_merged_it(graph: Graph) -> None:
    assert ages(graph) == START
    graph.merge("main", into="june")
    assert ages(graph, "june") == {**START, "ann": 31, "bob": 41, "eve": 1}
    put(graph, None, node("Person", name="fay", age=2))

    result = graph.merge("june")

    assert result.outcome is MergeOutcome.MERGED
    assert ages(graph) == {**START, "ann": 31, "bob": 41, "eve": 1, "fay": 2}
    remove(graph, None, "Person", "eve")
    assert graph.merge("main", into="june").outcome is MergeOutcome.FAST_FORWARD
    assert ages(graph, "june") == {**START, "ann": 31, "bob": 41, "fay": 2}


@pytest.mark.case("engine", 419)
def test_what_was_given_up_stays_where_it_was_merged(graph: Graph) -> None:
    put(graph, None, node("Person", name="fay", age=2))
    put(graph, None, node("Person", name="gus", age=3))

    assert graph.merge("main", into="june").outcome is MergeOutcome.MERGED
    assert ages(graph, "june") == {**START, "ann": 31, "bob": 41, "eve": 1, "fay": 2, "gus": 3}
    assert graph.merge("june").outcome is MergeOutcome.FAST_FORWARD
    assert ages(graph) == ages(graph, "june")


@pytest.mark.case("engine", 419)
def test_a_meeting_in_what_was_given_up_is_refused(graph: Graph) -> None:
    put(graph, None, node("Person", name="fay", age=2))
    before = graph.snapshot("june").head

    with pytest.raises(AmbiguousMergeBase, match="of a branch that was deleted or gave it up") as refused:
        graph.merge("may", into="june")

    assert refused.value.ancestors == (graph.snapshot("may").head.merged_parent_commit_id,)
    assert graph.snapshot("june").head == before
