"""A committed view over tables in memory, and short ways to make rows and writes."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, derive_id
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.columns import Column, TableChange, TypedRows, WriteMode, make_rows
from omnigraph.validate.set_checks import validate_changeset
from omnigraph.validate.sets import NO_IDS, KeyOps
from omnigraph.validate.violations import Violation, ViolationLog
from tests.support.library import catalog

Record = Mapping[str, object]


def type_named(name: str, of: Catalog | None = None) -> NodeType | EdgeType:
    """Return a type of LIB, or of another catalog."""
    types = catalog() if of is None else of
    return types.nodes.get(name) or types.edges[name]


def columns_of(type_: NodeType | EdgeType, records: Sequence[Record]) -> dict[str, Column]:
    """Return the columns of records that are known to fit; the id of a keyed node is derived."""
    columns: dict[str, Column] = {}
    for name, item in type_.properties.items():
        columns[name], problems = coerce_column([record.get(name) for record in records], item, name)
        assert problems == []
    for name in ("src", "dst") if isinstance(type_, EdgeType) else ():
        columns[name] = pa.array([str(record[name]) for record in records], pa.utf8())
    columns["id"] = pa.array([_id(type_, record) for record in records], pa.utf8())
    return columns


def rows_of(
    type_name: str,
    *records: Record,
    of: Catalog | None = None,
    lines: Sequence[int] | None = None,
    file: int = 0,
    has_fresh_ids: bool = False,
) -> TypedRows:
    """Return rows on lines 1, 2, 3, or those given."""
    type_ = type_named(type_name, of)
    places = range(1, len(records) + 1) if lines is None else lines
    columns = columns_of(type_, records)
    return make_rows(type_, columns, file=file, lines=list(places), has_fresh_ids=has_fresh_ids)


def change(
    rows: TypedRows,
    mode: WriteMode = "merge",
    *,
    removed: Sequence[str] = (),
    coalesce: bool = False,
) -> TableChange:
    """Return what a write does to the table of some rows."""
    return TableChange(rows.type, rows, pa.array(removed, pa.utf8()), mode, coalesce)


def removal(type_name: str, *ids: str, of: Catalog | None = None) -> TableChange:
    """Return a write that deletes."""
    return TableChange(type_named(type_name, of), None, pa.array(ids, pa.utf8()), "delete")


class MemoryView:
    """Committed tables in memory; says how often it was asked."""

    def __init__(self, tables: Mapping[str, pa.Table], of: Catalog | None = None) -> None:
        """Take tables by key; the other types have no rows."""
        types = catalog() if of is None else of
        every: list[NodeType | EdgeType] = [*types.nodes.values(), *types.edges.values()]
        self.tables = {
            type_.table_key: tables.get(type_.table_key, arrow_schema(type_).empty_table()) for type_ in every
        }
        self.calls: list[tuple[str, str]] = []

    def rows_by_values(self, table_key: str, column: str, values: Column, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the rows whose column is one of the values."""
        return self._where("rows_by_values", table_key, column, values).select(list(columns))

    def ids_present(self, table_key: str, ids: Column) -> Column:
        """Return those of the ids that a row has."""
        return self._where("ids_present", table_key, "id", ids)["id"]

    def edges_by_endpoint(self, table_key: str, column: str, ids: Column) -> pa.Table:
        """Return the edges whose end is one of the ids."""
        return self._where("edges_by_endpoint", table_key, column, ids).select(["id", "src", "dst"])

    def ids_with_value(self, table_key: str, ids: Column, column: str) -> Column:
        """Return those of the ids whose row has a value in a column."""
        found = self._where("ids_with_value", table_key, "id", ids)
        return found.filter(found[column].is_valid())["id"]

    def _where(self, question: str, table_key: str, column: str, values: Column) -> pa.Table:
        self.calls.append((question, table_key))
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        assert len(pc.unique(whole)) == len(whole), "a view is asked for distinct values"
        table = self.tables[table_key]
        mask: Any = pc.is_in(table[column], value_set=whole)
        return table.filter(mask)


def committed(*rows: TypedRows) -> MemoryView:
    """Return a view of these rows."""
    return MemoryView({part.type.table_key: part.table for part in rows})


def violations_of(view: MemoryView, *changes: TableChange, of: Catalog | None = None) -> list[Violation]:
    """Return the violations of a write, in order."""
    log = ViolationLog()
    run(view, changes, log, of)
    return list(log.first_violations())


def run(
    view: MemoryView, changes: Sequence[TableChange], log: ViolationLog, of: Catalog | None = None
) -> dict[str, TypedRows]:
    """Validate a write into a log; return its folded rows."""
    delta = {item.type.table_key: item for item in changes}
    return validate_changeset(delta, catalog() if of is None else of, KeyOps(view, delta), log)


def messages(found: Sequence[Violation]) -> list[tuple[int, str, str]]:
    """Return line, kind and message of violations."""
    return [(violation.line, str(violation.kind), violation.message) for violation in found]


def _id(type_: NodeType | EdgeType, record: Record) -> str:
    if isinstance(type_, NodeType) and type_.key is not None:
        known: Any = record
        return derive_id(type_, known)
    return str(record["id"])


NOTHING = NO_IDS
