"""Which forks are kept although they are old: everything that anything names."""

import pytest

from omnigraph.commit.parts import Parts
from omnigraph.commit.reclaim import ORPHAN_GRACE_S, reclaim_orphaned_forks
from omnigraph.core.failpoint import EXIT_STATUS
from omnigraph.graph.graph import Graph
from omnigraph.history.branches import mint_ref
from tests.engine.branches.steps import insert, names, owners, refs, set_age
from tests.engine.branches.test_forks import FIRST_WRITE
from tests.support.forked import Forked
from tests.support.seam import internals


@pytest.fixture
def parts(graph: Graph) -> Parts:
    return internals(graph).parts


def reclaim_much_later(graph: Graph) -> set[str]:
    """Reclaim the forks of the persons when all of them are old, and return those that are left."""
    parts = internals(graph).parts
    later = parts.clock() + (ORPHAN_GRACE_S + 60) * 1_000_000
    object.__setattr__(parts, "clock", lambda: later)
    reclaim_orphaned_forks(parts, graph.snapshot().entry("node:Person"))
    return refs(graph, "node:Person")


def fork(graph: Graph, parts: Parts, ref: str) -> None:
    entry = graph.snapshot().entry("node:Person")
    parts.refs.create(parts.address(entry), entry.version, ref)


def test_a_fork_that_nothing_names_goes(graph: Graph, parts: Parts) -> None:
    fork(graph, parts, mint_ref("june", parts.new_id()))

    assert reclaim_much_later(graph) == set()


def test_a_fork_that_a_branch_shows_stays(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "new", "june")
    (shown,) = refs(graph, "node:Person")

    assert reclaim_much_later(graph) == {shown}
    assert names(graph, "june") == ["ann", "bob", "eve", "new"]


def test_a_fork_that_a_sidecar_names_stays(graph: Graph) -> None:
    graph.create_branch("june")
    place = "write.post_sidecar_pre_commit=exit"
    with Forked(FIRST_WRITE, graph.uri, "killed", OMNIGRAPH_FAILPOINTS=place) as script:
        assert script.wait() == EXIT_STATUS
    (named,) = refs(graph, "node:Person")

    assert reclaim_much_later(graph) == {named}


def test_a_fork_of_somebody_else_stays(graph: Graph, parts: Parts) -> None:
    fork(graph, parts, "experiment")

    assert reclaim_much_later(graph) == {"experiment"}


def test_a_fork_that_only_the_past_of_a_branch_shows_stays(graph: Graph) -> None:
    graph.create_branch("june")
    insert(graph, "new", "june")
    past = graph.snapshot("june")
    graph.merge("june")
    set_age(graph, "ann", 31)
    graph.merge("main", into="june")
    assert owners(graph, "june")["node:Person"] is None
    (fork,) = refs(graph, "node:Person")

    assert reclaim_much_later(graph) == {fork}
    source = "query q() { match { $p: Person } return { $p.name as name } }"
    assert len(graph.at(past).query(source).rows) == 4
