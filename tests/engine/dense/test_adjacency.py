"""Adjacency: base and overlay together equal a fresh base, whatever changed."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.catalog.bound import Direction
from omnigraph.exec.dense import Derived
from omnigraph.exec.dense.slots import linked
from omnigraph.graph.graph import Graph
from tests.engine.dense.graphs import DIRECTIONS, SCHEMA, Reader, check_adjacency, derived_of, reader
from tests.engine.dense.unchecked import publish_delete, publish_rows
from tests.support.engine import copy_of, edge, ndjson, new_graph, node, reopen
from tests.support.queries import mutation

NODES, EDGES = 200, 6_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with enough edges for an overlay."""
    place, dice = tmp_path_factory.mktemp("adjacency") / "graph", random.Random(5)
    names = [f"p{number:03d}" for number in range(NODES)]
    graph = new_graph(place, SCHEMA)
    graph.load({"Person": pa.table({"name": names})}, "append", index=False)
    edges = _knows([f"e{number:05d}" for number in range(EDGES)], names, dice)
    graph.load({"Knows": edges}, "append", index=False)
    return place


@pytest.fixture
def graph(root: Path, tmp_path: Path) -> Graph:
    return reopen(copy_of(root, tmp_path / "graph"))


def _knows(ids: list[str], names: list[str], dice: random.Random) -> pa.Table:
    ends = [(dice.choice(names), dice.choice(names)) for _ in ids]
    return pa.table({"id": ids, "tag": ids, "from": [a for a, _ in ends], "to": [b for _, b in ends]})


def warmed(graph: Graph) -> Derived:
    warm = derived_of(graph)
    for direction in DIRECTIONS:
        warm.adjacency(*reader(graph, warm).ends("Knows"), direction)
    return warm


def check_both(read: Reader) -> None:
    for direction in DIRECTIONS:
        check_adjacency(read, "Knows", direction)


def test_small_changes_go_into_the_overlay(graph: Graph) -> None:
    warm = warmed(graph)
    names = [f"p{number:03d}" for number in range(NODES)]
    changes: dict[str, Callable[[], object]] = {
        "insert": lambda: graph.load(ndjson([edge("Knows", "p001", "p002", id="x")]), "append", index=False),
        "delete": lambda: graph.mutate(mutation('delete Knows where tag = "e00007"')),
        "move": lambda: graph.load(
            ndjson([edge("Knows", "p003", "p003", id="e00008", tag="e00008")]), "merge", index=False
        ),
        "delete added": lambda: graph.load(
            ndjson([edge("Knows", "p001", "p002", id="y", tag="y")]), "append", index=False
        ),
        "insert and delete": lambda: graph.mutate(mutation('delete Knows where tag = "y"')),
        "new node": lambda: graph.load(
            ndjson([node("Person", name="new"), edge("Knows", "new", "p001", id="z")]), "append", index=False
        ),
        "node goes": lambda: graph.mutate(mutation('delete Person where name = "p005"')),
        "4.9 %": lambda: graph.load(
            {"Knows": _knows([f"m{number}" for number in range(400)], names[6:], random.Random(1))},
            "append",
            index=False,
        ),
    }
    for change in changes.values():
        change()
        check_both(reader(graph, warm))

    assert warm.counts.csr_builds == 2
    assert warm.counts.csr_overlays == 2 * len(changes)


def test_more_than_a_twentieth_of_the_edges_makes_a_new_base(graph: Graph) -> None:
    warm = warmed(graph)
    names = [f"p{number:03d}" for number in range(NODES)]

    for batch in range(3):
        ids = [f"m{batch}-{number}" for number in range(350)]
        graph.load({"Knows": _knows(ids, names, random.Random(batch))}, "append", index=False)
        check_both(reader(graph, warm))

    assert warm.counts.csr_builds == 4


def test_the_other_direction_is_turned_round_and_equal(graph: Graph) -> None:
    turned, read = warmed(graph), derived_of(graph)
    edges, src, dst = reader(graph, read).ends("Knows")

    fresh = read.adjacency(edges, src, dst, Direction.IN)
    made = turned.adjacency(edges, src, dst, Direction.IN)

    assert np.array_equal(fresh.base.indptr, made.base.indptr)
    assert np.array_equal(fresh.base.neighbours, made.base.neighbours)
    assert sorted(fresh.base.edges.tolist()) == sorted(made.base.edges.tolist())


