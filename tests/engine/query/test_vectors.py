"""Nearest vectors through whole queries: in memory or from the table, with any index, the answer is one."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.core.errors import QueryMemoryExceeded
from omnigraph.graph.graph import Graph
from tests.support.engine import copy_of, ndjson, new_graph, node, reopen
from tests.support.queries import mutation
from tests.support.seam import internals, patched

DIMENSION, ROWS = 8, 3_000  # more rows than a search of an index compares one by one
DOC = f"node Doc {{ name: String @key  size: I64  vector: Vector({DIMENSION})? @index }}"
NEAREST = f"""
query q($vector: Vector({DIMENSION}), $size: I64) {{
    match {{ $d: Doc  $d.size >= $size }}
    return {{ $d.name, nearest($d.vector, $vector) as distance }}
    order {{ distance }}
    limit 10
}}
"""
INDEXES = ("none", "partial", "full")


def documents(first: int, count: int) -> pa.Table:
    """Return documents without clusters; some have no vector, and every fifth one has that of another."""
    matrix = np.random.default_rng(first).standard_normal((count, DIMENSION)).astype(np.float32)
    matrix[1::5] = matrix[::5][: len(matrix[1::5])]
    vectors = [None if place % 11 == 3 else row.tolist() for place, row in enumerate(matrix)]
    return pa.table(
        {
            "name": [f"d{number:05d}" for number in range(first, first + count)],
            "size": [number % 100 for number in range(count)],
            "vector": pa.array(vectors, pa.list_(pa.float32(), DIMENSION)),
        }
    )


@pytest.fixture(scope="module", params=INDEXES)
def root(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    place = tmp_path_factory.mktemp("vectors") / "graph"
    with new_graph(place, DOC) as graph:
        graph.load({"Doc": documents(0, ROWS // 2)}, "append", index=request.param != "none")
        graph.load({"Doc": documents(ROWS // 2, ROWS // 2)}, "append", index=False)
        if request.param == "full":
            graph.ensure_indices()
    return place


@pytest.fixture
def graph(root: Path, tmp_path: Path) -> Iterator[Graph]:
    with reopen(copy_of(root, tmp_path / "graph"), upkeep=False) as graph:
        yield graph


def asked(graph: Graph, number: int, size: int = 0, *, exact: bool = False) -> list[tuple[object, ...]]:
    vector = np.random.default_rng(100 + number).standard_normal(DIMENSION).tolist()
    rows = graph.query(NEAREST, params={"vector": vector, "size": size}, exact=exact).rows
    return [tuple(row.values()) for row in rows]


def builds(graph: Graph) -> tuple[int, int]:
    counts = internals(graph).reading.derived.counts
    return counts.vector_builds, counts.vector_advances


@pytest.mark.parametrize("size", [0, 50, 99])
def test_memory_and_table_answer_alike(graph: Graph, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Rows, distances and the order of ties are those of an exact search of the table."""
    kept = [asked(graph, number, size) for number in range(8)]
    assert builds(graph)[0] <= 1

    patched(monkeypatch, "omnigraph.exec.dense.columns.NUMBERS_MAX", 0)
    with reopen(graph, upkeep=False) as cold:
        fetched = [asked(cold, number, size, exact=True) for number in range(8)]
        assert builds(cold) == (0, 0)

    assert kept == fetched


def test_the_first_answer_is_that_of_a_warm_handle(graph: Graph) -> None:
    first = asked(graph, 1)
    assert builds(graph) == (1, 0)

    assert [asked(graph, 1) for _ in range(3)] == [first] * 3
    assert asked(graph, 1, exact=True) == first
    assert builds(graph) == (1, 0)


def test_a_write_brings_vectors_forward(graph: Graph) -> None:
    vector = np.random.default_rng(101).standard_normal(DIMENSION).astype(np.float32).tolist()
    before = asked(graph, 1, 1)
    nearest = str(before[0][0])

    graph.load(ndjson([node("Doc", name="same", size=1, vector=vector)]), "append", index=False)
    assert builds(graph) == (1, 1)
    after = asked(graph, 1, 1)
    graph.mutate(mutation('delete Doc where name = "same"'))
    graph.mutate(mutation(f'update Doc set {{ size: 0 }} where name = "{nearest}"'))

    assert [row[0] for row in after] == ["same", *(row[0] for row in before[:9])]
    assert [row[0] for row in asked(graph, 1, 1)][:9] == [row[0] for row in before[1:]]
    assert builds(graph) == (1, 3)


def test_a_comparison_asks_for_its_memory(graph: Graph) -> None:
    vector = [0.0] * DIMENSION
    asked(graph, 1)

    with pytest.raises(QueryMemoryExceeded):
        graph.query(NEAREST, params={"vector": vector, "size": 0}, memory_bytes=ROWS * 20)
