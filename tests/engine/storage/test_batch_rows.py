"""How many rows a compaction rewrites at a time."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.tables.layout import BATCH_BYTES, BATCH_ROWS_MAX, batch_rows


@pytest.mark.parametrize(
    ("widths", "rows"),
    [([], BATCH_ROWS_MAX), ([1], BATCH_ROWS_MAX), ([BATCH_BYTES // 4], 3), ([1, BATCH_BYTES * 2], 1)],
)
@pytest.mark.case("engine", 803)
def test_wide_rows_are_rewritten_a_few_at_a_time(tmp_path: Path, widths: list[int], rows: int) -> None:
    uri = str(tmp_path / "table")
    schema = pa.schema([("data", pa.large_binary())])
    lance.write_dataset(pa.table({"data": pa.array([], pa.large_binary())}), uri, schema)
    for width in widths:
        lance.write_dataset(
            pa.table({"data": pa.array([bytes(width)], pa.large_binary())}), uri, mode="append"
        )

    assert batch_rows(lance.dataset(uri)) == rows
