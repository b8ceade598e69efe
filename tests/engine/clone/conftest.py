"""The graph that the tests of copies start from."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.clone.steps import DELETE, EDGES, INSERT, PERSONS, SCHEMA, UPDATE
from tests.support.engine import copy_of, new_graph


@pytest.fixture(scope="session")
def kept_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph whose branches share data, deletion and index files with main and with each other."""
    root = tmp_path_factory.mktemp("cloned") / "source"
    with new_graph(root, SCHEMA, *PERSONS, *EDGES) as graph:
        graph.mutate(DELETE, params={"n": "p0"})
        graph.ensure_indices()
        graph.create_branch("review")
        for number in (1, 2, 3):
            graph.mutate(UPDATE, params={"n": f"p{number}", "a": 90 + number}, branch="review")
        graph.mutate(DELETE, params={"n": "p11"}, branch="review")
        graph.create_branch("nested", from_="review")
        graph.mutate(INSERT, params={"n": "new"}, branch="nested")
        graph.mutate(INSERT, params={"n": "late"})
    return Path(shutil.move(root, root.with_name("kept")))


@pytest.fixture
def source(kept_source: Path) -> Iterator[Path]:
    """The graph, in the place where its branches were made."""
    place = kept_source.with_name("source")
    yield copy_of(kept_source, place)
    shutil.rmtree(place, ignore_errors=True)
