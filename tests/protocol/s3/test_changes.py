"""Changes on an object store: deletion files are read where they lie, also those of a fork's parent."""

import pytest

import omnigraph
from omnigraph.storage.control.uri import GraphRoot
from tests.engine.changes.reading import committed, ordered, short, update_age
from tests.support.protocol import BEFORE, SCHEMA, records

pytestmark = pytest.mark.slow


def test_branches_with_deletions_on_both_sides_are_compared(root: GraphRoot) -> None:
    graph = omnigraph.init(root.uri, SCHEMA)
    graph.load(records(BEFORE), "append")
    start = graph.commits(limit=1)[0].graph_commit_id
    update_age(graph, "ann", 31)
    graph.create_branch("june")
    update_age(graph, "bob", 41, branch="june")
    committed(graph, 'query q() { delete Company where name = "ibex" }', branch="june")
    graph.create_branch("july")  # its fork goes on with the deletion file of main
    committed(graph, 'query q() { insert Person { name: "dan" } }', branch="july")
    update_age(graph, "cid", 51)

    assert ordered(graph.diff("june")) == ["-Company ibex", "~Person bob", "~Person cid"]
    assert ordered(graph.diff("june", start)) == ["-Company ibex", "~Person ann", "~Person bob"]
    assert ordered(graph.diff("july", start)) == ["~Person ann", "+Person dan"]
    blocks = list(graph.changes(start=f"after:{start}", branch="june"))
    assert [short(block.changes) for block in blocks] == [["~Person ann"], ["~Person bob"], ["-Company ibex"]]
