"""An S3-compatible server on loopback, and a place of its own in it for every test."""

from collections.abc import Iterator
from itertools import count

import httpx
import pytest
from moto.server import ThreadedMotoServer

from omnigraph.storage.uri import GraphRoot
from tests.support.hosts import settings_of

BUCKETS = count(1)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def root(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> GraphRoot:
    for name, value in settings_of(endpoint).items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{next(BUCKETS)}"
    httpx.put(f"{endpoint}/{bucket}").raise_for_status()
    return GraphRoot.parse(f"s3://{bucket}/some/graph")
