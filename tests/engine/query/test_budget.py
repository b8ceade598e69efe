"""A query that needs more than it may ends with an error that says what it needs."""

from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest

from omnigraph import CartesianProductRefused, Graph, QueryMemoryExceeded, QueryTimeout, ResourceLimit
from omnigraph import open as open_graph
from omnigraph.exec.settings import TraversalMode
from omnigraph.operations.query import machine_memory, query_settings
from tests.support.engine import new_graph
from tests.support.queries import read
from tests.support.reading import values
from tests.support.seam import patched

SIZE = 4_000
PRODUCT = read("$a: Person $b: Person", "return { count($a) as n }")
HOPS = read("$a knows $b $b knows $c $c knows $d", "return { $a.name, $d.name }")
REACH = read("$a knows{1,4000000000} $b", "return { count($b) as n }")


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Persons in a circle, each of whom knows the next four."""
    names = [f"p{number:05d}" for number in range(SIZE)]
    ends = [(names[at], names[(at + step) % SIZE]) for at in range(SIZE) for step in range(1, 5)]
    people = pa.table({"name": names})
    knows = pa.table({"from": [source for source, _ in ends], "to": [target for _, target in ends]})
    with new_graph(tmp_path_factory.mktemp("ring") / "graph") as graph:
        graph.load({"Person": people, "Knows": knows}, "append")
        yield graph


def test_a_product_is_refused_with_its_size(ring: Graph) -> None:
    with pytest.raises(CartesianProductRefused, match=r"\$b.*16000000 over 10000000") as caught:
        ring.query(PRODUCT)

    assert (caught.value.limit, caught.value.actual) == (10_000_000, SIZE * SIZE)
    assert isinstance(caught.value, ResourceLimit)


def test_a_product_that_an_equality_connects_is_none(ring: Graph) -> None:
    text = read("$a: Person $b: Person $a.name = $b.name", "return { count($a) as n }")

    assert values(ring.query(text)) == [SIZE]


def test_memory_is_asked_for_before_it_is_taken(ring: Graph) -> None:
    with pytest.raises(QueryMemoryExceeded) as caught:
        ring.query(HOPS, memory_bytes=200_000)

    assert caught.value.limit == 200_000
    assert caught.value.actual > 200_000
    assert len(ring.query(HOPS, memory_bytes=100_000_000)) == SIZE * 4 * 4 * 4


def test_a_search_through_the_whole_graph_ends_in_time(ring: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count()
    patched(
        monkeypatch, "omnigraph.exec.rows.monotonic", lambda: next(looks) / 1_000
    )  # a millisecond from look to look

    with pytest.raises(QueryTimeout) as caught:
        ring.query(REACH, timeout_ms=20)

    assert (caught.value.limit, caught.value.code, caught.value.status) == (20, "bad_request", 413)
    assert caught.value.actual == 21  # the first look past the limit ends it
    assert len(ring.query(HOPS, timeout_ms=20)) == SIZE * 64  # a few operators look a few times


@pytest.mark.case("surfaces", 517)
def test_comparing_many_rows_ends_in_time(ring: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HOPS.replace("$c knows $d", "$c knows $d $a.name < $d.name")
    whole = ring.query(text).to_arrow()
    patched(monkeypatch, "omnigraph.exec.operators.condition.ROWS_AT_ONCE", 1_000)
    assert ring.query(text).to_arrow() == whole
    looks = count()
    patched(monkeypatch, "omnigraph.exec.rows.monotonic", lambda: next(looks) / 1_000)

    with pytest.raises(QueryTimeout) as caught:
        ring.query(text, timeout_ms=100)

    assert caught.value.actual == 101
    assert 0 < len(whole) < SIZE * 64


def test_an_enormous_bound_costs_what_the_graph_has(ring: Graph) -> None:
    text = read('$a: Person { name: "p00000" } $a knows{1,4000000000} $b', "return { count($b) as n }")

    assert values(ring.query(text)) == [SIZE - 1]
    assert values(ring.query(text.replace("{1,", "{999,"))) == [7]
    assert values(ring.query(text.replace("{1,", "{3000000000,"))) == [0]


def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert query_settings().memory_bytes == machine_memory() // 4
    assert query_settings().timeout_ms is None

    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY_BYTES", "1000")
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT_MS", "50")
    monkeypatch.setenv("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "0")
    monkeypatch.setenv("OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS", "x")
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "csr")

    settings = query_settings()
    assert (settings.memory_bytes, settings.timeout_ms) == (1_000, 50)
    assert (settings.indexed_frontier_max, settings.indexed_hops_max) == (0, 6)
    assert settings.traversal_mode is TraversalMode.CSR

    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "fast")
    assert query_settings().traversal_mode is TraversalMode.AUTO


def test_the_settings_of_a_process_hold_for_its_queries(ring: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY_BYTES", "1000")

    with open_graph(ring.uri) as graph:
        with pytest.raises(QueryMemoryExceeded):
            graph.query(HOPS)
        assert len(graph.query(HOPS, memory_bytes=10**9)) == SIZE * 64