def test_parallel_edges_and_self_loops_are_kept_apart(tmp_path: Path) -> None:
    people = [node("Person", name=name) for name in "abc"]
    knows = [("a", "b"), ("a", "c"), ("b", "b")]
    graph = new_graph(
        tmp_path / "graph",
        SCHEMA,
        *people,
        *(edge("Knows", *ends, id=f"e{n}") for n, ends in enumerate(knows)),
    )
    warm = derived_of(graph)
    adjacency = warm.adjacency(*reader(graph, warm).ends("Knows"), Direction.OUT)

    assert not adjacency.has_parallel

    graph.load(ndjson([edge("Knows", "b", "b", id="e8")]), "append", index=False)
    adjacency = warm.adjacency(*reader(graph, warm).ends("Knows"), Direction.OUT)

    assert adjacency.has_parallel
    check_both(reader(graph, warm))
    check_both(reader(graph, derived_of(graph)))


def test_an_edge_without_an_end_is_left_out_until_its_node_comes(tmp_path: Path) -> None:
    graph = new_graph(
        tmp_path / "graph", SCHEMA, *(node("Person", name=name) for name in "abc"), edge("Knows", "a", "b")
    )
    ends = [("a", "ghost"), ("ghost", "b"), ("b", "c")]
    publish_rows(
        graph, "edge:Knows", [{"id": f"u{n}", "src": src, "dst": dst} for n, (src, dst) in enumerate(ends)]
    )
    warm = derived_of(graph)
    check_both(reader(graph, warm))
    assert _edge_count(graph, warm) == 2

    graph.load(ndjson([node("Person", name="ghost")]), "append", index=False)

    check_both(reader(graph, warm))
    assert _edge_count(graph, warm) == 4


def test_a_node_that_goes_without_its_edges_takes_them_out(tmp_path: Path) -> None:
    graph = new_graph(
        tmp_path / "graph",
        SCHEMA,
        *(node("Person", name=name) for name in "abc"),
        *(edge("Knows", *ends) for ends in ("ab", "bc", "cb", "ac")),
    )
    warm = warmed(graph)
    publish_delete(graph, "node:Person", ["b"])

    check_both(reader(graph, warm))
    assert _edge_count(graph, warm) == 1

    graph.load(ndjson([node("Person", name="b")]), "append", index=False)
    check_both(reader(graph, warm))
    assert _edge_count(graph, warm) == 4


def test_both_ways_of_asking_for_pairs_agree(graph: Graph) -> None:
    warm = warmed(graph)
    graph.mutate(mutation('delete Knows where tag = "e00001"'))
    graph.load(ndjson([edge("Knows", "p010", "p011", id="x")]), "append", index=False)
    adjacency = warm.adjacency(*reader(graph, warm).ends("Knows"), Direction.OUT)
    left = np.repeat(np.arange(NODES, dtype=np.int32), NODES)
    right = np.tile(np.arange(NODES, dtype=np.int32), NODES)

    by_pairs = adjacency.contains(left, right)

    place, nodes, _ = adjacency.expand(left)
    by_rows = linked(place, nodes, right)
    assert 0 < by_rows.sum() < len(left)
    assert np.array_equal(by_pairs, by_rows)


def _edge_count(graph: Graph, derived: Derived) -> int:
    return derived.adjacency(*reader(graph, derived).ends("Knows"), Direction.OUT).edge_count


def test_an_edge_that_moved_away_outlives_its_former_end(tmp_path: Path) -> None:
    people = (node("Person", name=name) for name in "abcd")
    graph = new_graph(tmp_path / "graph", SCHEMA, *people, edge("Knows", "a", "b", id="e", tag="e"))
    warm = warmed(graph)
    graph.load(ndjson([edge("Knows", "c", "d", id="e", tag="e")]), "merge", index=False)
    check_both(reader(graph, warm))

    graph.mutate(mutation('delete Person where name = "b"'))
    graph.mutate(mutation('delete Person where name = "a"'))

    check_both(reader(graph, warm))
    assert _edge_count(graph, warm) == 1
