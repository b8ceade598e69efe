"""An S3-compatible server on loopback, and a place of its own in it for every test."""

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph.graph.graph import Graph
from omnigraph.storage.control.uri import GraphRoot
from tests.support.proxy import StoreProxy, store_proxy
from tests.support.s3 import build_indexed_people, build_people, new_root, place, s3_server, settings_of
from tests.support.store_people import with_one_commit


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def root(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> GraphRoot:
    for name, value in settings_of(endpoint).items():
        monkeypatch.setenv(name, value)
    return new_root(endpoint)


@pytest.fixture
def proxy(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreProxy]:
    """A proxy in front of the server, through which graphs of the test go."""
    with store_proxy(endpoint) as proxy:
        for name, value in settings_of(proxy.endpoint).items():
            monkeypatch.setenv(name, value)
        yield proxy


@pytest.fixture
def uri(endpoint: str, proxy: StoreProxy) -> str:
    """A graph in the store, with one commit, whose requests go through the proxy."""
    return place(with_one_commit, new_root(endpoint))


@pytest.fixture
def people_graph(root: GraphRoot) -> Iterator[Graph]:
    with omnigraph.open(place(build_people, root)) as graph:
        yield graph


@pytest.fixture
def indexed_graph(root: GraphRoot) -> Iterator[Graph]:
    with omnigraph.open(place(build_indexed_people, root)) as graph:
        yield graph
