"""Graphs for the adapters of agents, in their storage and behind a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, RemoteGraph
from omnigraph.server.serving import Serving
from tests.support.http_app import listening, settings_for

Either = Graph | RemoteGraph


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks that modules of langchain-tests use; their plugins are switched off."""
    for name in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{name}: a mark of langchain-tests, on tests that are not ours")


@contextmanager
def served(place: Path) -> Iterator[RemoteGraph]:
    """Connect to a server of the graph at a place."""
    serving = Serving.begin(settings_for(place))
    try:
        with listening(serving) as url, omnigraph.connect(url) as graph:
            assert isinstance(graph, RemoteGraph)
            yield graph
    finally:
        serving.close()


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """An empty graph without types."""
    with omnigraph.init(tmp_path / "g.omni", "", durability="process") as graph:
        yield graph


@pytest.fixture(params=["embedded", "served"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Either]:
    """An empty graph without types, in its storage and behind a server."""
    omnigraph.init(tmp_path / "g.omni", "", durability="process").close()
    if request.param == "embedded":
        with omnigraph.open(tmp_path / "g.omni", durability="process") as graph:
            yield graph
    else:
        with served(tmp_path / "g.omni") as remote:
            yield remote
