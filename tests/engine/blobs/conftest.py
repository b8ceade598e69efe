"""The documents, loaded once; each test has a copy of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.engine.blobs.steps import CITES, VALUES, documents, table
from tests.support.engine import copy_of, reopen


@pytest.fixture(scope="session")
def docs_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("blobs") / "graph"
    documents(root).close()
    return root


@pytest.fixture(scope="session")
def cited_root(docs_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_of(docs_root, tmp_path_factory.mktemp("cited") / "graph")
    with reopen(root) as graph:
        graph.load_tables({"Cites": table(VALUES, place=CITES)}, "append", index=False)
    return root


@pytest.fixture
def cited(cited_root: Path, tmp_path: Path) -> Iterator[Graph]:
    """A copy in which each document has an edge to itself, with the same value."""
    with reopen(copy_of(cited_root, tmp_path / "cited")) as graph:
        yield graph


@pytest.fixture
def docs(docs_root: Path, tmp_path: Path) -> Iterator[Graph]:
    with reopen(copy_of(docs_root, tmp_path / "docs")) as graph:
        yield graph
