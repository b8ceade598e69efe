"""One answer of the store is lost, or all of them for a while: what callers are told is what has happened."""

import logging
from collections.abc import Callable

import pytest

import omnigraph
from omnigraph.core.errors import StorageError
from tests.support.proxy import StoreProxy, StoreRequest
from tests.support.s3 import new_root
from tests.support.seam import patched
from tests.support.store_people import INSERT, SCHEMA, insert

pytestmark = pytest.mark.slow

NAMES = "query q() { match { $p: Person } return { $p.handle as n } order { n } }"


def once(kind: str, part: str) -> Callable[[StoreRequest], bool]:
    """Return what drops the first answer to one kind of request."""
    dropped: list[str] = []

    def drops(request: StoreRequest) -> bool:
        if dropped or request.kind != kind or part not in request.key:
            return False
        dropped.append(request.key)
        return True

    return drops


def all_from(kind: str, *parts: str) -> Callable[[StoreRequest], bool]:
    """Return what drops all answers from the first to one kind of request on."""
    begun: list[str] = []

    def drops(request: StoreRequest) -> bool:
        if request.kind == kind and all(part in request.key for part in parts):
            begun.append(request.key)
        return bool(begun)

    return drops


def names(graph: omnigraph.Graph, branch: str | None = None) -> list[str]:
    return [str(row["n"]) for row in graph.query(NAMES, branch=branch).rows]


@pytest.mark.case("engine", 907)
def test_an_init_whose_claim_was_taken_without_an_answer_goes_on(endpoint: str, proxy: StoreProxy) -> None:
    proxy.drops = once("PUT", "__init_claim.json")

    with omnigraph.init(new_root(endpoint).uri, SCHEMA) as graph:
        insert(graph, "ann")

        assert names(graph) == ["ann"]


@pytest.mark.case("engine", 908)
def test_a_ref_that_was_made_without_an_answer_is_made(uri: str, proxy: StoreProxy) -> None:
    with omnigraph.open(uri) as graph:
        before = names(graph)
        proxy.drops = once("PUT", "__manifest/_refs/branches/")
        graph.create_branch("june")
        proxy.drops = once("PUT", "/_refs/branches/")
        graph.mutate(INSERT, params={"h": "eve"}, branch="june")
        proxy.drops = lambda _: False

        assert names(graph, "june") == sorted([*before, "eve"])
        assert names(graph) == before
        assert not graph.recoveries()


@pytest.mark.case("engine", 909)
def test_a_close_that_the_store_does_not_hear_is_a_warning(
    uri: str, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    patched(monkeypatch, "omnigraph.storage.control.object_store.RETRIES_MAX", 0)
    graph = omnigraph.open(uri)
    insert(graph, "eve")
    proxy.drops = lambda request: request.kind in {"POST", "DELETE"}

    with caplog.at_level(logging.WARNING, logger="omnigraph"):
        graph.close()

    proxy.drops = lambda _: False
    assert "no longer writes could not be said" in caplog.text
    with omnigraph.open(uri) as again:
        assert "eve" in names(again)


@pytest.mark.case("engine", 910)
def test_a_deletion_that_the_store_does_not_answer_is_in_doubt_and_decided_by_the_next_use(
    uri: str, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with omnigraph.open(uri) as graph:
        graph.create_branch("june")
        graph.mutate(INSERT, params={"h": "eve"}, branch="june")
        proxy.drops = all_from("PUT", "/tree/june-", "/_versions/")
        patched(monkeypatch, "omnigraph.storage.control.object_store.RETRIES_MAX", 0)
        with pytest.raises(StorageError, match="not known yet whether branch 'june' has ended") as raised:
            graph.delete_branch("june")
        proxy.drops = lambda _: False

        assert raised.value.kind == "unknown"
        try:
            graph.mutate(INSERT, params={"h": "kim"}, branch="june")
        except omnigraph.BranchNotFound:
            assert graph.branches() == ["main"]
        else:
            assert names(graph, "june")[-1] == "kim"
