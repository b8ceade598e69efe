"""Graphs to crash on: built once for each worker, copied for each test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.protocol import (
    WarmWriter,
    new_branched_graph,
    new_due_graph,
    new_graph,
    new_untidy_graph,
)
from tests.support.seam import patched

NewRoot = Callable[[str], Path]
TEMPLATES = {
    "upkeep": "due_template",
    "branch_merge": "branched_template",
    "optimize": "untidy_template",
}


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only a moment for the tables of a writer that the test itself has stopped."""
    patched(monkeypatch, "omnigraph.commit.table_locks.TABLE_LOCK_WAIT_S", 0.1)


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


@pytest.fixture(scope="session")
def branched_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("branched_template") / "graph"
    new_branched_graph(root)
    return root


@pytest.fixture(scope="session")
def untidy_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("untidy_template") / "graph"
    new_untidy_graph(root)
    return root


@pytest.fixture(scope="session")
def warm_writer() -> Iterator[WarmWriter]:
    """A process that writes and stops where a test says."""
    writer = WarmWriter()
    yield writer
    writer.close()


@pytest.fixture
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync nothing: what a process wrote outlives it. What outlives the power is shown by `powercut`."""
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "process")


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """The root of a graph with some rows and without indexes."""
    return Path(shutil.copytree(template, tmp_path / "graph"))


@pytest.fixture
def root_for(request: pytest.FixtureRequest, tmp_path: Path) -> NewRoot:
    """Return a graph that a writer finds work in: with a table that is due, or a branch to merge."""

    def copy(writer: str) -> Path:
        source = request.getfixturevalue(TEMPLATES.get(writer, "template"))
        return Path(shutil.copytree(source, tmp_path / "graph"))

    return copy
