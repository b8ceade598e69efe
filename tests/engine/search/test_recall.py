"""A vector index at its default settings finds what an exact search finds, nearly always."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.exec.search import nearest, vectors
from omnigraph.storage.tables.index import IndexRequest
from tests.support.seam import patched
from tests.support.tables import Workbench, names, table_schema

DIMENSION, ROWS, QUERIES = 32, 6_000, 30
SCHEMA = table_schema(pa.field("vector", pa.list_(pa.float32(), DIMENSION)))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """Return vectors without any clusters, which are the hardest for an index."""
    directory: Path = tmp_path_factory.mktemp("recall")
    matrix = np.random.default_rng(11).normal(size=(ROWS, DIMENSION)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), DIMENSION)
    bench = Workbench(directory, SCHEMA)
    bench.append(pa.table({"id": names(ROWS), "vector": column}, schema=SCHEMA))
    bench.index(IndexRequest("vector", "vector"))
    return bench


def recall(bench: Workbench, within: "np.ndarray[tuple[int], np.dtype[np.int64]] | None") -> float:
    generator = np.random.default_rng(12)
    hits = 0
    for _ in range(QUERIES):
        query = generator.normal(size=DIMENSION).tolist()
        exact = nearest(bench.store, bench.head(), "vector", query, within, 10, True).row_ids
        found = nearest(bench.store, bench.head(), "vector", query, within, 10, False).row_ids
        hits += len(set(exact.tolist()) & set(found.tolist()))
    return hits / (10 * QUERIES)


@pytest.mark.parametrize("fixed_partitions", [vectors.FIXED_PARTITIONS, 0])
def test_recall_at_ten(bench: Workbench, monkeypatch: pytest.MonkeyPatch, fixed_partitions: int) -> None:
    """Both with a fixed share of the partitions, and with more of them until the answer stays."""
    patched(monkeypatch, "omnigraph.exec.search.vectors.FIXED_PARTITIONS", fixed_partitions)

    assert recall(bench, None) >= 0.95
    assert recall(bench, np.arange(0, ROWS, 2)) >= 0.95


def test_a_narrow_restriction_is_searched_exactly(bench: Workbench) -> None:
    assert recall(bench, np.arange(0, ROWS, 6)) == 1.0


def test_eight_threads_get_the_same_answer(bench: Workbench) -> None:
    query = [0.1] * DIMENSION

    def search(_: int) -> list[int]:
        return list(nearest(bench.store, bench.head(), "vector", query, None, 10, False).row_ids)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(search, range(32)))

    assert all(answer == answers[0] for answer in answers)
