"""The proxy that other tests and the benchmarks see a store through."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from omnigraph.storage.control.durability import Durability
from omnigraph.storage.control.object_store import open_adapter
from omnigraph.storage.control.probe import probe_store
from omnigraph.storage.control.uri import GraphRoot
from tests.support.proxy import StoreProxy, StoreRequest, longest_chain, store_proxy

pytestmark = pytest.mark.slow  # starts a server
SIGNED = {"authorization": "AWS key:anything"}  # the server tells anonymous readers from all others only


@pytest.fixture
def proxy(endpoint: str) -> Iterator[StoreProxy]:
    httpx.put(f"{endpoint}/proxied", timeout=60).raise_for_status()
    with store_proxy(endpoint) as proxy:
        yield proxy


def test_requests_are_recorded_by_kind_and_key(proxy: StoreProxy) -> None:
    bucket = f"{proxy.endpoint}/proxied"

    httpx.put(f"{bucket}/a/b", content=b"text")
    httpx.get(f"{bucket}/a/b", headers={**SIGNED, "range": "bytes=1-2"})
    httpx.head(f"{bucket}/a/b")
    httpx.get(f"{bucket}", params={"list-type": "2", "prefix": "a/"})
    httpx.delete(f"{bucket}/a/b")
    found = proxy.taken()

    assert [(one.kind, one.key) for one in found] == [
        ("PUT", "a/b"),
        ("GET", "a/b"),
        ("HEAD", "a/b"),
        ("LIST", "a/"),
        ("DELETE", "a/b"),
    ]
    assert (found[1].part, found[1].size) == ("1-2", 2)
    assert longest_chain(found) == 5
    assert proxy.taken() == []


def test_requests_at_once_make_no_chain(proxy: StoreProxy) -> None:
    proxy.delay_s = 0.5

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: httpx.put(f"{proxy.endpoint}/proxied/{number}"), range(4)))

    assert longest_chain(proxy.taken()) == 1


def test_the_longest_chain_passes_over_long_requests() -> None:
    def between(start: float, end: float) -> StoreRequest:
        return StoreRequest("GET", "key", start, end, 200)

    assert longest_chain([]) == 0
    assert longest_chain([between(0, 9), between(1, 2), between(2, 3), between(4, 6)]) == 3


def test_a_dropped_answer_was_carried_out(proxy: StoreProxy, endpoint: str) -> None:
    proxy.drops = lambda request: request.kind == "PUT"

    with pytest.raises(httpx.RemoteProtocolError):
        httpx.put(f"{proxy.endpoint}/proxied/dropped", content=b"there")

    assert httpx.get(f"{endpoint}/proxied/dropped", headers=SIGNED).content == b"there"
    assert [one.status for one in proxy.taken()] == [200]


def test_an_honest_store_passes_its_probe_although_answers_are_lost(
    proxy: StoreProxy, root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library repeats the request, and is told that the object exists or has changed."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
    proxy.drops = lambda request: request.kind == "PUT" and request.status == 200

    probe_store(open_adapter(root, Durability.FULL), root)

    puts = [one.status for one in proxy.taken() if one.kind == "PUT"]
    assert puts == [200, 412, 200, 412, 412, 412], "create, lost; replace, lost; replace again; create again"
