"""Rows by id, in memory or by runs on disk."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.bulk.export.sort import sorted_by_id
from tests.support.seam import patched

COLUMNS: dict[str, pa.DataType] = {"id": pa.utf8(), "n": pa.int64()}
SCHEMA = pa.schema(COLUMNS)
IDS = st.lists(st.text(max_size=3), unique=True, max_size=60)


@settings(max_examples=60)
@given(
    ids=IDS,
    size=st.integers(1, 9),
    run_bytes=st.integers(1, 400),
    block_bytes=st.integers(1, 100),
    runs_max=st.integers(2, 4),
)
def test_runs_are_merged_into_one_order(
    ids: list[str], size: int, run_bytes: int, block_bytes: int, runs_max: int
) -> None:
    table = pa.table({"id": ids, "n": range(len(ids))}, schema=SCHEMA)

    with pytest.MonkeyPatch.context() as patch:
        patched(patch, "omnigraph.bulk.export.sort.BLOCK_BYTES", block_bytes)
        patched(patch, "omnigraph.bulk.export.sort.RUNS_MAX", runs_max)
        batches = list(sorted_by_id(table.to_batches(max_chunksize=size), SCHEMA, run_bytes=run_bytes))

    found = pa.Table.from_batches(batches, SCHEMA)
    assert found.to_pylist() == sorted(table.to_pylist(), key=lambda row: row["id"].encode())


def test_many_rows_are_never_all_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "omnigraph.bulk.export.sort.BLOCK_BYTES", 10_000)
    batches = (
        pa.RecordBatch.from_pydict(
            {"id": [f"{n:08d}" for n in range(start, start - 1000, -1)], "n": [0] * 1000}, schema=SCHEMA
        )
        for start in range(100_000, 0, -1000)
    )
    before = pa.total_allocated_bytes()

    last, most = "", 0
    for batch in sorted_by_id(batches, SCHEMA, run_bytes=200_000):
        most = max(most, pa.total_allocated_bytes() - before)
        ids = [str(id_) for id_ in batch.column("id").to_pylist()]
        assert last < ids[0]
        last = ids[-1]

    assert last == "00100000"
    assert most < 1_000_000  # of the 2,000,000 that the rows take: a run and its copy, or a block of each


def test_runs_of_one_size_become_a_larger_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    patched(monkeypatch, "omnigraph.bulk.export.sort.RUNS_MAX", 4)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = pa.table({"id": [f"{n:03d}" for n in reversed(range(100))], "n": range(100)}, schema=SCHEMA)

    found = sorted_by_id(rows.to_batches(max_chunksize=1), SCHEMA, run_bytes=1)
    first = next(found)

    assert len(list(tmp_path.glob("*/*"))) <= 3 * 4  # of a hundred runs, three sizes of less than four each
    assert first.num_rows + sum(batch.num_rows for batch in found) == 100
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("run_bytes", [10_000_000, 20_000], ids=["in memory", "by runs"])
def test_wide_rows_are_yielded_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, run_bytes: int) -> None:
    patched(monkeypatch, "omnigraph.bulk.export.sort.BLOCK_BYTES", 5_000)
    ids = [f"{n:03d}" + "-" * 997 for n in range(200)]
    rows = pa.table({"id": ids, "n": [0] * 200}, schema=SCHEMA)

    found = list(sorted_by_id(rows.to_batches(max_chunksize=7), SCHEMA, run_bytes=run_bytes))

    assert max(batch.num_rows for batch in found) <= 5
    assert pa.Table.from_batches(found) == rows
