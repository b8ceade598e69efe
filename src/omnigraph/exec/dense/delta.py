"""What changed between two versions of a table, read from the fragments that the earlier one did not have.

D1  Nothing is assumed about the commits in between: layouts are compared, and every sum must come out even.
    Where one does not, or a commit in between could hide a change, the answer is "unknown", never a guess.
D2  Rows that were merely moved by compaction are not reported: their version of last change is older.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa

from omnigraph.core.errors import StorageError
from omnigraph.exec.dense.arrays import RowIds
from omnigraph.exec.dense.pins import Lineage, Pin
from omnigraph.storage.handle import SnapshotHandle
from omnigraph.storage.rows import CREATED_AT, UPDATED_AT, Layout, read_rows, row_ids_of
from omnigraph.storage.table import TableStore

# Commits that only add, replace and remove rows, move them, or touch no row.
_PLAIN = frozenset(
    {"append", "update", "delete", "merge", "rewrite", "reserve", "create_index", "config", "project"}
)
SMALL_ROWS = 65_536  # of new fragments: more are read column by column, by those who want them
DELTAS_MAX, DELTAS_BYTES_MAX = 32, 64 * 1024 * 1024
TRANSACTIONS_MAX = 32  # commits looked at one by one; across more, row ids are compared


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows of new fragments: all of them, and which were written after the earlier version."""

    rows: pa.Table
    row_ids: RowIds
    created_at: RowIds
    updated_at: RowIds


_NO_ROWS: RowIds = np.empty(0, np.int64)
NOTHING_MOVED = Moved(pa.table({}), _NO_ROWS, _NO_ROWS, _NO_ROWS)


def _nothing(type_: pa.DataType) -> "pa.ChunkedArray[Any]":
    return pa.chunked_array([pa.array([], type_)])


class TableDelta:
    """From one version of a table to a later one of its lineage. Reads are made once, whoever asks."""

    def __init__(
        self,
        *,
        since: int,
        before: Layout,
        handle: SnapshotHandle,
        after: Layout,
        along: Collection[str] = (),
    ) -> None:
        """Take the layouts of both versions and a handle of the later one.

        `along` are columns that somebody will ask for: of a small change they are read with the first ones.
        """
        self.since = since
        self.handle = handle
        self.before, self.after = before, after
        self.new_fragments = [
            number
            for number, state in after.items()
            if number not in before or before[number].files != state.files
        ]
        self._along = along if sum(after[number].rows for number in self.new_fragments) <= SMALL_ROWS else ()
        gone = [
            number
            for number, state in before.items()
            if number not in after or after[number].files != state.files
        ]
        kept = [number for number in after if number in before and number not in set(self.new_fragments)]
        growth = [after[number].deleted - before[number].deleted for number in kept]
        self.is_consistent = all(grown >= 0 for grown in growth) and not any(
            grown == 0 and after[number].deletion != before[number].deletion
            for number, grown in zip(kept, growth, strict=True)
        )
        # Fragments that are still there and show fewer rows.
        self.thinned = [number for number, grown in zip(kept, growth, strict=True) if grown]
        # Places that showed a row and do not any more: the row was replaced, moved or deleted.
        self.vacated = sum(growth) + sum(before[number].live for number in gone)
        self.rows_before = sum(state.live for state in before.values())
        self.rows_after = sum(state.live for state in after.values())
        self._lock = threading.Lock()
        self._read: dict[str, pa.ChunkedArray[Any]] = {}
        self._moved: Moved | None = None

    @property
    def is_empty(self) -> bool:
        """Whether both versions show the same rows in the same places."""
        return not self.new_fragments and self.vacated == 0

    def moved(self, columns: Collection[str] = ()) -> Moved:
        """Return the rows of new fragments with some columns."""
        with self._lock:
            missing = [name for name in columns if name not in self._read]
            if self._moved is None or missing:
                wanted = [name for name in dict.fromkeys((*columns, *self._along)) if name not in self._read]
                self._fetch(wanted)
            assert self._moved is not None
            table = pa.Table.from_arrays([self._read[name] for name in columns], names=list(columns))
            return Moved(table, self._moved.row_ids, self._moved.created_at, self._moved.updated_at)

    @property
    def nbytes(self) -> int:
        """Bytes of what was read so far."""
        return sum(column.nbytes for column in list(self._read.values()))

    def count_changed(self) -> int:
        """Return how many rows were inserted or updated (D2)."""
        return int((self.moved().updated_at > self.since).sum())

    def changed(self, columns: Collection[str]) -> tuple[RowIds, pa.Table]:
        """Return row ids and columns of the rows that were inserted or updated (D2)."""
        moved = self.moved(columns)
        is_changed = moved.updated_at > self.since
        if is_changed.all():
            return moved.row_ids, moved.rows
        return moved.row_ids[is_changed], moved.rows.take(np.flatnonzero(is_changed))

    def _fetch(self, columns: Sequence[str]) -> None:
        if not self.new_fragments:
            self._read.update({name: _nothing(self.handle.schema.field(name).type) for name in columns})
            self._moved = NOTHING_MOVED
            return
        # Two scans give the rows in one order: that of the fragments.
        rows = read_rows(
            self.handle, columns, fragments=self.new_fragments, with_versions=self._moved is None
        )
        for name in columns:
            self._read[name] = rows[name]
        if self._moved is None:
            self._moved = Moved(
                rows.select([]), row_ids_of(rows), row_ids_of(rows, CREATED_AT), row_ids_of(rows, UPDATED_AT)
            )


DeltaKey: TypeAlias = tuple[Lineage, Pin, Pin]


@final
class DeltaMemo:
    """The newest deltas: the structures of a table are brought forward over one, one after another."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._deltas: OrderedDict[DeltaKey, TableDelta] = OrderedDict()

    def get(self, key: DeltaKey, make: Callable[[], TableDelta]) -> TableDelta:
        """Return the delta between two pins, made if need be; large ones go first."""
        with self._lock:
            delta = self._deltas.get(key)
        if delta is not None:
            return delta
        made = make()
        with self._lock:
            delta = self._deltas.setdefault(key, made)
            held = sum(known.nbytes for known in self._deltas.values())
            for old, known in list(self._deltas.items()):
                if len(self._deltas) > DELTAS_MAX or (held > DELTAS_BYTES_MAX and known is not delta):
                    held -= known.nbytes
                    del self._deltas[old]
            return delta

    def clear(self) -> None:
        """Let all go."""
        with self._lock:
            self._deltas.clear()


def has_plain_history(store: TableStore, delta: TableDelta) -> bool | None:
    """Say whether every commit of the delta is one that hides nothing; none where that cannot be asked."""
    handle = delta.handle
    if handle.version - delta.since > TRANSACTIONS_MAX:
        return None
    between = range(delta.since + 1, handle.version + 1)
    try:
        return all(made.operation in _PLAIN for made in store.transactions(handle.address, between))
    except StorageError as error:
        if error.kind != "not_found":
            raise
        return None  # a version in between was cleaned up


def all_row_ids(handle: SnapshotHandle) -> RowIds:
    """Return the row ids of a version, ascending."""
    row_ids = row_ids_of(read_rows(handle, ()))
    if len(row_ids) > 1 and not (row_ids[1:] > row_ids[:-1]).all():
        row_ids = np.sort(row_ids)
    return row_ids
