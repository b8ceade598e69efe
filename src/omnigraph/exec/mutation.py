"""From a bound mutation to its write set: nothing is written here.

The plan is the statements over physical column names, in order; `CommittedRows` answers what they and the
validator ask of one snapshot.

J1  Statements run in order over committed rows shadowed by the rows that earlier statements made.
J2  Deletes act on the state before the mutation; overlapping ones remove, cascade and count each row once.
J3  `now()` and generated ids are resolved once: running the statements again gives the same write.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.bound import (
    BoundAssignment,
    BoundDelete,
    BoundExpression,
    BoundInsert,
    BoundMutation,
    BoundPredicate,
    BoundStatement,
    BoundUpdate,
    LiteralValue,
    Operator,
    ParameterValue,
)
from omnigraph.catalog.model import Catalog, EdgeType, NodeType, lookup_column
from omnigraph.catalog.params import ParameterInput
from omnigraph.core.failpoint import hit
from omnigraph.core.values import ValueType
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import Snapshot
from omnigraph.staging.write_set import WriteSet
from omnigraph.storage.tables.filter import And, Compare, IsIn, IsNull, Not, RowFilter, to_arrow_mask
from omnigraph.storage.tables.filter import LeafOperator as Comparison
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.rows import FEW_VALUES, ROWS_PER_VALUE
from omnigraph.storage.tables.table import TableStore
from omnigraph.validate.assemble import Converted, assemble
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.columns import Column, TableChange, TypedRows, WriteMode, charge, concat_rows
from omnigraph.validate.set_checks import fold_by_id
from omnigraph.validate.sets import NO_IDS, is_among, is_not_among
from omnigraph.validate.violations import ViolationKind, ViolationLog

_ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}


@dataclass(frozen=True, slots=True)
class ColumnPredicate:
    """One comparison of a column with a value."""

    column: str
    operator: Operator
    value: BoundExpression


@dataclass(frozen=True, slots=True)
class InsertOp:
    """One pending row."""

    type_name: str
    is_edge: bool
    assignments: tuple[tuple[str, BoundExpression], ...]


@dataclass(frozen=True, slots=True)
class UpdateOp:
    """Pending rows for every node that the predicate selects."""

    type_name: str
    assignments: tuple[tuple[str, BoundExpression], ...]
    predicate: ColumnPredicate


@dataclass(frozen=True, slots=True)
class DeleteOp:
    """Removal of what the predicate selects, with the edges of removed nodes."""

    type_name: str
    is_edge: bool
    predicate: ColumnPredicate


MutationOp = InsertOp | UpdateOp | DeleteOp


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """A mutation: operations in order."""

    name: str
    parameters: Mapping[str, ValueType]
    operations: tuple[MutationOp, ...]


def plan_mutation(bound: BoundMutation) -> MutationPlan:
    """Return the plan of a checked mutation."""
    operations = tuple(_statement(statement) for statement in bound.statements)
    return MutationPlan(bound.name, bound.parameters, operations)


def _statement(statement: BoundStatement) -> MutationOp:
    name, is_edge = statement.type.name, isinstance(statement.type, EdgeType)
    match statement:
        case BoundInsert(assignments=assignments):
            return InsertOp(name, is_edge, _columns(assignments, is_edge))
        case BoundUpdate(assignments=assignments, predicate=predicate):
            return UpdateOp(name, _columns(assignments, is_edge), _predicate(predicate, is_edge))
        case BoundDelete(predicate=predicate):
            return DeleteOp(name, is_edge, _predicate(predicate, is_edge))


def _columns(
    assignments: tuple[BoundAssignment, ...], is_edge: bool
) -> tuple[tuple[str, BoundExpression], ...]:
    return tuple((_column(assignment.name, is_edge), assignment.value) for assignment in assignments)


def _predicate(predicate: BoundPredicate, is_edge: bool) -> ColumnPredicate:
    return ColumnPredicate(_column(predicate.name, is_edge), predicate.operator, predicate.value)


def _column(name: str, is_edge: bool) -> str:
    return _ENDPOINT_COLUMNS.get(name, name) if is_edge else name


def tables_of(plan: MutationPlan, catalog: Catalog) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tables that a mutation may move, and those that it only reads, whatever the rows are."""
    moved: set[str] = set()
    read: set[str] = set()
    for operation in plan.operations:
        match operation:
            case InsertOp(name, is_edge):
                moved.add(f"{'edge' if is_edge else 'node'}:{name}")
                if is_edge:
                    edge = catalog.edges[name]
                    read |= {f"node:{edge.source}", f"node:{edge.target}"}
            case UpdateOp(name):
                moved.add(f"node:{name}")
            case DeleteOp(name, is_edge):
                moved.add(f"{'edge' if is_edge else 'node'}:{name}")
                if not is_edge:
                    incident = (edge for edge in catalog.edges.values() if name in {edge.source, edge.target})
                    moved |= {edge.table_key for edge in incident}
    return frozenset(moved), frozenset(read - moved)


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


