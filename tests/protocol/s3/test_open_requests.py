"""What opens and first queries ask of an object store: counted by a proxy in front of it."""

from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init
from omnigraph.graph.opening import open as open_graph
from omnigraph.history.head_note import HEAD_NOTE
from omnigraph.storage.control.object_store import ObjectStore
from omnigraph.storage.control.uri import GraphRoot
from omnigraph.storage.control.writers import WRITERS_DIR
from tests.support.proxy import StoreProxy, asked, longest_chain
from tests.support.s3 import stored
from tests.support.store_people import PAIR, SCHEMA, insert, people, persons

pytestmark = pytest.mark.slow  # starts a server
TABLES = 3
ONE_HOP = "query q($h: String) { match { $p: Person { handle: $h } $p knows $f } return { $f.handle } }"


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
    assert len(found) <= 14


@pytest.mark.case("engine", 870)
@pytest.mark.parametrize("writers", ["many", "one"])
def test_an_open_proves_the_store_before_anything_rests_on_it(
    uri: str, proxy: StoreProxy, writers: Literal["many", "one"]
) -> None:
    opened = list[Graph]()

    found = asked(proxy, lambda: opened.append(open_graph(uri, writers=writers)))

    opened.pop().close()
    puts = [(request.key.rpartition("/")[0], request.status) for request in found if request.kind == "PUT"]
    place = puts[0][0]
    assert puts[:4] == [(place, 200), (place, 200), (place, 412), (place, 412)]
    assert place.endswith(WRITERS_DIR) == (writers == "many")
    assert len(puts) == (4 if writers == "many" else 6)


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
