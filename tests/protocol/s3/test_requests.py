"""What opens and reads ask of an object store: counted by a proxy in front of it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import lance
import obstore
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments
from lance.lance import _Session as Session

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.commit.sidecar import RECOVERY_DIR
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import BranchNotFound, FormatVersionError, RecoveryRequired
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.head_note import HEAD_NOTE, note_file
from omnigraph.history.manifest_rows import STAMP_KEY
from omnigraph.storage.control.lease import LEASE_LIFETIME
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables import shapes
from omnigraph.storage.tables.recent_rows import ROWS_MAX
from omnigraph.storage.tables.table import TableAddress, TableStore
from omnigraph.storage.versions.newest import TRUSTED_S
from tests.support.deep_graph import seed_commits
from tests.support.proxy import StoreProxy, asked, longest_chain
from tests.support.s3 import new_root, place, stored
from tests.support.seam import internals, patched

pytestmark = pytest.mark.slow  # starts a server
SCHEMA = """\
node Person { handle: String @key  age: I64? }
edge Knows: Person -> Person
node Filler { name: String @key }
"""
TABLES = 3
INSERT = "query m($h: String) { insert Person { handle: $h } }"
PAIR = 'query m($h: String) { insert Person { handle: $h } insert Knows { from: $h, to: "first" } }'
ONE_HOP = "query q($h: String) { match { $p: Person { handle: $h } $p knows $f } return { $f.handle } }"
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"


@pytest.fixture
def uri(endpoint: str, proxy: StoreProxy) -> str:
    """A graph in the store, with one commit."""
    return place(with_one_commit, new_root(endpoint))


def with_one_commit(uri: str) -> None:
    """Make a graph with one commit."""
    with init(uri, SCHEMA) as graph:
        insert(graph, "ann")


def insert(graph: Graph, handle: str) -> None:
    """Insert one person."""
    graph.mutate(INSERT, params={"h": handle})


def persons(graph: Graph) -> int:
    """Return how many persons a query finds."""
    number = graph.query(COUNT).rows[0]["n"]
    assert isinstance(number, int)
    return number


def written(folder: Path, commits: int, proxy: StoreProxy) -> str:
    """Return a graph of so many commits, the last of them made in the store."""
    with init(folder, SCHEMA, durability="process") as graph:
        for number in range(commits - 1):
            insert(graph, f"p{number}")
    uri = stored(folder)
    with open_graph(uri) as graph:
        insert(graph, "last")
    return uri


@pytest.mark.case("engine", 440)
def test_an_open_asks_for_little_however_many_commits_there_are(proxy: StoreProxy, tmp_path: Path) -> None:
    few, many = (_asked_by_opens(tmp_path / str(commits), commits, proxy) for commits in (2, 30))

    assert few == many


def _asked_by_opens(folder: Path, commits: int, proxy: StoreProxy) -> tuple[int, int]:
    uri, opened = written(folder, commits, proxy), list[Graph]()
    proxy.delay_s = 0.05  # so that requests that are made at once overlap
    read_only = asked(proxy, lambda: opened.append(open_graph(uri, mode="ro")))
    proxy.delay_s = 0.0
    assert persons(opened[0]) == commits
    warm = asked(proxy, lambda: persons(opened[0]))
    opened.pop().close()
    read_write = asked(proxy, lambda: opened.append(open_graph(uri)))
    opened.pop().close()
    assert len(read_only) <= 8
    assert longest_chain(read_only) <= 4
    assert len(read_write) <= 12 + 2 * TABLES
    assert [request.kind for request in warm] == ["HEAD"]
    return len(read_only), len(read_write)


@pytest.mark.case("engine", 856)
@pytest.mark.parametrize("tables", [1, 2, 6, 12])
def test_an_open_for_writing_asks_for_no_more_with_many_tables(
    proxy: StoreProxy, tmp_path: Path, tables: int
) -> None:
    schema = "\n".join(f"node T{number} {{ k: String @key }}" for number in range(tables))
    inserts = " ".join(f"insert T{number} {{ k: $k }}" for number in range(tables))
    with init(tmp_path / "graph", schema, durability="process") as graph:
        graph.mutate(f"query m($k: String) {{ {inserts} }}", params={"k": "a"})
    uri, opened = stored(tmp_path / "graph"), list[Graph]()
    with open_graph(uri) as graph:
        graph.mutate('query m() { insert T0 { k: "b" } }')

    found = asked(proxy, lambda: opened.append(open_graph(uri)))

    opened.pop().close()
    assert len(found) <= 16


@pytest.mark.case("engine", 445)
def test_a_first_query_asks_for_little(proxy: StoreProxy, tmp_path: Path) -> None:
    with init(tmp_path / "graph", SCHEMA, durability="process") as graph:
        insert(graph, "first")
        for number in range(29):
            graph.mutate(PAIR, params={"h": f"p{number}"})
    uri = stored(tmp_path / "graph")
    with open_graph(uri) as graph:
        graph.mutate(PAIR, params={"h": "last"})
    with open_graph(uri, mode="ro") as reader:
        found: list[object] = []
        requests = asked(proxy, lambda: found.extend(reader.query(ONE_HOP, params={"h": "p7"}).rows))
    ObjectStore(GraphRoot.parse(uri)).delete(HEAD_NOTE)
    with open_graph(uri, mode="ro") as reader:
        assert reader.query(ONE_HOP, params={"h": "p7"}).rows == found == [{"f.handle": "first"}]
    assert len(requests) <= 25


@pytest.mark.case("engine", 853)
def test_the_note_of_a_branch_goes_with_it(uri: str) -> None:
    store = ObjectStore(GraphRoot.parse(uri))
    with open_graph(uri) as graph:
        graph.create_branch("side")
        graph.mutate(INSERT, params={"h": "bob"}, branch="side")
        parts = internals(graph).parts
        assert parts.coordinator.notes is not None
        parts.coordinator.notes.finish()
        note = note_file(parts.branches.resolve("side").ref)
        assert store.has(note)

        graph.delete_branch("side")

    assert not store.has(note)


@pytest.mark.case("engine", 854)
def test_a_first_query_on_a_branch_asks_for_little(proxy: StoreProxy, tmp_path: Path) -> None:
    with init(tmp_path / "graph", SCHEMA, durability="process") as graph:
        insert(graph, "first")
        graph.create_branch("side")
        for number in range(49):
            graph.mutate(PAIR, params={"h": f"p{number}"}, branch="side")
    uri = stored(tmp_path / "graph")
    with open_graph(uri) as graph:
        graph.mutate(PAIR, params={"h": "main"})
        graph.mutate(PAIR, params={"h": "last"}, branch="side")
    with open_graph(uri, mode="ro") as reader:
        found: list[object] = []

        def ask() -> None:
            found.extend(reader.query(ONE_HOP, params={"h": "p7"}, branch="side").rows)

        requests = asked(proxy, ask)
    assert found == [{"f.handle": "first"}]
    assert len(requests) <= 25


@pytest.mark.case("engine", 855)
@pytest.mark.parametrize("is_updated", [False, True])
def test_a_first_query_behind_loads_and_updates_asks_for_little(
    uri: str, proxy: StoreProxy, *, is_updated: bool
) -> None:
    update = "query u($h: String) { update Person set { age: 3 } where handle = $h }"
    with open_graph(uri) as graph:
        graph.mutate(PAIR, params={"h": "first"})
        for load in range(20):
            graph.load(people(*(f"p{load}-{number}" for number in range(100))), "append")
        for load in range(20 * is_updated):
            graph.mutate(update, params={"h": f"p{load}-7"})
    with open_graph(uri, mode="ro") as reader:
        found: list[object] = []
        requests = asked(proxy, lambda: found.extend(reader.query(ONE_HOP, params={"h": "first"}).rows))
    assert found == [{"f.handle": "first"}]
    assert len(requests) <= 25


@pytest.mark.case("engine", 854)
def test_the_first_commit_of_a_handle_asks_for_little(proxy: StoreProxy, tmp_path: Path) -> None:
    few, many = (_asked_by_a_first_commit(tmp_path / str(n), n, proxy) for n in (5, 50))

    assert few == many
    assert few["GET"] + few["HEAD"] <= 8


def _asked_by_a_first_commit(folder: Path, commits: int, proxy: StoreProxy) -> Counter[str]:
    uri = written(folder, commits, proxy)
    with open_graph(uri) as graph:
        requests = asked(proxy, lambda: insert(graph, "fresh"))
        assert persons(graph) == commits + 1
    return Counter(one.kind for one in requests if not one.key.endswith(HEAD_NOTE))


@pytest.mark.case("engine", 443)
def test_a_commit_leaves_a_note_and_a_reader_none(uri: str, proxy: StoreProxy) -> None:
    store = ObjectStore(GraphRoot.parse(uri))
    assert store.has(HEAD_NOTE)
    store.delete(HEAD_NOTE)

    with open_graph(uri, mode="ro") as reader:
        assert persons(reader) == 1
    assert not store.has(HEAD_NOTE)

    with open_graph(uri) as writer:
        insert(writer, "bob")
    assert store.has(HEAD_NOTE)
    with open_graph(uri, mode="ro") as reader:
        assert persons(reader) == 2


@pytest.mark.case("engine", 442)
def test_a_note_that_is_no_text_is_no_note(uri: str) -> None:
    store = ObjectStore(GraphRoot.parse(uri))
    obstore.put(store._store, store._key(HEAD_NOTE), b"\xff\xfe")

    with open_graph(uri, mode="ro") as reader:
        assert persons(reader) == 1
        assert len(reader.commits()) == 2


@pytest.mark.case("engine", 441)
def test_the_past_is_there_on_a_handle_that_began_with_a_note(uri: str) -> None:
    with open_graph(uri) as graph:
        before = graph.snapshot()
        insert(graph, "bob")

    with open_graph(uri) as graph:
        assert persons(graph) == 2
        assert graph.query(COUNT, snapshot=before.head.graph_commit_id).rows[0]["n"] == 1
        insert(graph, "cas")
        assert [commit.manifest_version for commit in graph.commits()] == [4, 3, 2, 1]


@pytest.mark.case("engine", 444)
def test_a_warm_handle_sees_every_commit_of_others(uri: str) -> None:
    with open_graph(uri, mode="ro") as reader, open_graph(uri) as writer:
        for number in range(3):
            insert(writer, f"p{number}")
            assert persons(reader) == 2 + number
        coordinator = internals(writer).parts.coordinator
        coordinator.manifest.compact(coordinator.address())
        assert persons(reader) == 4
        insert(writer, "folded")
        assert persons(reader) == 5


@pytest.mark.case("engine", 444)
def test_what_was_seen_long_ago_proves_nothing_in_a_store(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_graph(uri, mode="ro") as reader, open_graph(uri) as writer:
        assert persons(reader) == 1
        before = internals(reader).parts.coordinator.newest().version
        insert(writer, "bob")
        insert(writer, "cas")
        store = ObjectStore(GraphRoot.parse(uri))
        store.delete(f"__manifest/{version_file_name(before + 1)}")  # as a cleanup would, some time later
        later = boot_clock() + TRUSTED_S + 1
        patched(monkeypatch, "omnigraph.storage.versions.newest.boot_clock", lambda: later)

        assert persons(reader) == 3


@pytest.mark.case("engine", 444)
def test_versions_with_other_names_are_left_to_the_library(endpoint: str, proxy: StoreProxy) -> None:
    root = new_root(endpoint)
    address = TableAddress(root.child("nodes/old"))
    options = root.storage_options
    rows = pa.table({"x": [1]})
    lance.write_dataset(rows, address.uri, storage_options=options, enable_v2_manifest_paths=False)
    store = TableStore(options)
    assert store.open_head(address).version == 1

    lance.write_dataset(rows, address.uri, storage_options=options, mode="append")

    assert store.latest_version(address) == 2
    assert store.open_head(address).version == 2


def test_a_version_that_is_open_is_not_asked_for_again(endpoint: str, proxy: StoreProxy) -> None:
    root = new_root(endpoint)
    address = TableAddress(root.child("nodes/new"))
    lance.write_dataset(pa.table({"x": [1]}), address.uri, storage_options=root.storage_options)
    store = TableStore(root.storage_options)
    store.open_head(address)
    store.latest_version(address)

    found = asked(proxy, lambda: (store.latest_version(address), store.open_head(address)))

    assert [request.kind for request in found] == ["HEAD", "HEAD"]


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


@pytest.mark.case("engine", 447)
def test_a_publish_on_what_the_last_one_made_is_refused_behind_that_of_another(uri: str) -> None:
    with open_graph(uri) as one, open_graph(uri) as other:
        insert(one, "bob")
        rival = 'query m() { insert Filler { name: "rival" } }'
        rivals = [rival]

        def come_first() -> None:
            if rivals:  # the rival gets here too
                other.mutate(rivals.pop())

        with failpoint("write.post_finalize_pre_publisher", call=come_first):
            insert(one, "cid")

        assert persons(other) == 3
        assert other.table("Filler").num_rows == 1
        chain = [commit.graph_commit_id for commit in one.commits()]
        assert len(chain) == len(set(chain)) == 5
        parents = [commit.parent_commit_id for commit in one.commits()]
        assert parents[:-1] == chain[1:]


def sweeps(proxy: StoreProxy, graph: Graph, handle: str) -> int:
    """Return how often an insert lists the sidecars."""
    return listed(proxy, lambda: insert(graph, handle))


def listed(proxy: StoreProxy, work: Callable[[], object]) -> int:
    """Return how often a piece of work lists the sidecars."""
    return sum(one.kind == "LIST" and RECOVERY_DIR in one.key for one in asked(proxy, work))


@pytest.mark.case("engine", 472)
def test_sidecars_are_listed_only_where_there_may_be_any(
    uri: str, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pass_time(seconds: float) -> None:
        later = boot_clock() + seconds
        patched(monkeypatch, "omnigraph.commit.recovery.sweep.boot_clock", lambda: later)

    with open_graph(uri) as graph:
        assert sweeps(proxy, graph, "bob") == 0
        pass_time(LEASE_LIFETIME / 3 + 1)
        assert sweeps(proxy, graph, "cid") == 1
        assert sweeps(proxy, graph, "dee") == 0
    with open_graph(uri, writers="one") as graph:
        pass_time(LEASE_LIFETIME * 3)
        assert sweeps(proxy, graph, "eve") == 0


@pytest.mark.case("engine", 852)
@pytest.mark.parametrize("writers", ["many", "one"])
def test_other_writes_list_the_sidecars_no_more_often(
    uri: str, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch, writers: Literal["many", "one"]
) -> None:
    with open_graph(uri, writers=writers) as graph:
        writes: list[Callable[[], object]] = [
            lambda: graph.load(people("bob"), "append"),
            lambda: graph.create_branch("side"),
            lambda: graph.load(people("cid"), "append", branch="side"),
            lambda: graph.merge("side"),
            lambda: graph.delete_branch("side"),
        ]
        assert [listed(proxy, write) for write in writes] == [0] * len(writes)
        wider = SCHEMA.replace("age: I64?", "age: I64?  height: I64?")
        found = listed(proxy, lambda: graph.apply_schema(wider))
        assert found == (1 if writers == "many" else 0)
        later = boot_clock() + LEASE_LIFETIME / 3 + 1
        patched(monkeypatch, "omnigraph.commit.recovery.sweep.boot_clock", lambda: later)
        found = listed(proxy, lambda: graph.load(people("dee"), "append"))
        assert found == (1 if writers == "many" else 0)


@pytest.mark.case("engine", 852)
def test_a_load_and_a_merge_settle_what_another_process_has_left_on_their_table(uri: str) -> None:
    with open_graph(uri) as graph, open_graph(uri) as other:
        graph.create_branch("side")
        graph.mutate(INSERT, params={"h": "sid"}, branch="side")
        writes: list[Callable[[], object]] = [
            lambda: graph.load(people("bob"), "append"),
            lambda: graph.merge("side"),
        ]
        for number, write in enumerate(writes):
            with (
                failpoint("write.post_finalize_pre_publisher", "raise:once"),
                pytest.raises(RecoveryRequired),
            ):
                insert(other, f"left{number}")

            write()

            assert len(graph.recoveries()) == number + 1
        assert persons(graph) == 5


@pytest.mark.case("engine", 472)
@pytest.mark.parametrize("writers", ["many", "one"])
def test_what_a_handle_has_left_is_settled_by_its_next_mutation(
    uri: str, writers: Literal["many", "one"]
) -> None:
    with open_graph(uri, writers=writers) as graph:
        with (
            failpoint("write.post_finalize_pre_publisher", "raise:once"),
            pytest.raises(RecoveryRequired),
        ):
            insert(graph, "bob")
        graph.mutate('query m() { insert Filler { name: "other table" } }')

        assert persons(graph) == 2
        assert len(graph.recoveries()) == 1


@pytest.mark.case("engine", 472)
def test_a_mutation_settles_what_another_process_has_left_on_its_table(uri: str, proxy: StoreProxy) -> None:
    with open_graph(uri) as graph:
        insert(graph, "bob")
        with (
            open_graph(uri) as other,
            failpoint("write.post_finalize_pre_publisher", "raise:once"),
            pytest.raises(RecoveryRequired),
        ):
            insert(other, "left")
        graph.mutate('query m() { insert Filler { name: "other table" } }')
        assert graph.recoveries() == []  # the last sweep is young, and nothing is in the way

        insert(graph, "cid")

        assert persons(graph) == 4
        assert len(graph.recoveries()) == 1


@pytest.mark.case("engine", 447)
def test_a_publish_above_the_stamp_of_a_newer_build_is_not_acknowledged(uri: str) -> None:
    with open_graph(uri) as graph, open_graph(uri, mode="ro") as other:
        insert(graph, "bob")
        migrated = internals(other).parts.coordinator

        def migrate() -> None:
            handle = migrated.manifest.open_fresh(migrated.address())
            migrated.manifest.stamp(handle, {STAMP_KEY: str(INTERNAL_SCHEMA_VERSION + 1)})

        with (
            failpoint("write.post_finalize_pre_publisher", call=migrate),
            pytest.raises(RecoveryRequired, match="format"),
        ):
            insert(graph, "cid")
        before = ObjectStore(GraphRoot.parse(uri)).list_dir(RECOVERY_DIR)

        with pytest.raises(FormatVersionError):
            graph.mutate('query m() { insert Filler { name: "next" } }')

        assert ObjectStore(GraphRoot.parse(uri)).list_dir(RECOVERY_DIR) == before


@pytest.mark.case("engine", 445)
@pytest.mark.parametrize("is_deleted", [True, False])
def test_rows_in_memory_come_in_the_order_of_the_files(
    endpoint: str, proxy: StoreProxy, *, is_deleted: bool
) -> None:
    uri = new_root(endpoint).uri
    with init(uri, SCHEMA) as graph:
        insert(graph, "ann")
        graph.create_branch("side")
        graph.mutate(INSERT, params={"h": "bob"}, branch="side")
    with open_graph(uri) as graph:
        insert(graph, "cid")
        if is_deleted:
            graph.load(people("dee", "eve", "fay"), "append", index=False)
            graph.mutate('query m() { delete Person where handle = "eve" }')
        else:
            graph.load(people(*(f"p{number}" for number in range(ROWS_MAX + 1))), "append", index=False)
        insert(graph, "gus")

    with open_graph(uri) as graph:  # the note has rows of fragments on both sides of one that it lacks
        persons_before = persons(graph)
        assert graph.merge("side").commit is not None
        assert persons(graph) == persons_before + 1


def people(*handles: str) -> bytes:
    """Return persons as lines of a load."""
    return "\n".join(json.dumps({"type": "Person", "data": {"handle": h}}) for h in handles).encode()
