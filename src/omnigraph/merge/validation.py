"""The combined result of both sides must fit the schema: the merged delta, checked against the target.

L1  The one validator decides; here each of its violations becomes a conflict.
L2  A row in conflict is not part of the delta: it stays as the target has it while the rest is checked.
L3  A reference to bytes elsewhere lies below a base of the schema that the target gets, or is what the target
    has there already: a base that was removed does not come back with a branch.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, Property
from omnigraph.core.arrays import Positions
from omnigraph.core.merge_conflict import MergeConflict, MergeConflictKind
from omnigraph.merge.three_way import TableDelta
from omnigraph.validate.columns import Column, charge, make_rows
from omnigraph.validate.references import external_properties, outside
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


def shaped_view(view: CommittedView, before: Catalog, after: Catalog) -> CommittedView:
    """Return a view of committed rows under the names of another schema; the same one if that is the same."""
    return view if before is after else _ShapedView(view, before, after)


class _ShapedView:
    """Committed rows under the names that tables and properties will have; new ones have none, or nulls."""

    def __init__(self, view: CommittedView, before: Catalog, after: Catalog) -> None:
        self._view, self._after = view, after
        self._before = {(type_.id, type_.incarnation): type_ for type_ in before.types}

    def rows_by_values(self, table_key: str, column: str, values: Column, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the rows whose `column` is one of the distinct values."""
        schema = arrow_schema(self._after.type_of(table_key))
        wanted = pa.schema([schema.field(name) for name in columns])
        old, names = self._names(table_key)
        if old is None or column not in names:
            return wanted.empty_table()
        known = [name for name in columns if name in names]
        rows = self._view.rows_by_values(old, names[column], values, [names[name] for name in known])
        found = dict(zip(known, rows.columns, strict=True))
        arrays = [
            found[field.name].cast(field.type) if field.name in found else pa.nulls(rows.num_rows, field.type)
            for field in wanted
        ]
        return pa.table(arrays, names=list(columns))

    def ids_present(self, table_key: str, ids: Column) -> Column:
        """Return those of the ids that a row has."""
        old, _ = self._names(table_key)
        return pa.array([], pa.utf8()) if old is None else self._view.ids_present(old, ids)

    def edges_by_endpoint(self, table_key: str, column: str, ids: Column) -> pa.Table:
        """Return `id`, `src` and `dst` of the edges with these ends."""
        return self.rows_by_values(table_key, column, ids, ["id", "src", "dst"])

    def ids_with_value(self, table_key: str, ids: Column, column: str) -> Column:
        """Return those of the ids whose row has a value in a column."""
        old, names = self._names(table_key)
        if old is None or column not in names:
            return pa.array([], pa.utf8())
        return self._view.ids_with_value(old, ids, names[column])

    def _names(self, table_key: str) -> tuple[str | None, dict[str, str]]:
        """Return a table's present key and the present names of its columns."""
        type_ = self._after.type_of(table_key)
        old = self._before.get((type_.id, type_.incarnation))
        if old is None:
            return None, {}
        present = {item.id: item.name for item in old.properties.values()}
        names = {item.name: present[item.id] for item in type_.properties.values() if item.id in present}
        return old.table_key, {"id": "id", "src": "src", "dst": "dst"} | names


def broken_rules(
    deltas: Iterable[TableDelta], catalog: Catalog, view: CommittedView
) -> tuple[MergeConflict, ...]:
    """Return what the merged delta breaks in the target, as conflicts in no order (L1, L2)."""
    log = ViolationLog(limit=sys.maxsize)
    changes = {
        delta.table_key: ChunkedChange(
            catalog.type_of(delta.table_key),
            _with_known_references(delta.written_chunks(), catalog.type_of(delta.table_key), view, log),
            delta.deleted,
        )
        for delta in deltas
        if not delta.is_empty
    }
    validate_chunks(changes, catalog, view, log)
    return tuple(_conflict(violation) for violation in log.first_violations())


def _with_known_references(
    chunks: Iterable[pa.Table], type_: NodeType | EdgeType, view: CommittedView, log: ViolationLog
) -> Iterator[pa.Table]:
    """Yield the chunks, reporting references that the target's schema does not allow (L3)."""
    for chunk in chunks:
        for place, item in external_properties(type_):
            faults = outside(chunk.column(item.name), item)
            if faults:
                columns = {name: chunk.column(name) for name in chunk.column_names}
                nowhere = np.zeros(chunk.num_rows, dtype=np.int64)
                charge(
                    make_rows(type_, columns, lines=nowhere),
                    _new_references(chunk, type_, item, list(faults), view),
                    log,
                    kind=ViolationKind.TYPE,
                    message=_Faults(f"{type_.name}.{item.name}", faults),
                    constraint=place,
                )
        yield chunk


@dataclass(frozen=True, slots=True)
class _Faults:
    """The messages of a column, by row."""

    where: str
    faults: Mapping[int, str]

    def __call__(self, row: int) -> str:
        return f"{self.where}: {self.faults[row]}"


def _new_references(
    chunk: pa.Table, type_: NodeType | EdgeType, item: Property, rows: list[int], view: CommittedView
) -> Positions:
    """Return those of some rows whose reference is not the one that the target has there."""
    some = chunk.select(["id", item.name]).take(pa.array(rows, pa.int64()))
    held = view.rows_by_values(type_.table_key, "id", some["id"], ["id", item.name])
    known = set(zip(held["id"].to_pylist(), held[item.name].to_pylist(), strict=True))
    given = zip(some["id"].to_pylist(), some[item.name].to_pylist(), strict=True)
    new = [row for row, reference in zip(rows, given, strict=True) if reference not in known]
    return np.array(new, dtype=np.int64)


def _conflict(violation: Violation) -> MergeConflict:
    assert violation.table_key is not None, "every row of a merge is of a table"
    kind = _KINDS.get(violation.kind, MergeConflictKind.VALUE_CONSTRAINT_VIOLATION)
    return MergeConflict(violation.table_key, violation.row_id, kind, violation.message)
