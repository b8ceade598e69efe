"""Rows by id, in memory or by runs on disk."""

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
@given(ids=IDS, size=st.integers(1, 9), run_bytes=st.integers(1, 400), block_bytes=st.integers(1, 100))
def test_runs_are_merged_into_one_order(ids: list[str], size: int, run_bytes: int, block_bytes: int) -> None:
    table = pa.table({"id": ids, "n": range(len(ids))}, schema=SCHEMA)

    with pytest.MonkeyPatch.context() as patch:
        patched(patch, "omnigraph.bulk.export.sort.BLOCK_BYTES", block_bytes)
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
    assert most < 1_500_000  # of the 2,000,000 that the rows take: a run, and a block of each
