"""Calls that end before anything is looked at: the handle, the actor or the place is not for them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.errors import AlreadyInitialized, BadRequest, ExpectedVersionMismatch
from omnigraph.core.ids import new_ulid
from omnigraph.core.span import Source
from omnigraph.graph.graph import Graph
from omnigraph.history.state import ManifestState
from omnigraph.operations.init import INIT_CLAIM, init_graph
from omnigraph.operations.open import make_parts
from omnigraph.operations.retry import RetryTime, retry_on_conflict
from tests.support.engine import PEOPLE, files, ids, new_graph, node, people, reopen
from tests.support.queries import mutation
from tests.support.seam import internals

INSERT = mutation('insert Person { name: "bob" }')
WRITES: dict[str, Callable[[Graph], object]] = {
    "mutate": lambda graph: graph.mutate(INSERT),
    "load": lambda graph: graph.load({"Person": people("bob")}, "append"),
    "create_branch": lambda graph: graph.create_branch("june"),
    "delete_branch": lambda graph: graph.delete_branch("may"),
    "merge": lambda graph: graph.merge("may"),
    "ensure_indices": lambda graph: graph.ensure_indices(),
    "cleanup": lambda graph: graph.cleanup(1),
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = new_graph(tmp_path / "graph", PEOPLE, node("Person", name="ann"))
    graph.create_branch("may")
    return graph


@pytest.mark.parametrize("verb", WRITES)
def test_a_handle_for_reading_writes_nothing(graph: Graph, verb: str) -> None:
    before = files(Path(graph.uri))

    with pytest.raises(BadRequest, match="read-only: open the graph read-write"):
        WRITES[verb](reopen(graph, mode="ro"))

    assert files(Path(graph.uri)) == before


@pytest.mark.parametrize(
    "actor", ["omnigraph:maintenance", "omnigraph:recovery", "omnigraph:me", " ", "a\nb"]
)
def test_the_names_of_the_engine_are_nobodys(graph: Graph, actor: str) -> None:
    """Commits of its own actors count as maintenance, which writes go over without a conflict."""
    with pytest.raises(BadRequest, match=r"actor .* is not allowed"):
        graph.mutate(INSERT, actor=actor)

    assert ids(graph, "Person") == ["ann"]


def test_a_graph_that_appears_before_the_claim_is_left_alone(tmp_path: Path) -> None:
    """The first look finds nothing; another init is through before this one claims the place."""
    root = tmp_path / "graph"
    minted: list[str] = []

    def mint() -> str:
        minted.append(new_ulid())
        if len(minted) == 2:  # the genesis, after the first look and before the claim
            new_graph(root, PEOPLE, node("Person", name="ann")).close()
        return minted[-1]

    with pytest.raises(AlreadyInitialized):
        init_graph(replace(make_parts(str(root)), new_id=mint), Source("node Other { k: String @key }"))

    assert not (root / INIT_CLAIM).exists()
    assert ids(reopen(root), "Person") == ["ann"]


class Enough(Exception):
    """Ends a test that would go on for minutes."""


@pytest.mark.parametrize(("operation_id", "attempts"), [("01J00000000000000000000000", 1), (None, 3)])
def test_a_write_that_left_something_for_recovery_is_not_tried_again(
    graph: Graph, operation_id: str | None, attempts: int
) -> None:
    made: list[bool] = []

    def attempt(_state: ManifestState) -> None:
        made.append(True)
        if len(made) == 3:
            raise Enough
        conflict = ExpectedVersionMismatch(table_key="node:Person", expected=1, actual=2)
        conflict.recovery_operation_id = operation_id
        raise conflict

    with pytest.raises(Enough if operation_id is None else ExpectedVersionMismatch):
        retry_on_conflict(internals(graph), "main", attempt, time=RetryTime(600.0))

    assert len(made) == attempts
