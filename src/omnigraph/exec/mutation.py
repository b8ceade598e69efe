"""Turns the statements of a mutation into a write set: nothing is written here.

J1  Statements run in order over committed rows shadowed by the rows that earlier statements made.
J2  Deletes act on the state before the mutation; overlapping ones remove, cascade and count each row once.
J3  `now()` and generated ids are resolved once: running the statements again gives the same write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.bound import BoundExpression, LiteralValue, Operator, ParameterValue
from omnigraph.catalog.entity_id import lookup_column
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.catalog.params import ParameterInput
from omnigraph.core.failpoint import hit
from omnigraph.exec.committed import CommittedTables
from omnigraph.plan.mutation import ColumnPredicate, DeleteOp, InsertOp, MutationPlan, UpdateOp
from omnigraph.staging.write_set import WriteSet
from omnigraph.storage.tables.filter import Compare, RowFilter, to_arrow_mask
from omnigraph.storage.tables.filter import LeafOperator as Comparison
from omnigraph.validate.assemble import Converted, assemble
from omnigraph.validate.changeset import fold_by_id
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.columns import Column, TableChange, TypedRows, WriteMode, charge, concat_rows
from omnigraph.validate.sets import NO_IDS, is_not_among
from omnigraph.validate.violations import ViolationKind, ViolationLog

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
        converted = Converted(type_, columns, flaws, None, np.array([line], dtype=np.int64))
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
