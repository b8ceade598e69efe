"""An S3-compatible server on loopback, and a place of its own in it for every test."""

from collections.abc import Iterator

import pytest

from omnigraph.storage.control.uri import GraphRoot
from tests.support.s3 import new_root, s3_server, settings_of


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def root(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> GraphRoot:
    for name, value in settings_of(endpoint).items():
        monkeypatch.setenv(name, value)
    return new_root(endpoint)
