"""Graphs that the tests of the engine start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.support.engine import copy_of, library_template, new_graph, reopen


@pytest.fixture(scope="session")
def library_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library graph, loaded once; tests copy it."""
    return library_template(tmp_path_factory.mktemp("library") / "graph")


@pytest.fixture
def library(library_root: Path, tmp_path: Path) -> Iterator[Graph]:
    """The library graph, fresh for this test."""
    with reopen(copy_of(library_root, tmp_path / "library")) as graph:
        yield graph


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """An empty graph of persons and companies."""
    with new_graph(tmp_path / "people") as opened:
        yield opened
