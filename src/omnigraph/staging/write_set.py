"""What a write should change, per table, before anything touches a disk.

U1  One write either writes to a table or deletes from it, never both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.history.fold import TableEntry
from omnigraph.validate.columns import TableChange, TypedRows


@dataclass(frozen=True, slots=True)
class WriteSet:
    """An intended change: what happens to which table, and what was read along the way.

    `touched` are the tables that the publish expects at their pins even if nothing happens to them; `read`
    are those that were only read.
    """

    changes: Mapping[str, TableChange]
    touched: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether nothing would happen."""
        return not any(
            change.mode == "overwrite"
            or (change.rows is not None and change.rows.count)
            or len(change.removed_ids)
            for change in self.changes.values()
        )


@dataclass(frozen=True, slots=True)
class TableWork:
    """One table's share of a validated write."""

    entry: TableEntry
    change: TableChange
    rows: TypedRows | None


def work_of(
    write_set: WriteSet, rows: Mapping[str, TypedRows], entries: Mapping[str, TableEntry]
) -> Iterable[TableWork]:
    """Yield the tables that something happens to, by name, with their rows folded by id."""
    for table_key in sorted(write_set.changes):
        change = write_set.changes[table_key]
        folded = rows.get(table_key)
        has_rows = folded is not None and folded.count > 0
        if change.mode == "overwrite" or has_rows or len(change.removed_ids):
            yield TableWork(entries[table_key], change, folded)
