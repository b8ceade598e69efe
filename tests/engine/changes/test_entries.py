"""Every verb of changes asks before it reads, and a handle that was forked is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.core.errors import CommitNotFound, HandleForked, PolicyDenied
from omnigraph.graph.graph import Graph
from omnigraph.policy.request import AccessRequest, Action
from tests.engine.counting import listings
from tests.support.engine import counts
from tests.support.gates import guard, note
from tests.support.people_graph import people_graph
from tests.support.seam import internals

TYPES = ["Nonsense"]  # which nobody learns who is denied
ENTRIES: dict[str, tuple[AccessRequest, Callable[[Graph], object]]] = {
    "diff": (AccessRequest("ann", Action.READ), lambda graph: graph.diff("main", types=TYPES, actor="ann")),
    "commit_changes": (
        AccessRequest("ann", Action.READ),
        lambda graph: graph.commit_changes("x", types=TYPES, actor="ann"),
    ),
    "commit_changes_page": (
        AccessRequest("ann", Action.READ),
        lambda graph: graph.commit_changes_page("x", types=TYPES, actor="ann"),
    ),
    "changes": (
        AccessRequest("ann", Action.READ, "main"),
        lambda graph: graph.changes(types=TYPES, actor="ann"),
    ),
    "poll_changes": (
        AccessRequest("ann", Action.READ, "main"),
        lambda graph: graph.poll_changes(types=TYPES, actor="ann"),
    ),
    "baseline": (
        AccessRequest("ann", Action.EXPORT, "main"),
        lambda graph: graph.baseline(types=TYPES, actor="ann"),
    ),
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "graph")


@pytest.mark.case("engine", 359)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_denied_call_reads_nothing(graph: Graph, entry: str) -> None:
    request, call = ENTRIES[entry]
    gate = note(graph, is_open=False)
    before = counts(graph)

    with pytest.raises(PolicyDenied), listings() as listed:
        call(graph)

    assert (gate.asked, listed) == ([request], [])
    assert counts(graph) == before


def test_a_branch_and_a_commit_are_asked_for_by_the_branch_they_are_on(graph: Graph) -> None:
    graph.create_branch("june")
    commit = graph.mutate('query q() { insert Person { name: "z" } }', branch="june").commit
    assert commit is not None
    guard(graph, "read; branch_scope: unprotected")
    with pytest.raises(PolicyDenied, match="branch 'main'"):
        graph.diff("june", "main", actor="ann")
    assert list(graph.commit_changes(commit.graph_commit_id, actor="ann"))

    guard(graph, "read; branch_scope: protected")
    with pytest.raises(PolicyDenied, match="branch 'june'"):
        graph.diff("june", "main", actor="ann")
    with pytest.raises(CommitNotFound):
        graph.commit_changes(commit.graph_commit_id, actor="ann")


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_handle_of_another_process_is_refused(graph: Graph, entry: str) -> None:
    internals(graph).process = -1

    with pytest.raises(HandleForked):
        ENTRIES[entry][1](graph)
