"""When a column is worth keeping in memory.

H1  A column is read whole once fetching parts of it has cost as much: at worst twice the least is spent.
H2  A table whose ids are in memory will be asked for more rows: a quarter of that is enough.
H3  What is kept never decides an answer, only how quickly it comes.
"""

import threading
from typing import final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.exec.dense.resident import ResidentKey
from omnigraph.exec.dense.slots import OpenTable, Slots
from omnigraph.storage.tables.rows import take_rows

COLUMN_SHARE = 4  # of the memory that one column may take: a quarter
IN_USE_SHARE = 4  # of the cost of a read, for a table that is in constant use (H2)
SAMPLE_ROWS = 512
TEXT_BYTES_MAX = 128  # mean length of strings that are worth keeping

# Milliseconds; only their ratios matter.
_FETCH_MS, _FETCH_ROW_MS, _READ_MS, _READ_ROW_MS = 0.5, 0.001, 3.0, 0.00003
_FETCH_NUMBER_MS, _READ_NUMBER_MS = 0.0002, 0.000004  # of vectors


@final
class Worth:
    """What was spent on columns that are not kept; safe for threads."""

    def __init__(self, memory_bytes: int) -> None:
        """Take the memory that all derived structures may use."""
        self._column_bytes_max = memory_bytes // COLUMN_SHARE
        self._lock = threading.Lock()
        self._spent_ms: dict[ResidentKey, float] = {}
        self._is_short: dict[ResidentKey, bool] = {}

    def is_due(self, key: ResidentKey, *, fetched: int, rows: int, is_in_use: bool) -> bool:
        """Count a fetch of some rows; say whether reading a column of `rows` rows has become cheaper."""
        spent_ms = self._spend(key, _FETCH_MS + _FETCH_ROW_MS * fetched)
        return spent_ms * (IN_USE_SHARE if is_in_use else 1) >= _READ_MS + _READ_ROW_MS * rows

    def are_vectors_due(self, key: ResidentKey, *, fetched: int, numbers: int) -> bool:
        """Count a fetch of some numbers of vectors; say whether reading all of them has become cheaper."""
        spent_ms = self._spend(key, _FETCH_MS + _FETCH_NUMBER_MS * fetched)
        return spent_ms >= _READ_MS + _READ_NUMBER_MS * numbers

    def fits(self, size: float) -> bool:
        """Say whether a column of this many bytes may be kept."""
        return size <= self._column_bytes_max

    def is_short(self, key: ResidentKey, table: OpenTable, slots: Slots, name: str) -> bool:
        """Say whether a column is short enough to be kept: fixed-width always, strings by a sample."""
        known = self._is_short.get(key)
        if known is None:
            known = self._is_short[key] = self._has_short_values(table, slots, name)
        return known

    def _spend(self, key: ResidentKey, ms: float) -> float:
        with self._lock:
            spent = self._spent_ms[key] = self._spent_ms.get(key, 0.0) + ms
        return spent

    def _has_short_values(self, table: OpenTable, slots: Slots, name: str) -> bool:
        type_ = table.handle.schema.field(name).type
        if pa.types.is_primitive(type_):
            return self.fits(slots.size * 8)
        if not (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
            return False
        live = slots.all()
        if not len(live):
            return True
        sample = live[:: max(1, len(live) // SAMPLE_ROWS)][:SAMPLE_ROWS]
        taken = take_rows(table.handle, slots.row_ids(sample), [name])
        mean = (pc.sum(pc.binary_length(taken[name])).as_py() or 0) / len(sample)
        return mean <= TEXT_BYTES_MAX and self.fits(mean * slots.size)
