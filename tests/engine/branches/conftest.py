"""The graph that the tests of branches start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.support.engine import copy_of, edge, new_graph, node, reopen


@pytest.fixture(scope="session")
def people_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three persons, one company, one edge of each kind; loaded once, copied by tests."""
    root = tmp_path_factory.mktemp("branches") / "graph"
    records = [
        node("Person", name="ann", age=30),
        node("Person", name="bob", age=40),
        node("Person", name="eve", age=50),
        node("Company", name="acme"),
        edge("Knows", "ann", "bob", id="k1"),
        edge("WorksAt", "eve", "acme", id="w1"),
    ]
    with new_graph(root) as graph:
        graph.load(records_text(records), "append", index=False)
    return root


def records_text(records: list[dict[str, object]]) -> bytes:
    """Return records as the text of a load."""
    from tests.support.engine import ndjson

    return ndjson(records)


@pytest.fixture
def graph(people_root: Path, tmp_path: Path) -> Iterator[Graph]:
    """The graph, fresh for this test."""
    with reopen(copy_of(people_root, tmp_path / "graph")) as opened:
        yield opened
