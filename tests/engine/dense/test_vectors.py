"""Vectors in memory: the nearest are always among the candidates, whatever was written."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from omnigraph.exec.dense import Derived
from omnigraph.exec.dense.vectors import VectorBlock
from omnigraph.graph.graph import Graph
from omnigraph.history.state import Snapshot
from tests.engine.dense.graphs import derived_of, pinned
from tests.support.engine import ndjson, new_graph, node, rows_at
from tests.support.queries import mutation
from tests.support.seam import patched

DIMENSION = 8
DOC = f"node Doc {{ name: String @key  size: I64?  vector: Vector({DIMENSION})? }}"
KEY, FEW = "node:Doc", 50

Matrix = npt.NDArray[np.float32]


def table_of(matrix: Matrix, *, without: Sequence[int] = ()) -> pa.Table:
    """Return documents with these vectors; some have none."""
    vectors = [None if place in set(without) else row.tolist() for place, row in enumerate(matrix)]
    names = [f"d{number:05d}" for number in range(len(matrix))]
    return pa.table({"name": names, "vector": pa.array(vectors, pa.list_(pa.float32(), DIMENSION))})


def graph_of(place: Path, matrix: Matrix, *, without: Sequence[int] = ()) -> Graph:
    graph = new_graph(place, DOC)
    graph.load({"Doc": table_of(matrix, without=without)}, "append", index=False)
    return graph


def squared(vectors: Matrix, query: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    distances: npt.NDArray[np.float64] = np.square(vectors.astype(np.float64) - query).sum(axis=1)
    return distances


def check(graph: Graph, derived: Derived, snapshot: Snapshot | None = None) -> VectorBlock:
    """Hold a block against the rows of a snapshot."""
    snapshot = snapshot or graph.snapshot()
    table = pinned(graph, KEY, snapshot)
    block, ids = derived.vectors.get(table, "vector"), derived.ids(table)
    stored = {id: row["vector"] for id, row in rows_at(graph, snapshot, KEY).items()}
    slots = derived.slots(table).all()
    names = [str(id) for id in ids.take(slots).to_pylist()]
    has_vector = np.array([stored[name] is not None for name in names], np.bool_)
    query = np.linspace(-1.0, 1.0, DIMENSION)

    found = block.candidates(slots, query, None)

    assert found.tolist() == slots[has_vector].tolist()
    expected = [stored[name] for name in np.array(names)[has_vector].tolist()]
    assert block.take(found).tolist() == expected
    assert set(nearest_of(block, slots, query, 3)) <= set(block.candidates(slots, query, 3).tolist())
    return block


def nearest_of(
    block: VectorBlock, slots: npt.NDArray[np.int32], query: npt.NDArray[np.float64], limit: int
) -> list[int]:
    """Return the nearest slots, and those that tie with the last, by distances in double precision."""
    known = block.candidates(slots, query, None)
    distances = squared(block.take(known), query)
    last = np.sort(distances)[: limit or 1][-1] if len(distances) else 0.0
    return [int(slot) for slot in known[distances <= last]]


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize(
    ("offset", "spread"), [(0.0, 1.0), (1_000.0, 1e-3), (0.0, 1e-30), (0.0, 1e30), (3e38, 0.0), (1.0, 0.0)]
)
def test_no_neighbour_is_left_out(tmp_path: Path, offset: float, spread: float, share: float) -> None:
    """Also of vectors that single precision hardly tells apart, and of such as it cannot multiply."""
    dice = np.random.default_rng(3)
    matrix = (offset + spread * dice.standard_normal((600, DIMENSION))).astype(np.float32)
    with graph_of(tmp_path / "graph", matrix, without=range(0, 600, 7)) as graph:
        derived, table = derived_of(graph), pinned(graph, KEY)
        block, slots = derived.vectors.get(table, "vector"), derived.slots(table).all()
        for _ in range(20):
            some = slots[dice.random(len(slots)) < share]
            query = (offset + spread * dice.standard_normal(DIMENSION)).astype(np.float64)
            for limit in (1, 10):
                found = block.candidates(some, query, limit)

                assert set(nearest_of(block, some, query, limit)) <= set(found.tolist())


def test_few_candidates_are_left_of_many_rows(tmp_path: Path) -> None:
    """One vector far away does not make the others uncertain."""
    dice = np.random.default_rng(4)
    matrix = dice.standard_normal((2_000, DIMENSION)).astype(np.float32)
    matrix[7] = 1e20
    with graph_of(tmp_path / "graph", matrix) as graph:
        derived, table = derived_of(graph), pinned(graph, KEY)
        block, slots = derived.vectors.get(table, "vector"), derived.slots(table).all()

        counts = [len(block.candidates(slots, dice.standard_normal(DIMENSION), 10)) for _ in range(20)]

    assert min(counts) >= 10
    assert max(counts) <= 15


def test_changes_are_followed_and_older_snapshots_stay_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates with and without a vector, inserts, deletes; in a patch and folded into a new base."""
    patched(monkeypatch, "omnigraph.exec.dense.vectors.PATCHES_MAX", 6)
    dice, matrix = random.Random(5), np.random.default_rng(5).standard_normal((40, DIMENSION))
    with graph_of(tmp_path / "graph", matrix.astype(np.float32), without=[3, 9]) as graph:
        derived = derived_of(graph)
        seen = [graph.snapshot()]
        bases = {id(check(graph, derived).base)}
        for step in range(12):
            numbers = [float(dice.randint(0, 3)) for _ in range(DIMENSION)]
            name = f"d{dice.randrange(40):05d}"
            match step % 4:
                case 0:
                    graph.mutate(mutation(f'update Doc set {{ vector: {numbers} }} where name = "{name}"'))
                case 1:
                    records = [node("Doc", name=f"n{step}", vector=numbers), node("Doc", name=f"m{step}")]
                    graph.load(ndjson(records), "append", index=False)
                case 2:
                    graph.mutate(mutation(f'delete Doc where name = "{name}"'))
                case _:
                    graph.load(ndjson([node("Doc", name="d00000", size=step)]), "merge", index=False)
            bases.add(id(check(graph, derived).base))
            seen.append(graph.snapshot())

        counts = derived.counts
        assert counts.vector_builds == 1
        assert counts.vector_advances == 12
        assert len(bases) > 1
        for snapshot in seen[-8:]:
            check(graph, derived, snapshot)
        assert derived.counts.vector_builds <= 2


