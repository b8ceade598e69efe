"""Rows with the nodes of another scan: on equal properties, or every combination."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import Codes, Ints, SlotArray, Values
from omnigraph.exec.budget import SLOT_BYTES
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.comparison import one_zero, plain
from omnigraph.exec.operators.condition import column_name
from omnigraph.exec.operators.hop import repeated
from omnigraph.exec.operators.operand import constant
from omnigraph.exec.operators.scan import select
from omnigraph.exec.rows import BindingTable
from omnigraph.plan.pattern import variables_of
from omnigraph.plan.physical import Join, JoinKey, Scan


def scan(context: QueryContext, operator: Scan, rows: BindingTable) -> BindingTable:
    """Combine every row so far with the nodes of a scan; the first operator starts from one empty row."""
    return _product(context, operator, rows, _selected(context, operator))


def join(context: QueryContext, operator: Join, rows: BindingTable) -> BindingTable:
    """Return every row with the nodes of a scan whose keys are equal."""
    nodes = _selected(context, operator.scan)
    if not operator.keys:
        return _product(context, operator.scan, rows, nodes)
    own, other = _codes(context, operator, rows, nodes)
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    first = np.searchsorted(ordered, other, side="left")
    count = np.searchsorted(ordered, other, side="right") - first
    count[other < 0] = 0
    context.budget.allow(int(count.sum()) * (len(rows.slots) + 7) * SLOT_BYTES)
    place, within = repeated(first, count)
    return _combined(operator.scan, rows, place, nodes[order[within]])


def _selected(context: QueryContext, operator: Scan) -> SlotArray:
    return select(context, f"node:{operator.type_name}", operator.conditions)


def _product(context: QueryContext, operator: Scan, rows: BindingTable, nodes: SlotArray) -> BindingTable:
    if rows.size == 1 and not rows.slots and rows.weight is None:
        return BindingTable(
            len(nodes), {operator.variable: nodes}, {operator.variable: f"node:{operator.type_name}"}
        )
    context.budget.allow_product(operator.variable, rows.size, len(nodes), len(rows.slots) + 3)
    place = np.repeat(np.arange(rows.size), len(nodes))
    return _combined(operator, rows, place, np.tile(nodes, rows.size))


def _combined(operator: Scan, rows: BindingTable, place: Ints, nodes: SlotArray) -> BindingTable:
    return rows.take(place).with_variable(operator.variable, f"node:{operator.type_name}", nodes)


def _codes(
    context: QueryContext, operator: Join, rows: BindingTable, nodes: SlotArray
) -> tuple[Codes, Codes]:
    """Return numbers for the keys of both sides, equal where all keys are; -1 where a key equals nothing."""
    table_key = f"node:{operator.scan.type_name}"
    own_codes, other_codes = np.zeros(len(nodes), np.int64), np.zeros(rows.size, np.int64)
    for key in operator.keys:
        own = _comparable(context.view.column(table_key, key.own.property, nodes))
        other = _comparable(_other(context, key, rows))
        values = own.unique()
        own_codes = _with_key(own_codes, own, values)
        other_codes = _with_key(other_codes, other, values)
        own_codes, other_codes = _dense(own_codes, other_codes)
        context.budget.check()
    return own_codes, other_codes


def _other(context: QueryContext, key: JoinKey, rows: BindingTable) -> Values:
    fixed = constant(key.other, context.parameters)
    if fixed is not None:
        one: Values = pa.array([fixed.value])
        return one.take(np.zeros(rows.size, np.int32))
    (name,) = variables_of(key.other)
    return context.view.column(rows.tables[name], column_name(key.other), rows.slots[name])


def _comparable(column: Values) -> Values:
    """Return values that are equal exactly where a comparison says so: one zero, and NaN like null."""
    column = plain(column)
    if not pa.types.is_floating(column.type):
        return column
    zeroed = one_zero(column)
    cleared: Values = pc.if_else(pc.is_nan(zeroed), pa.scalar(None, column.type), zeroed)
    return cleared


def _with_key(codes: Codes, column: Values, values: Values) -> Codes:
    if column.type != values.type:
        column = column.cast(values.type)
    index = pc.index_in(column, value_set=values)
    known = column.is_valid().to_numpy(zero_copy_only=False) & index.is_valid().to_numpy(zero_copy_only=False)
    place = index.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where(known & (codes >= 0), codes * (len(values) + 1) + place, -1)


def _dense(own: Codes, other: Codes) -> tuple[Codes, Codes]:
    """Renumber from zero, so that further keys do not overflow; what only the other side has gets -1."""
    known: Sequence[int] | Codes = np.unique(own[own >= 0])
    if not len(known):
        return np.full(len(own), -1, np.int64), np.full(len(other), -1, np.int64)

    def renumbered(codes: Codes) -> Codes:
        at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        return np.where(np.asarray(known)[at] == codes, at, -1).astype(np.int64)

    return renumbered(own), renumbered(other)
