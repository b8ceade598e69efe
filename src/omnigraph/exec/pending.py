"""Committed rows as they will be when the mutations before this one have landed.

N1  Every answer is what a snapshot would give that has the pending rows: a pending row stands in the place of
    the committed one with its id.
N2  Only rows that were validated are added, all rows of a mutation or none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.exec.mutation import CommittedTables
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import Snapshot
from omnigraph.staging.write_set import WriteSet
from omnigraph.storage.tables.filter import RowFilter, to_arrow_mask
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.table import TableStore
from omnigraph.validate.columns import Column, TableChange, TypedRows, WriteMode, concat_rows
from omnigraph.validate.set_checks import fold_by_id
from omnigraph.validate.sets import NO_IDS, is_among, is_not_among


class PendingTables(CommittedTables):
    """One snapshot, with what constructive mutations have added to it so far."""

    def __init__(
        self, snapshot: Snapshot, store: TableStore, pinned: Callable[[TableEntry], PinnedTable]
    ) -> None:
        """Begin with the snapshot alone."""
        super().__init__(snapshot, store, pinned)
        self._parts: dict[str, list[TypedRows]] = {}  # folded when somebody asks, not for every mutation
        self._merged: set[str] = set()
        self._touched: frozenset[str] = frozenset()
        self._read: frozenset[str] = frozenset()

    def add(self, write_set: WriteSet, rows: Mapping[str, TypedRows]) -> None:
        """Take the rows of a mutation that was validated over what is here (N2)."""
        for table_key, change in write_set.changes.items():
            assert change.mode in {"append", "merge"}, "only rows are pending, never removals"
            if change.mode == "merge":
                self._merged.add(table_key)
            self._parts.setdefault(table_key, []).append(rows[table_key])
        self._touched |= write_set.touched
        self._read |= write_set.read

    def rows(self, table_key: str) -> TypedRows | None:
        """Return the pending rows of a table, the last of each id; None if there are none."""
        parts = self._parts.get(table_key)
        if parts is None:
            return None
        if len(parts) > 1:
            rows = concat_rows(parts)
            parts[:] = [fold_by_id(replace(rows, table=rows.table.combine_chunks()))]
        return parts[0]

    def sizes(self, table_key: str) -> tuple[int, int]:
        """Return how many pending rows and bytes a table has, at most."""
        parts = self._parts.get(table_key, [])
        return sum(part.count for part in parts), sum(part.table.nbytes for part in parts)

    @property
    def row_count(self) -> int:
        """How many pending rows there are, at most."""
        return sum(part.count for parts in self._parts.values() for part in parts)

    def write(self) -> tuple[WriteSet, dict[str, TypedRows]]:
        """Return all of it as one write, with its rows."""
        rows = {key: found for key in self._parts if (found := self.rows(key)) is not None}
        changes = {
            key: TableChange(found.type, found, NO_IDS, self._mode(key)) for key, found in rows.items()
        }
        return WriteSet(changes, self._touched, self._read - self._touched), rows

    def _mode(self, table_key: str) -> WriteMode:
        return "merge" if table_key in self._merged else "append"

    def scan(
        self, table_key: str, *, columns: Sequence[str] | None = None, where: RowFilter | None = None
    ) -> pa.Table:
        """Return rows that a filter selects: committed ones, then pending (N1)."""
        pending = self.rows(table_key)
        if pending is None:
            return super().scan(table_key, columns=columns, where=where)
        names = None if columns is None else list(dict.fromkeys([*columns, "id"]))
        found = super().scan(table_key, columns=names, where=where)
        chosen = pending.table if where is None else pending.table.filter(to_arrow_mask(where, pending.table))
        both = _behind(found, pending, chosen)
        return both if columns is None else both.select(list(columns))

    def rows_by_values(self, table_key: str, column: str, values: Column, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the rows whose `column` is one of the distinct values."""
        pending = self.rows(table_key)
        if pending is None:
            return super().rows_by_values(table_key, column, values, columns)
        names = list(dict.fromkeys([*columns, "id"]))
        found = super().rows_by_values(table_key, column, values, names)
        held = pending.table.column(column)
        chosen = pending.table.filter(is_among(held, values.cast(held.type)))
        return _behind(found, pending, chosen).select(list(columns))

    def ids_present(self, table_key: str, ids: Column) -> Column:
        """Return those ids that exist in the table."""
        found = super().ids_present(table_key, ids)
        pending = self.rows(table_key)
        if pending is None:
            return found
        ours = pending.ids.filter(is_among(pending.ids, ids))
        return pa.array(sorted({*found.to_pylist(), *ours.to_pylist()}), pa.utf8())

    def edges_by_endpoint(self, table_key: str, column: str, ids: Column) -> pa.Table:
        """Return `id`, `src` and `dst` of the edges at these ends."""
        return self.rows_by_values(table_key, column, ids, ["id", "src", "dst"])

    def ids_with_value(self, table_key: str, ids: Column, column: str) -> Column:
        """Return those ids whose row has a value in a column."""
        pending = self.rows(table_key)
        if pending is None:
            return super().ids_with_value(table_key, ids, column)
        committed = ids.filter(is_not_among(ids, pending.ids))
        found = super().ids_with_value(table_key, committed, column) if len(committed) else NO_IDS
        ours = pending.table.filter(is_among(pending.ids, ids))
        ours = ours.filter(ours.column(column).is_valid())
        return pa.array([*found.to_pylist(), *ours.column("id").to_pylist()], pa.utf8())


def _behind(found: pa.Table, pending: TypedRows, chosen: pa.Table) -> pa.Table:
    """Return the committed rows that no pending row replaces, then the chosen pending ones (N1)."""
    kept = found.filter(is_not_among(found.column("id"), pending.ids)) if found.num_rows else found
    return pa.concat_tables([kept, chosen.select(kept.column_names).cast(kept.schema)])
