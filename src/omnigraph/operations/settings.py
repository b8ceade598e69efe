"""Settings of writes from the environment; a malformed one is its default, with a warning."""

import logging
import os
from collections.abc import Mapping

from omnigraph.core.errors import ResourceLimit
from omnigraph.staging.write_set import TableWork
from omnigraph.validate.records import ReadLimits

LOAD_CONCURRENCY = "OMNIGRAPH_LOAD_CONCURRENCY"
LINE_MAX_BYTES, LINE_MAX_TOKENS = "OMNIGRAPH_LOAD_LINE_MAX_BYTES", "OMNIGRAPH_LOAD_LINE_MAX_TOKENS"
KEYED_MAX_ROWS, KEYED_MAX_BYTES = "OMNIGRAPH_KEYED_WRITE_MAX_ROWS", "OMNIGRAPH_KEYED_WRITE_MAX_BYTES"
SPARK_BYTES, MERGE_BYTES = "OMNIGRAPH_LOAD_SPARK_BYTES", "OMNIGRAPH_BULK_MERGE_BYTES"
KEY_ROWS = "OMNIGRAPH_BULK_KEY_ROWS"
KEY_ROWS_DEFAULT = (
    200_000  # keys of so many rows are compared in the driver, at 50 MB, sooner than a job starts
)
SPARK_BYTES_DEFAULT = 32 * 1024 * 1024  # below, starting a JVM takes longer than the load
MERGE_BYTES_DEFAULT = 256 * 1024 * 1024  # rows that a merge may hold in the memory of one process
_log = logging.getLogger("omnigraph")


def load_concurrency() -> int:
    """Return how many fragment writers a load may use."""
    return _number(LOAD_CONCURRENCY) or os.cpu_count() or 1


def environment() -> Mapping[str, str]:
    """Return the environment that settings come from."""
    return os.environ


def spark_bytes() -> int:
    """Return the size from which a file is loaded with Spark."""
    return _number(SPARK_BYTES) or SPARK_BYTES_DEFAULT


def key_rows() -> int:
    """Return how many rows a bulk load may have for their keys to be compared in one process."""
    return _number(KEY_ROWS) or KEY_ROWS_DEFAULT


def merge_bytes() -> int:
    """Return how many bytes of written rows a bulk merge may bring into one process."""
    return _number(MERGE_BYTES) or MERGE_BYTES_DEFAULT


def read_limits() -> ReadLimits:
    """Return the ceilings of one line of input; zero is none."""
    return ReadLimits(_number(LINE_MAX_BYTES), _number(LINE_MAX_TOKENS))


def check_ceilings(work: list[TableWork]) -> None:
    """Refuse a write above the configured rows or bytes of one table, before any effect.

    Raises:
        ResourceLimit: naming the table.
    """
    rows_max, bytes_max = _number(KEYED_MAX_ROWS), _number(KEYED_MAX_BYTES)
    for item in work:
        if item.rows is None:
            continue
        key = item.entry.table_key
        if rows_max and item.rows.count > rows_max:
            raise ResourceLimit(
                resource=f"keyed write entities for {key}", limit=rows_max, actual=item.rows.count
            )
        size = item.rows.table.nbytes
        if bytes_max and size > bytes_max:
            raise ResourceLimit(resource=f"keyed write bytes for {key}", limit=bytes_max, actual=size)


def check_row_ceiling(table_key: str, rows: int) -> None:
    """Refuse a bulk write above the configured rows of one table, before any effect.

    Raises:
        ResourceLimit: naming the table.
    """
    rows_max = _number(KEYED_MAX_ROWS)
    if rows_max and rows > rows_max:
        raise ResourceLimit(resource=f"keyed write entities for {table_key}", limit=rows_max, actual=rows)


def _number(name: str) -> int:
    """Return a setting, or zero where it is not given or no positive number."""
    raw = os.environ.get(name, "")
    if raw and not raw.isdecimal():
        _log.warning("%s=%r is not a number: the default is used", name, raw)
    return int(raw) if raw.isdecimal() else 0
