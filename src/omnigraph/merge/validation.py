"""The combined result of both sides must fit the schema: the merged delta, checked against the target.

L1  The one validator decides; here each of its violations becomes a conflict.
L2  A row in conflict is not part of the delta: it stays as the target has it while the rest is checked.
"""

import sys
from collections.abc import Iterable, Sequence

import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
from omnigraph.merge.three_way import TableDelta
from omnigraph.validate.columns import Column
from omnigraph.validate.set_checks import ChunkedChange, validate_chunks
from omnigraph.validate.sets import CommittedView
from omnigraph.validate.violations import Violation, ViolationKind, ViolationLog

_KINDS = {
    ViolationKind.UNIQUE: MergeConflictKind.UNIQUE_VIOLATION,
    ViolationKind.ENDPOINT: MergeConflictKind.ORPHAN_EDGE,
    ViolationKind.CARDINALITY: MergeConflictKind.CARDINALITY_VIOLATION,
}


class CountedView:
    """A committed view that counts the rows it returns."""

    def __init__(self, view: CommittedView) -> None:
        """Take the view."""
        self._view = view
        self.rows_read = 0

    def rows_by_values(self, table_key: str, column: str, values: Column, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the rows whose `column` is one of the distinct values."""
        return self._counted(self._view.rows_by_values(table_key, column, values, columns))

    def ids_present(self, table_key: str, ids: Column) -> Column:
        """Return those of the ids that a row has."""
        found = self._view.ids_present(table_key, ids)
        self.rows_read += len(found)
        return found

    def edges_by_endpoint(self, table_key: str, column: str, ids: Column) -> pa.Table:
        """Return `id`, `src` and `dst` of the edges with these ends."""
        return self._counted(self._view.edges_by_endpoint(table_key, column, ids))

    def ids_with_value(self, table_key: str, ids: Column, column: str) -> Column:
        """Return those of the ids whose row has a value in a column."""
        found = self._view.ids_with_value(table_key, ids, column)
        self.rows_read += len(found)
        return found

    def _counted(self, found: pa.Table) -> pa.Table:
        self.rows_read += found.num_rows
        return found


def broken_rules(
    deltas: Iterable[TableDelta], catalog: Catalog, view: CommittedView
) -> tuple[MergeConflict, ...]:
    """Return what the merged delta breaks in the target, as conflicts in no order (L1, L2)."""
    changes = {
        delta.table_key: ChunkedChange(
            catalog.type_of(delta.table_key), delta.written_chunks(), delta.deleted
        )
        for delta in deltas
        if not delta.is_empty
    }
    log = ViolationLog(limit=sys.maxsize)
    validate_chunks(changes, catalog, view, log)
    return tuple(_conflict(violation) for violation in log.first_violations())


def _conflict(violation: Violation) -> MergeConflict:
    assert violation.table_key is not None, "every row of a merge is of a table"
    kind = _KINDS.get(violation.kind, MergeConflictKind.VALUE_CONSTRAINT_VIOLATION)
    return MergeConflict(violation.table_key, violation.row_id, kind, violation.message)
