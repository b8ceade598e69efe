"""The contract of the storage adapters, on a disk and in memory."""

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.object_store import ObjectStore, StorageAdapter, open_adapter
from omnigraph.storage.control.uri import GraphRoot
from tests.support.adapter_contract import AdapterContract


class TestLocalFiles(AdapterContract):
    @pytest.fixture(params=[Durability.FULL, Durability.PROCESS])
    def adapter(self, tmp_path: Path, request: pytest.FixtureRequest) -> StorageAdapter:
        return LocalFiles(tmp_path / "new" / "graph", request.param)


class TestObjectStore(AdapterContract):
    @pytest.fixture(params=["s3://bucket/some/prefix", "s3://bucket"])
    def adapter(self, request: pytest.FixtureRequest) -> StorageAdapter:
        return ObjectStore(GraphRoot.parse(request.param), MemoryStore())


def test_two_graphs_in_one_bucket_do_not_see_each_other() -> None:
    store = MemoryStore()
    one = ObjectStore(GraphRoot.parse("s3://bucket/one"), store)
    another = ObjectStore(GraphRoot.parse("s3://bucket/another"), store)

    one.write_text("a.json", "x")

    assert not another.exists("a.json")
    assert one.exists("a.json")


def test_a_text_that_is_no_text_is_an_error_that_names_it() -> None:
    store = MemoryStore()
    store.put("graph/a.json", b"\xff\xfe")
    adapter = ObjectStore(GraphRoot.parse("s3://bucket/graph"), store)

    with pytest.raises(StorageError, match=r"a\.json") as raised:
        adapter.read_text_if_exists("a.json")

    assert raised.value.kind == "permanent"


def test_the_root_decides_which_adapter_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    local = open_adapter(GraphRoot.parse(str(tmp_path)), Durability.FULL)
    remote = open_adapter(GraphRoot.parse("s3://bucket/graph"), Durability.FULL)

    assert isinstance(local, LocalFiles)
    assert isinstance(remote, ObjectStore)


def test_a_store_that_does_not_answer_is_a_transient_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    adapter = open_adapter(GraphRoot.parse("s3://bucket/graph"), Durability.FULL)

    with pytest.raises(StorageError, match=r"cannot read 'a\.json'") as raised:
        adapter.read_text_if_exists("a.json")

    assert raised.value.kind == "transient"
    assert "hidden-secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
