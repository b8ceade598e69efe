"""The graph that the tests of queries read; nobody writes to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.support.engine import library_template, reopen


@pytest.fixture(scope="session", autouse=True)
def no_cache_files() -> Iterator[None]:
    """Keep what these tests derive in memory: their graphs live for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_CACHE_DIR", "")
        yield


@pytest.fixture(scope="session")
def library_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library graph, loaded once."""
    return library_template(tmp_path_factory.mktemp("library") / "graph")


@pytest.fixture(scope="module", params=["csr", "indexed"])
def library(library_root: Path, request: pytest.FixtureRequest) -> Iterator[Graph]:
    """The library graph, for reading; once with adjacency in memory, once with hops through indexes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", request.param)
        with reopen(library_root, mode="ro") as graph:
            yield graph
