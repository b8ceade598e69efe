"""What commits and warm queries ask of an object store: counted by a proxy in front of it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments
from lance.lance import _Session as Session

from omnigraph.core.errors import BranchNotFound
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.storage.tables import shapes
from tests.support.deep_graph import seed_commits
from tests.support.proxy import StoreProxy, asked, longest_chain
from tests.support.s3 import new_root, stored
from tests.support.seam import internals
from tests.support.store_people import COUNT, INSERT, PAIR, SCHEMA, insert, people

pytestmark = pytest.mark.slow  # starts a server


@pytest.mark.case("engine", 446)
@pytest.mark.parametrize("tables", [1, 2, 3, 5])
def test_a_commit_asks_for_little_however_many_there_are(
    proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", "3600")  # neither a beat nor a sweep in between
    few, many = (_asked_by_commits(tmp_path / str(n), n, tables, proxy) for n in (3, 30))

    assert few == many
    # The manifest is looked at twice, each table once; the sidecar and three objects of the manifest are put.
    assert Counter(few) == {"HEAD": 2 + tables, "LIST": tables + 1, "PUT": 3 * tables + 5, "POST": 1}


@pytest.mark.case("engine", 850)
@pytest.mark.parametrize("tables", [1, 2, 3])
def test_a_commit_on_a_branch_asks_for_little_more(
    proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", "3600")  # neither a beat nor a sweep in between

    found = _asked_by_commits(tmp_path / "graph", 3, tables, proxy, branch="side")

    # Its control object is read three times: at the start, at the gates, and behind the publish.
    wanted = {"GET": 3, "HEAD": 2 + tables, "LIST": tables + 1, "PUT": 3 * tables + 5, "POST": 1}
    assert Counter(found) == wanted


@pytest.mark.case("engine", 850)
def test_a_warm_query_on_a_branch_waits_for_one_answer(uri: str, proxy: StoreProxy) -> None:
    with open_graph(uri) as graph, open_graph(uri) as other:
        graph.create_branch("side")
        for _ in range(2):  # the second one learns that its versions have such names
            assert graph.query(COUNT, branch="side").rows[0]["n"] == 1
        notes = internals(graph).parts.coordinator.notes
        assert notes is not None
        notes.finish()
        proxy.delay_s = 0.05
        found = asked(proxy, lambda: graph.query(COUNT, branch="side"))
        proxy.delay_s = 0.0
        assert sorted(request.kind for request in found) == ["GET", "HEAD"]
        assert longest_chain(found) == 1

        other.mutate(INSERT, params={"h": "bob"}, branch="side")
        assert graph.query(COUNT, branch="side").rows[0]["n"] == 2
        other.delete_branch("side")
        with pytest.raises(BranchNotFound):
            graph.query(COUNT, branch="side")
        other.create_branch("side")
        assert graph.query(COUNT, branch="side").rows[0]["n"] == 1
        graph.mutate(INSERT, params={"h": "cid"}, branch="side")
        assert other.query(COUNT, branch="side").rows[0]["n"] == 2


@pytest.mark.case("engine", 852)
def test_a_load_of_one_row_asks_for_little(
    uri: str, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", "3600")  # neither a beat nor a sweep in between
    with open_graph(uri) as graph:
        for handle in ("bob", "cid"):
            graph.load(people(handle), "append")
        notes = internals(graph).parts.coordinator.notes
        assert notes is not None
        notes.finish()
        notes.is_kept = False
        proxy.delay_s = 0.05
        found = asked(proxy, lambda: graph.load(people("dee"), "append"))
        proxy.delay_s = 0.0

    kinds = Counter(request.kind for request in found)
    assert kinds["HEAD"] + kinds["GET"] <= 6
    assert {kind: kinds[kind] for kind in ("LIST", "PUT", "POST")} == {"LIST": 2, "PUT": 8, "POST": 1}
    assert longest_chain(found) <= 14


@pytest.mark.case("engine", 810)
def test_a_commit_asks_for_the_same_behind_hundreds_that_were_made_one_by_one(
    proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", "3600")  # neither a beat nor a sweep in between
    few, many = (_asked_by_commits(tmp_path / str(n), n, 1, proxy, is_loaded=True) for n in (10, 300))

    assert few == many  # of its chain, too, it is asserted that it is short
    assert "GET" not in many


@pytest.mark.case("engine", 856)
@pytest.mark.parametrize(("kind", "tables"), [("edge", 2), ("update", 1), ("delete", 1)])
def test_every_kind_of_commit_asks_for_the_same_at_every_depth(
    proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, tables: int
) -> None:
    monkeypatch.setenv("OMNIGRAPH_WRITER_LIFETIME", "3600")  # neither a beat nor a sweep in between

    shallow, deep, deepest = (_asked_at_depth(tmp_path / str(n), n, kind, proxy) for n in (10, 1_000, 10_000))

    assert shallow == deep == deepest
    kinds = Counter(shallow)
    assert kinds["HEAD"] + kinds["GET"] <= 4 + 2 * tables
    assert kinds["LIST"] == tables + 1
    assert kinds["PUT"] <= 3 * tables + 6


def _asked_at_depth(folder: Path, commits: int, kind: str, proxy: StoreProxy) -> list[str]:
    """Return what the third commit of a kind asks for, in a graph that had so many commits before."""
    query = {
        "edge": PAIR,
        "update": "query m($h: String) { update Person set { age: 7 } where handle = $h }",
        "delete": "query m($h: String) { delete Person where handle = $h }",
    }[kind]
    with init(folder, SCHEMA, durability="process") as graph:
        people = [{"type": "Person", "data": {"handle": h}} for h in ("first", "a", "b", "c")]
        graph.load("\n".join(map(json.dumps, people)).encode(), "append")
        insert(graph, "before")
    with open_graph(folder, durability="process") as graph:
        seed_commits(graph, "node:Person", commits)
    with open_graph(stored(folder)) as graph:
        notes = internals(graph).parts.coordinator.notes
        assert notes is not None
        prefix = "new " if kind == "edge" else ""
        for handle in ("a", "b"):
            graph.mutate(query, params={"h": prefix + handle})
            notes.finish()
        notes.is_kept = False  # they are written behind commits, also while another one is measured
        proxy.delay_s = 0.05  # so that requests that are made at once overlap
        requests = asked(proxy, lambda: graph.mutate(query, params={"h": f"{prefix}c"}))
        proxy.delay_s = 0.0
    assert longest_chain(requests) <= 14
    return sorted(one.kind for one in requests)


def _asked_by_commits(
    folder: Path,
    commits: int,
    tables: int,
    proxy: StoreProxy,
    *,
    is_loaded: bool = False,
    branch: str | None = None,
) -> list[str]:
    """Return what a warm commit asks for while it is waited for; a load makes the indexes."""
    numbers = range(tables)
    schema = "\n".join(f"node T{number} {{ k: String @key }}" for number in numbers)
    query = f"query m($k: String) {{ {' '.join(f'insert T{number} {{ k: $k }}' for number in numbers)} }}"
    with init(folder, schema, durability="process") as graph:
        if is_loaded:
            graph.load(b'{"type": "T0", "data": {"k": "loaded"}}', "append")
        for number in range(commits):
            graph.mutate(query, params={"k": f"{number}"})
    with open_graph(stored(folder)) as graph:
        notes = internals(graph).parts.coordinator.notes
        assert notes is not None
        if branch is not None:
            graph.create_branch(branch)
        for key in ("first", "second", "third"):
            graph.mutate(query, params={"k": key}, branch=branch)
            left = asked(proxy, notes.finish)
        assert branch is not None or [(one.kind, one.key.rpartition("/")[2]) for one in left] == [
            ("PUT", "_head_note")
        ]
        notes.is_kept = False  # they are written behind commits, also while another one is measured
        proxy.delay_s = 0.05  # so that requests that are made at once overlap
        requests = asked(proxy, lambda: graph.mutate(query, params={"k": "warm"}, branch=branch))
        proxy.delay_s = 0.0
    assert longest_chain(requests) <= 14
    return sorted(one.kind for one in requests)


def test_guard_every_commit_but_two_kinds_lists_the_versions_of_its_table(
    endpoint: str, proxy: StoreProxy
) -> None:
    root = new_root(endpoint)
    options, addresses = root.storage_options, (root.child(f"nodes/{number}") for number in range(9))

    @contextmanager
    def lock(_version: int) -> Iterator[None]:
        yield

    def listings(commit: Callable[[lance.LanceDataset, LanceOperation.BaseOperation], object]) -> int:
        rows = pa.table({"x": [1]})
        made = lance.write_dataset(rows, next(addresses), storage_options=options)
        dataset = lance.dataset(made.uri, version=1, storage_options=options, session=Session())
        update = shapes.addition(dataset, shapes.write_rows(dataset, rows))
        return Counter(one.kind for one in asked(proxy, lambda: commit(dataset, update)))["LIST"]

    def committed(how: dict[str, Any]) -> Callable[[LanceDataset, LanceOperation.BaseOperation], object]:
        return lambda dataset, update: LanceDataset.commit(dataset, update, read_version=1, **how)

    def overwrite(dataset: lance.LanceDataset, _: LanceOperation.BaseOperation) -> object:
        operation = LanceOperation.Overwrite(dataset.schema, [])
        return LanceDataset.commit(dataset, operation, read_version=1, max_retries=0)

    def append(dataset: lance.LanceDataset, _: LanceOperation.BaseOperation) -> object:
        made = write_fragments(pa.table({"x": [2]}), dataset, return_transaction=True)
        assert isinstance(made, Transaction)
        return LanceDataset.commit_batch(dataset, [made], max_retries=0)

    assert listings(committed({"max_retries": 0})) == 1
    assert listings(committed({})) == 1
    assert listings(committed({"max_retries": 0, "enable_v2_manifest_paths": True})) == 1
    assert listings(committed({"max_retries": 0, "commit_lock": lock})) == 1
    assert listings(append) == 1
    assert listings(committed({"detached": True})) == 0  # and becomes no version of the table
    assert listings(overwrite) == 0  # and drops the indexes