_COMPARISONS: dict[Operator, Comparison] = {
    Operator.EQ: "eq",
    Operator.NE: "ne",
    Operator.GT: "gt",
    Operator.LT: "lt",
    Operator.GE: "ge",
    Operator.LE: "le",
}


@dataclass(frozen=True, slots=True)
class _Always:
    """The same message for every row."""

    text: str

    def __call__(self, _row: int) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class MutationEffect:
    """What a mutation would do, and how many nodes and edges it counts."""

    write_set: WriteSet
    affected_nodes: int
    affected_edges: int


def execute_mutation(
    plan: MutationPlan,
    parameters: Mapping[str, ParameterInput],
    catalog: Catalog,
    committed: CommittedTables,
    *,
    make_id: Callable[[], str],
    log: ViolationLog,
) -> MutationEffect:
    """Run the operations of a plan over a snapshot and return the intended change."""
    run = _MutationRun(parameters, catalog, committed, make_id, log)
    for line, operation in enumerate(plan.operations, start=1):
        match operation:
            case InsertOp():
                run.insert(operation, line)
            case UpdateOp():
                run.update(operation, line)
            case DeleteOp():
                run.delete(operation)
    return run.effect()


class _MutationRun:
    def __init__(
        self,
        parameters: Mapping[str, ParameterInput],
        catalog: Catalog,
        committed: CommittedTables,
        make_id: Callable[[], str],
        log: ViolationLog,
    ) -> None:
        self.parameters = parameters
        self.catalog = catalog
        self.committed = committed
        self.make_id = make_id
        self.log = log
        self.pending: dict[str, list[TypedRows]] = {}
        self.needs_merge: set[str] = set()
        self.removed: dict[str, Column] = {}
        self.touched: set[str] = set()
        self.read: set[str] = set()
        self.nodes = 0
        self.edges = 0

    def effect(self) -> MutationEffect:
        changes = {key: self.written(key, parts) for key, parts in self.pending.items()}
        for key, ids in self.removed.items():
            changes[key] = TableChange(self.catalog.type_of(key), None, ids, "delete")
        write_set = WriteSet(changes, frozenset(self.touched), frozenset(self.read - self.touched))
        return MutationEffect(write_set, self.nodes, self.edges)

    def written(self, table_key: str, parts: list[TypedRows]) -> TableChange:
        mode: WriteMode = "merge" if table_key in self.needs_merge else "append"
        rows = concat_rows(parts)
        return TableChange(rows.type, rows, NO_IDS, mode, coalesce=True)

    # Insert and update

    def insert(self, operation: InsertOp, line: int) -> None:
        type_ = self.catalog.type_of(f"{'edge' if operation.is_edge else 'node'}:{operation.type_name}")
        values = {column: self.value(expression) for column, expression in operation.assignments}
        columns: dict[str, Column] = {}
        flaws = []
        for name, item in type_.properties.items():
            columns[name], problems = coerce_column([values.get(name)], item, f"{type_.name}.{name}")
            flaws += [(row, name, message) for row, message in problems]
        if isinstance(type_, EdgeType):
            columns |= {end: pa.array([values[end]], pa.utf8()) for end in ("src", "dst")}
            self.read |= {f"node:{type_.source}", f"node:{type_.target}"}
            self.edges += 1
        else:
            self.nodes += 1
            if type_.key is not None:
                self.needs_merge.add(type_.table_key)
        unsaid = {
            name: np.ones(1, dtype=np.bool_)
            for name, item in type_.properties.items()
            if item.default is not None and name not in values
        }
        converted = Converted(type_, columns, flaws, None, np.array([line], dtype=np.int64), unsaid=unsaid)
        self.add(assemble(converted, file=0, make_id=self.make_id, log=self.log))

    def update(self, operation: UpdateOp, line: int) -> None:
        type_ = self.catalog.nodes[operation.type_name]
        key = type_.table_key
        self.touched.add(key)
        matched = self.matching(type_, operation.predicate)
        self.nodes += matched.num_rows
        if not matched.num_rows:
            return
        flaws: dict[str, str] = {}
        for name, expression in operation.assignments:
            where = f"{type_.name}.{name}"
            column, problems = coerce_column([self.value(expression)], type_.properties[name], where)
            for _, message in problems:
                flaws[name] = message
            repeated = column.take(pa.array(np.zeros(matched.num_rows, dtype=np.int64)))
            field = matched.schema.field(name)
            matched = matched.set_column(matched.schema.get_field_index(name), field, repeated)
        self.needs_merge.add(key)
        self.add(self.updated_rows(type_, matched, flaws, line))

    def updated_rows(self, type_: NodeType, table: pa.Table, flaws: dict[str, str], line: int) -> TypedRows:
        count = table.num_rows
        masks = {name: np.ones(count, dtype=np.bool_) for name in flaws}
        lines = np.full(count, line, dtype=np.int64)
        rows = TypedRows(type_, table, np.zeros(count, dtype=np.int32), lines, masks)
        order = list(type_.properties)
        for name, message in flaws.items():
            everywhere = np.arange(count, dtype=np.int64)
            charge(
                rows,
                everywhere,
                self.log,
                kind=ViolationKind.TYPE,
                message=_Always(message),
                constraint=order.index(name),
            )
        return rows

    def add(self, rows: TypedRows) -> None:
        self.touched.add(rows.type.table_key)
        self.pending.setdefault(rows.type.table_key, []).append(rows)

    def matching(self, type_: NodeType, predicate: ColumnPredicate) -> pa.Table:
        """Return the rows that satisfy a predicate: committed ones not shadowed, then pending (J1)."""
        table_key = type_.table_key
        where = self.condition(type_, predicate)
        if where is None:
            return self.committed.handle(table_key).schema.empty_table()
        found = self.committed.scan(table_key, where=where)
        parts = self.pending.get(table_key)
        if parts is None:
            return found
        pending = fold_by_id(concat_rows(parts))
        shadowed = found.filter(is_not_among(found["id"], pending.ids))
        selected = pending.table.filter(to_arrow_mask(where, pending.table))
        return pa.concat_tables([shadowed, selected.cast(shadowed.schema)])

    # Delete

    def delete(self, operation: DeleteOp) -> None:
        types = self.catalog.edges if operation.is_edge else self.catalog.nodes
        type_ = types[operation.type_name]
        key = type_.table_key
        self.touched.add(key)
        where = self.condition(type_, operation.predicate)
        matched: Column = (
            NO_IDS if where is None else self.committed.scan(key, columns=["id"], where=where)["id"]
        )
        fresh = self.newly_removed(key, matched)
        if operation.is_edge:
            self.edges += len(fresh)
            return
        hit("mutation.delete_node_pre_primary_delete")
        self.nodes += len(fresh)
        for edge in self.catalog.edges.values():
            self.cascade(edge, operation.type_name, fresh)

    def cascade(self, edge: EdgeType, node_name: str, ids: Column) -> None:
        """Remove the edges of removed nodes; their tables are touched even where nothing matches."""
        ends = [column for column, name in (("src", edge.source), ("dst", edge.target)) if name == node_name]
        for column in ends:
            self.touched.add(edge.table_key)
            if len(ids):
                incident = self.committed.edges_by_endpoint(edge.table_key, column, ids)["id"]
                self.edges += len(self.newly_removed(edge.table_key, incident))

    def newly_removed(self, table_key: str, ids: Column) -> Column:
        """Record removed ids and return those that no earlier statement removed (J2)."""
        known: Column = self.removed.get(table_key, NO_IDS)
        fresh: Column = pc.unique(ids)
        if len(known):
            fresh = fresh.filter(is_not_among(fresh, known))
        if len(fresh):
            self.removed[table_key] = pa.concat_arrays([known, fresh])
        return fresh

    # Values

    def condition(self, type_: NodeType | EdgeType, predicate: ColumnPredicate) -> RowFilter | None:
        """Return the filter of a predicate; null matches nothing."""
        value = self.value(predicate.value)
        if value is None:
            return None
        assert isinstance(value, str | bool | int | float), "the checker lets scalars through only"
        column = lookup_column(type_, predicate.column)
        return Compare(column, _COMPARISONS[predicate.operator], value)

    def value(self, expression: BoundExpression) -> object:
        match expression:
            case LiteralValue(value):
                return list(value) if isinstance(value, tuple) else value
            case ParameterValue(name):
                return self.parameters[name]
            case _:
                raise AssertionError(f"not a value of a mutation: {expression}")
