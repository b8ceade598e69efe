"""Graphs to crash on: built once for each worker, copied for each test."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.protocol import new_due_graph, new_graph

NewRoot = Callable[[str], Path]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template") / "graph"
    new_graph(root).close()
    return root


@pytest.fixture(scope="session")
def due_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("due_template") / "graph"
    new_due_graph(root)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """The root of a graph with some rows and without indexes."""
    return Path(shutil.copytree(template, tmp_path / "graph"))


@pytest.fixture
def root_for(request: pytest.FixtureRequest, tmp_path: Path) -> NewRoot:
    """Return a graph that a writer finds work in: for upkeep, one with a table that is due."""

    def copy(writer: str) -> Path:
        source = request.getfixturevalue("due_template" if writer == "upkeep" else "template")
        return Path(shutil.copytree(source, tmp_path / "graph"))

    return copy
