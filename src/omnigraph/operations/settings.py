"""Settings of writes from the environment; a malformed one is its default, with a warning."""

import logging
import os

from omnigraph.core.errors import ResourceLimit
from omnigraph.staging.write_set import TableWork
from omnigraph.validate.records import ReadLimits

LOAD_CONCURRENCY = "OMNIGRAPH_LOAD_CONCURRENCY"
LINE_MAX_BYTES, LINE_MAX_TOKENS = "OMNIGRAPH_LOAD_LINE_MAX_BYTES", "OMNIGRAPH_LOAD_LINE_MAX_TOKENS"
KEYED_MAX_ROWS, KEYED_MAX_BYTES = "OMNIGRAPH_KEYED_WRITE_MAX_ROWS", "OMNIGRAPH_KEYED_WRITE_MAX_BYTES"
_log = logging.getLogger("omnigraph")


def load_concurrency() -> int:
    """Return how many fragment writers a load may use."""
    return _number(LOAD_CONCURRENCY) or os.cpu_count() or 1


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


def _number(name: str) -> int:
    """Return a setting, or zero where it is not given or no positive number."""
    raw = os.environ.get(name, "")
    if raw and not raw.isdecimal():
        _log.warning("%s=%r is not a number: the default is used", name, raw)
    return int(raw) if raw.isdecimal() else 0
