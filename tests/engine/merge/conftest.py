"""The graph that merges are tried on: built once for each worker, copied for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from tests.engine.merge.world import new_world


@pytest.fixture(scope="session")
def world_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world") / "graph"
    new_world(root).close()
    return root


@pytest.fixture
def world(world_template: Path, tmp_path: Path) -> Iterator[Graph]:
    """The graph with a branch `june` that has done nothing yet."""
    root = shutil.copytree(world_template, tmp_path / "graph")
    with open_graph(root, durability="process") as graph:
        yield graph
