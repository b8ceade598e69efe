"""Settings of writes from the environment; a malformed one falls back to its default, with a warning."""

import os
from collections.abc import Mapping

from omnigraph.core.environment import number_setting
from omnigraph.core.errors import BadRequest, ResourceLimit
from omnigraph.core.limits import EXPANSION_FLOOR_BYTES, EXPANSION_MAX, LINE_BYTES_MAX
from omnigraph.core.values import shown
from omnigraph.staging.write_set import TableWork
from omnigraph.validate.records import (
    EXPANSION_FLOOR_SETTING,
    EXPANSION_SETTING,
    LINE_BYTES_SETTING,
    LINE_TOKENS_SETTING,
    ReadLimits,
)

LOAD_CONCURRENCY = "OMNIGRAPH_LOAD_CONCURRENCY"
KEYED_MAX_ROWS, KEYED_MAX_BYTES = "OMNIGRAPH_KEYED_WRITE_MAX_ROWS", "OMNIGRAPH_KEYED_WRITE_MAX_BYTES"
SPARK_BYTES, MERGE_BYTES = "OMNIGRAPH_LOAD_SPARK_BYTES", "OMNIGRAPH_BULK_MERGE_BYTES"
KEY_ROWS = "OMNIGRAPH_BULK_KEY_ROWS"
EMBED_SPARK_ROWS = "OMNIGRAPH_EMBED_SPARK_ROWS"
SCHEMA_SPARK_BYTES = "OMNIGRAPH_SCHEMA_SPARK_BYTES"
INDEX_SPARK_ROWS = "OMNIGRAPH_INDEX_SPARK_ROWS"
MAINTENANCE_CONCURRENCY = "OMNIGRAPH_MAINTENANCE_CONCURRENCY"
READER_GRACE = "OMNIGRAPH_READER_GRACE"
WRITE_RETRY = "OMNIGRAPH_WRITE_RETRY"
WRITE_RETRY_S_DEFAULT = 10  # hundreds of small commits of others: who loses to all of them has other troubles
WRITE_RETRY_S_MAX = 86_400  # a day; nobody waits longer for one call
MAINTENANCE_CONCURRENCY_DEFAULT = 8  # tables at a time: most of the work waits for the disk or the store
READER_GRACE_S_DEFAULT = 600  # longer than most queries of other processes, which nobody can ask
KEY_ROWS_DEFAULT = (
    200_000  # comparing the keys of this many rows in the driver, at 50 MB, is faster than starting a job
)
SPARK_BYTES_DEFAULT = 32 * 1024 * 1024  # below this, starting a JVM takes longer than the load
MERGE_BYTES_DEFAULT = 256 * 1024 * 1024  # rows that an upsert may hold in the memory of one process
STORE_TABLES_AT_ONCE = 8  # each holds up to a few hundred megabytes of rows
SCHEMA_SPARK_BYTES_DEFAULT = 1024 * 1024 * 1024  # a process writes columns at 200 MB/s: five seconds, a JVM
INDEX_SPARK_ROWS_DEFAULT = 50_000_000  # a process indexes two million ids in a second: 25 s, a JVM
EMBED_SPARK_ROWS_DEFAULT = 20_000  # 80 requests of 256 texts, which would run one after another


def load_concurrency() -> int:
    """Return how many fragment writers a load may use."""
    return number_setting(LOAD_CONCURRENCY, 0) or os.cpu_count() or 1


def maintenance_concurrency() -> int:
    """Return how many tables a maintenance operation works on at a time."""
    return number_setting(MAINTENANCE_CONCURRENCY, 0) or MAINTENANCE_CONCURRENCY_DEFAULT


def reader_grace_s() -> float:
    """Return how long cleanup keeps versions that were just replaced, for readers of other processes."""
    return float(number_setting(READER_GRACE, READER_GRACE_S_DEFAULT))


def optimize_concurrency(*, is_local: bool) -> int:
    """Return how many tables maintenance may work on at once.

    On a disk that is one: the library uses all processors for it. A store keeps each of them waiting.
    """
    return number_setting(MAINTENANCE_CONCURRENCY, 0) or (1 if is_local else STORE_TABLES_AT_ONCE)


def write_retry_s(given: object = None) -> float:
    """Return for how many seconds a write that lost a race is run again: as given, else as set.

    Raises:
        BadRequest: it is no number of seconds from 0 to the limit.
    """
    if given is None:
        return float(number_setting(WRITE_RETRY, WRITE_RETRY_S_DEFAULT, most=WRITE_RETRY_S_MAX))
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= WRITE_RETRY_S_MAX:
        return float(given)
    raise BadRequest(f"retry must be a number of seconds from 0 to {WRITE_RETRY_S_MAX}, not {shown(given)}")


def environment() -> Mapping[str, str]:
    """Return the environment that settings come from."""
    return os.environ


def spark_bytes() -> int:
    """Return the size in bytes from which files are loaded with Spark."""
    return number_setting(SPARK_BYTES, 0) or SPARK_BYTES_DEFAULT


def schema_spark_bytes() -> int:
    """Return how many bytes a change of schema may write or rewrite before Spark does it."""
    return number_setting(SCHEMA_SPARK_BYTES, 0) or SCHEMA_SPARK_BYTES_DEFAULT


def index_spark_rows() -> int:
    """Return how many rows, counted once for each index, a build may have before Spark does it."""
    return number_setting(INDEX_SPARK_ROWS, 0) or INDEX_SPARK_ROWS_DEFAULT


def embed_spark_rows() -> int:
    """Return the number of rows from which vectors are computed with Spark."""
    return number_setting(EMBED_SPARK_ROWS, 0) or EMBED_SPARK_ROWS_DEFAULT


def key_rows() -> int:
    """Return up to how many rows of a bulk load have their keys compared in one process."""
    return number_setting(KEY_ROWS, 0) or KEY_ROWS_DEFAULT


def merge_bytes() -> int:
    """Return how many bytes of written rows a bulk upsert may bring into one process."""
    return number_setting(MERGE_BYTES, 0) or MERGE_BYTES_DEFAULT


def read_limits() -> ReadLimits:
    """Return the ceilings for one line of input and for the content of a packed file; zero means none."""
    return ReadLimits(
        number_setting(LINE_BYTES_SETTING, LINE_BYTES_MAX),
        number_setting(LINE_TOKENS_SETTING, 0),
        number_setting(EXPANSION_SETTING, EXPANSION_MAX),
        number_setting(EXPANSION_FLOOR_SETTING, EXPANSION_FLOOR_BYTES),
    )


def check_ceilings(work: list[TableWork]) -> None:
    """Refuse a write above the configured rows or bytes of one table, before any effect.

    Raises:
        ResourceLimit: naming the table.
    """
    for item in work:
        if item.rows is not None:
            check_ceiling(item.entry.table_key, rows=item.rows.count, size=item.rows.table.nbytes)


def check_ceiling(table_key: str, *, rows: int, size: int) -> None:
    """Refuse rows of one table, or their bytes in memory, above the configured ones.

    Raises:
        ResourceLimit: naming the table.
    """
    limits = (("entities", KEYED_MAX_ROWS, rows), ("bytes", KEYED_MAX_BYTES, size))
    for what, setting, actual in limits:
        limit = number_setting(setting, 0)
        if limit and actual > limit:
            raise ResourceLimit(resource=f"keyed write {what} for {table_key}", limit=limit, actual=actual)
