"""A write of a branch that touches a table of its own and one that it forks."""

import pytest

from omnigraph.core.errors import ExpectedVersionMismatch
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from tests.engine.branches.steps import everything, insert, names, owners
from tests.support.engine import foreign, recovery_files

HIRE = """
query hire() {
    insert Person { name: "new", age: 1 }
    insert WorksAt { from: "new", to: "acme" }
}
"""


def test_a_conflict_after_both_commits_keeps_the_sidecar(graph: Graph) -> None:
    """The fork can be dropped, the branch's own table has moved: only the sidecar says why."""
    graph.create_branch("june")
    insert(graph, "may", "june")
    graph.mutate('query add() { insert Company { name: "zeta" } }', branch="june")
    before = everything(graph, "june")
    rival = foreign(graph)
    assert owners(graph, "june")["node:Person"] is not None
    assert owners(graph, "june")["edge:WorksAt"] is None
    seen: list[bool] = []

    def move_what_was_read() -> None:
        if not seen:
            seen.append(True)
            rival.mutate('query add() { insert Company { name: "eta" } }', branch="june")

    with (
        failpoint("write.post_finalize_pre_publisher", "call", move_what_was_read),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        graph.mutate(HIRE, branch="june")

    assert seen
    assert caught.value.table_key == "node:Company"
    operation = caught.value.recovery_operation_id
    assert operation is not None
    assert f"{operation}.json" in recovery_files(graph)

    insert(graph, "later", "june")

    assert names(graph, "june") == ["ann", "bob", "eve", "later", "may"]
    assert everything(graph, "june")["WorksAt"] == before["WorksAt"]
    assert recovery_files(graph) == []
