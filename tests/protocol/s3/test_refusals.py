"""A bucket that is not there and credentials that do not count: said in our words, with what to do."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.core.errors import StorageError
from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import StorageAdapter, open_adapter
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.tables.table import TableAddress, TableStore
from tests.support.commands import write
from tests.support.in_process import invoke
from tests.support.s3 import place
from tests.support.seam import patched

pytestmark = pytest.mark.slow

SCHEMA = "node Person { name: String @key }\n"
ENTRIES: dict[str, Callable[[str], object]] = {
    "init": lambda uri: omnigraph.init(uri, SCHEMA),
    "open": omnigraph.open,
    "open for reading": lambda uri: omnigraph.open(uri, mode="ro"),
    "look at a table": lambda uri: TableStore(GraphRoot.parse(uri).storage_options).open_head(
        TableAddress(f"{uri}/__manifest")
    ),
}
CALLS: dict[str, Callable[[StorageAdapter], object]] = {
    "read_text": lambda adapter: adapter.read_text("a"),
    "read_text_if_exists": lambda adapter: adapter.read_text_if_exists("a"),
    "read_text_versioned": lambda adapter: adapter.read_text_versioned("a"),
    "exists": lambda adapter: adapter.exists("a"),
    "list_dir": lambda adapter: adapter.list_dir("a"),
    "write_text": lambda adapter: adapter.write_text("a", "x"),
    "write_text_if_absent": lambda adapter: adapter.write_text_if_absent("a", "x"),
    "write_text_if_match": lambda adapter: adapter.write_text_if_match("a", "x", "tag"),
    "rename_text": lambda adapter: adapter.rename_text("a", "b"),
    "delete": lambda adapter: adapter.delete("a"),
    "delete_prefix": lambda adapter: adapter.delete_prefix("a"),
}
MISSING = "s3://no-such-bucket/some/graph"


def empty(uri: str) -> None:
    """Make a graph without rows."""
    omnigraph.init(uri, SCHEMA).close()


@pytest.fixture
def locked_out(root: GraphRoot, endpoint: str) -> Iterator[GraphRoot]:
    """A graph whose server knows nobody of our name."""
    place(empty, root)
    httpx.post(f"{endpoint}/moto-api/reset-auth", content="0").raise_for_status()
    yield root
    httpx.post(f"{endpoint}/moto-api/reset-auth", content="inf").raise_for_status()


def refusal(call: Callable[[], object], endpoint: str) -> str:
    """Return what a call is refused with, having checked that it is ours and quotes nothing."""
    with pytest.raises(StorageError) as raised:
        call()
    text = str(raised.value)
    assert raised.value.kind == "configuration"
    assert not [part for part in (endpoint, "http", "<", "secret") if part in text]
    assert "\n" not in text
    return text


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_missing_bucket_is_named_with_what_to_do(entry: str, root: GraphRoot, endpoint: str) -> None:
    text = refusal(lambda: ENTRIES[entry](MISSING), endpoint)

    assert "no-such-bucket" in text
    assert "does not exist: create it, or correct the address" in text


@pytest.mark.parametrize("call", CALLS)
def test_in_a_missing_bucket_nothing_is_missing(call: str, root: GraphRoot, endpoint: str) -> None:
    adapter = open_adapter(GraphRoot.parse(MISSING), Durability.FULL)

    assert "bucket 'no-such-bucket' does not exist" in refusal(lambda: CALLS[call](adapter), endpoint)


@pytest.mark.parametrize("entry", ENTRIES)
def test_wrong_credentials_are_told_with_the_settings_to_check(
    entry: str, locked_out: GraphRoot, endpoint: str
) -> None:
    text = refusal(lambda: ENTRIES[entry](locked_out.uri), endpoint)

    assert locked_out.bucket in text
    assert "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY" in text


@pytest.mark.parametrize("call", CALLS)
def test_wrong_credentials_stop_every_call(call: str, locked_out: GraphRoot, endpoint: str) -> None:
    adapter = open_adapter(locked_out, Durability.FULL)

    assert "was refused" in refusal(lambda: CALLS[call](adapter), endpoint)


def test_a_command_says_the_same_in_one_line(root: GraphRoot, endpoint: str, tmp_path: Path) -> None:
    write(tmp_path, "people.pg", SCHEMA)

    outcome = invoke("init", MISSING, "--schema", "people.pg", cwd=tmp_path)

    assert (outcome.code, outcome.stdout) == (1, "")
    assert "bucket 'no-such-bucket' does not exist: create it, or correct the address" in outcome.stderr
    assert endpoint not in outcome.stderr
    assert "<" not in outcome.stderr


def test_a_server_that_is_not_there_is_transient_and_its_address_is_not_told(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.storage.control.object_store.RETRIES_MAX", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")

    with pytest.raises(StorageError, match="cannot read '__manifest/_head_note'") as raised:
        omnigraph.open(root.uri)

    assert raised.value.kind == "transient"
    assert "127.0.0.1" not in str(raised.value)