def test_a_block_is_within_the_memory_of_all_that_is_derived(tmp_path: Path) -> None:
    matrix = np.random.default_rng(6).standard_normal((2_000, DIMENSION)).astype(np.float32)
    with graph_of(tmp_path / "graph", matrix) as graph:
        table, size = pinned(graph, KEY), matrix.nbytes
        narrow = derived_of(graph, memory_bytes=4 * size - 4)
        wide = derived_of(graph, memory_bytes=4 * size)

        assert narrow.vectors.for_search(table, "vector", 2_000, few=FEW) is None
        assert wide.vectors.for_search(table, "vector", 2_000, few=FEW) is not None
        assert narrow.counts.vector_builds == 0
        for name in ("id", "size", "name"):
            wide.cached_column(table, name)
        wide.ids(table)

        assert sum(family.nbytes for family in wide._residents._families.values()) <= 4 * size
        assert wide.counts.vector_builds == 1


def test_few_rows_are_fetched_until_a_block_pays(tmp_path: Path) -> None:
    matrix = np.random.default_rng(7).standard_normal((500, DIMENSION)).astype(np.float32)
    with graph_of(tmp_path / "graph", matrix) as graph:
        derived, table = derived_of(graph), pinned(graph, KEY)

        answers = [derived.vectors.for_search(table, "vector", FEW, few=FEW) for _ in range(20)]

        assert answers[0] is None
        assert answers[-1] is not None
        assert derived.counts.vector_builds == 1


def test_a_column_of_many_numbers_stays_in_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.zeros((50, DIMENSION), np.float32)
    with graph_of(tmp_path / "graph", matrix) as graph:
        patched(monkeypatch, "omnigraph.exec.dense.columns.NUMBERS_MAX", matrix.size - 1)
        derived, table = derived_of(graph), pinned(graph, KEY)

        assert all(derived.vectors.for_search(table, "vector", rows, few=FEW) is None for rows in (1, 50, 60))
        assert derived.counts.vector_builds == 0
