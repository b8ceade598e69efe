"""Every verb of changes asks before it reads, and a handle that was forked is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.core.errors import HandleForked, PolicyDenied
from omnigraph.graph.graph import Graph
from tests.support.engine import counts
from tests.support.people_graph import people_graph
from tests.support.seam import internals

ENTRIES: dict[str, tuple[str, Callable[[Graph], object]]] = {
    "diff": ("read", lambda graph: graph.diff("main", actor="ann")),
    "commit_changes": ("read", lambda graph: graph.commit_changes("x", actor="ann")),
    "commit_changes_page": ("read", lambda graph: graph.commit_changes_page("x", actor="ann")),
    "changes": ("read", lambda graph: graph.changes(actor="ann")),
    "poll_changes": ("read", lambda graph: graph.poll_changes(actor="ann")),
    "baseline": ("export", lambda graph: graph.baseline(actor="ann")),
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "graph")


@pytest.mark.case("engine", 359)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_denied_call_reads_nothing(graph: Graph, entry: str) -> None:
    action, call = ENTRIES[entry]
    asked: list[tuple[str | None, str, str]] = []

    def deny(actor: str | None, wanted: str, resource: str) -> None:
        asked.append((actor, wanted, resource))
        raise PolicyDenied(action=wanted, actor=actor, branch=resource)

    internals(graph).authorize = deny
    before = counts(graph)

    with pytest.raises(PolicyDenied):
        call(graph)

    assert asked == [("ann", action, "main")]
    assert counts(graph) == before


def test_a_branch_and_a_commit_are_asked_for_by_the_branch_they_are_on(graph: Graph) -> None:
    graph.create_branch("june")
    commit = graph.mutate('query q() { insert Person { name: "z" } }', branch="june").commit
    assert commit is not None
    asked: list[str] = []
    internals(graph).authorize = lambda _actor, _action, resource: asked.append(resource)

    graph.diff("june", "main")
    assert set(asked) == {"june", "main"}
    asked.clear()

    graph.commit_changes(commit.graph_commit_id)
    assert asked[-1] == "june"


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_handle_of_another_process_is_refused(graph: Graph, entry: str) -> None:
    internals(graph).process = -1

    with pytest.raises(HandleForked):
        ENTRIES[entry][1](graph)
