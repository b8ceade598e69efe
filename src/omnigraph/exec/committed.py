"""Committed rows of one snapshot, as the validator and mutations ask for them."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from omnigraph.history.fold import TableEntry
from omnigraph.history.state import Snapshot
from omnigraph.storage.tables.filter import And, IsIn, IsNull, Not, RowFilter
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.rows import FEW_VALUES, ROWS_PER_VALUE
from omnigraph.storage.tables.table import TableStore
from omnigraph.validate.columns import Column
from omnigraph.validate.sets import is_among


class CommittedTables:
    """Reads of one snapshot: every table at its pin, opened once, never at HEAD."""

    def __init__(
        self, snapshot: Snapshot, store: TableStore, pinned: Callable[[TableEntry], PinnedTable]
    ) -> None:
        """Take the snapshot and how its tables are found."""
        self.snapshot = snapshot
        self._store = store
        self._pinned = pinned

    def handle(self, table_key: str) -> SnapshotHandle:
        """Return a table at its pin.

        Raises:
            HistoricalVersionReclaimed: the version was cleaned up.
            StorageError: it cannot be read.
        """
        return self._pinned(self.snapshot.entry(table_key)).open(self._store)

    def scan(
        self, table_key: str, *, columns: Sequence[str] | None = None, where: RowFilter | None = None
    ) -> pa.Table:
        """Return rows that a filter selects."""
        return self._store.scan(self.handle(table_key), columns=columns, filter=where)

    def rows_by_values(self, table_key: str, column: str, values: Column, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the rows whose `column` is one of the distinct values."""
        return self._store.values_in(self.handle(table_key), column, _plain(values), list(columns))

    def ids_present(self, table_key: str, ids: Column) -> Column:
        """Return those ids that exist in the table."""
        found = self._store.existing_ids(self.handle(table_key), ids.to_pylist())
        return pa.array(sorted(found), pa.utf8())

    def edges_by_endpoint(self, table_key: str, column: str, ids: Column) -> pa.Table:
        """Return `id`, `src` and `dst` of the edges at these ends."""
        return self.rows_by_values(table_key, column, ids, ["id", "src", "dst"])

    def ids_with_value(self, table_key: str, ids: Column, column: str) -> Column:
        """Return those ids whose row has a value in a column: few by index, many by one pass."""
        handle, has_value = self.handle(table_key), Not(IsNull(column))
        wanted: list[str] = ids.to_pylist()
        if len(wanted) > max(FEW_VALUES, handle.row_count // ROWS_PER_VALUE):
            found = self._store.scan(handle, columns=["id"], filter=has_value)["id"]
            return found.filter(is_among(found, ids)).combine_chunks()
        where = And((IsIn("id", tuple(wanted)), has_value))
        return self._store.scan(handle, columns=["id"], filter=where)["id"].combine_chunks()


def _plain(values: Column) -> list[str | int | float | bool]:
    """Return values as filters take them: numbers, because Arrow's dates drop the time of day."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    plain: list[str | int | float | bool] = values.to_pylist()
    return plain
