"""Graphs of earlier storage formats, made once and copied."""

from pathlib import Path

import pytest

from tests.support.engine import copy_of
from tests.support.older_graphs import write_older_graph


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A graph of each earlier stamp; tests copy it."""
    folder = tmp_path_factory.mktemp("older")
    return {stamp: write_older_graph(folder / str(stamp), stamp).root for stamp in (1, 2, 3)}


@pytest.fixture
def third(templates: dict[int, Path], tmp_path: Path) -> Path:
    """A graph of stamp 3."""
    return copy_of(templates[3], tmp_path / "graph")
