"""The images, loaded once; each test has a copy of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.engine.references.steps import images
from tests.support.engine import copy_of, reopen


@pytest.fixture(scope="session")
def images_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("references") / "graph"
    images(root).close()
    return root


@pytest.fixture
def graph(images_root: Path, tmp_path: Path) -> Iterator[Graph]:
    with reopen(copy_of(images_root, tmp_path / "images")) as graph:
        yield graph
