"""The graph that the tests of cleanup start from; readers elsewhere have no grace unless a test gives it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.engine.branches.conftest import people_root
from tests.support.engine import copy_of, reopen

__all__ = ["people_root"]


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let versions go at once that were just replaced: no other process reads these graphs."""
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE", "0")


@pytest.fixture
def graph(people_root: Path, tmp_path: Path) -> Iterator[Graph]:
    """The graph, fresh for this test, without upkeep: every version is a write of the test's own."""
    with reopen(copy_of(people_root, tmp_path / "graph"), upkeep=False) as opened:
        yield opened
