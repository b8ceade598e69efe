"""The contract of the storage adapters, on a disk and in memory."""

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.local_files import LocalFiles
from omnigraph.storage.control.object_store import ObjectStore, StorageAdapter, open_adapter
from omnigraph.storage.control.s3_errors import read_answer
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.lance_errors import translate
from tests.support.adapter_contract import AdapterContract
from tests.support.seam import patched


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


def test_an_object_above_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.storage.control.object_store.CONTROL_BYTES_MAX", 4)
    adapter = ObjectStore(GraphRoot.parse("s3://bucket/graph"), MemoryStore())
    adapter.write_text("a.json", "1234")
    adapter.write_text("b.json", "12345")

    assert adapter.read_text("a.json") == "1234"
    for read in (adapter.read_text, adapter.read_text_if_exists, adapter.read_text_versioned):
        with pytest.raises(StorageError, match=r"'b\.json': it has more than 4 bytes") as raised:
            read("b.json")
        assert raised.value.kind == "permanent"


def test_the_root_decides_which_adapter_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    local = open_adapter(GraphRoot.parse(str(tmp_path)), Durability.FULL)
    remote = open_adapter(GraphRoot.parse("s3://bucket/graph"), Durability.FULL)

    assert isinstance(local, LocalFiles)
    assert isinstance(remote, ObjectStore)


REFUSED = "Error performing GET https://host/x in 1ms - Server returned error response: status code: 403"


@pytest.mark.parametrize(
    ("scheme", "store", "names"),
    [
        ("s3", "bucket 'lab'", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
        ("az", "container 'lab'", ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_CLIENT_SECRET"]),
        ("gs", "bucket 'lab'", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT_KEY"]),
    ],
)
def test_refused_access_names_the_settings_of_its_store(scheme: str, store: str, names: list[str]) -> None:
    said = [
        read_answer(REFUSED, scheme, "lab").says,
        str(translate(OSError(REFUSED), f"read {scheme}://lab/graph")),
    ]

    for text in said:
        assert all(name in text for name in names)
        assert ("AWS_" in text) is (scheme == "s3")
    assert said[0].startswith(f"access to {store} was refused")
    assert f"access to the {store.partition(' ')[0]} was refused" in said[1]


@pytest.mark.parametrize(("word", "name"), [("MicrosoftAzure", "AZURE_"), ("GCS", "GOOGLE_"), ("S3", "AWS_")])
def test_a_library_tells_its_store_where_the_call_does_not(word: str, name: str) -> None:
    assert name in str(translate(OSError(f"Generic {word} error: {REFUSED}"), "read a table"))


@pytest.mark.parametrize("url", ["http://host", "ftp://user:hidden@host", "x+y.z-1://user:hidden@host"])
def test_no_request_is_told_whatever_its_scheme(url: str) -> None:
    text = f"Generic S3 error: Error performing GET {url}/bucket/x in 1ms - HTTP error: builder error"

    assert read_answer(text, "s3").says == "Generic S3 error: in 1ms - HTTP error: builder error"


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
