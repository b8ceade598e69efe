"""The nodes of a type that pass conditions: by key, by index, or by reading columns; and joins with them.

S1  An equality on the key is one lookup in the index of ids, never a scan; one on a unique column of a large
    table is one in the index of that column.
S2  Whichever way is taken, the conditions are finally decided in memory: an index only narrows the rows.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.bound import (
    BoundExpression,
    Comparison,
    Condition,
    Operator,
    PropertyValue,
    TextMatchValue,
)
from omnigraph.catalog.model import KeyValue, NodeType, derive_id, lookup_column
from omnigraph.core.arrays import Codes, Ints, Mask, SlotArray, Values
from omnigraph.core.values import FLOATS
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.comparison import COMPARING, one_zero, plain
from omnigraph.exec.operators.condition import column_name, comparison, holds, never_true
from omnigraph.exec.operators.hop import repeated
from omnigraph.exec.operators.operand import constant
from omnigraph.exec.operators.text import text_matches
from omnigraph.exec.rows import NO_SLOTS, SLOT_BYTES, BindingTable, distinct
from omnigraph.plan.pattern import variables_of
from omnigraph.plan.physical import Join, JoinKey, Scan
from omnigraph.storage.tables.filter import And, Compare, RowFilter
from omnigraph.storage.tables.filter_leaf import typed

WHOLE_TABLE_FROM = 10_000  # from this many slots, deciding a condition once per node may pay off
LOOKUP_FROM = 20_000  # from this many rows, one lookup is quicker than comparing a whole column
PUSHED_MAX = 64  # conditions that narrow a scan: the library takes seconds to plan thousands, uninterrupted
TAKE_SHARE = 10  # a column that is not kept is fetched row by row for up to a tenth of the rows


def select(context: QueryContext, table_key: str, conditions: Sequence[Condition]) -> SlotArray:
    """Return the slots of a table that pass conditions on them alone, ascending."""
    known = context.view.slots(table_key)
    if not conditions:
        return known.all()
    if never_true(conditions, context) or not known.live_count:
        return NO_SLOTS
    slot = _by_key(context, table_key, conditions)
    if slot is not None:
        if slot < 0:
            return NO_SLOTS
        found = np.array([slot], np.int32)
        return found if len(conditions) == 1 else found[holds(context, table_key, conditions, found)]
    among = _among_keys(context, table_key, conditions)
    if among is not None:
        return among if len(conditions) == 1 else among[holds(context, table_key, conditions, among)]
    few = _by_unique_column(context, table_key, conditions)
    if few is not None:
        return few[holds(context, table_key, conditions, few)]
    comparisons = [condition for condition in conditions if isinstance(condition, Comparison)]
    texts = [condition for condition in conditions if isinstance(condition, TextMatchValue)]
    slots = _by_columns(context, table_key, comparisons) if comparisons else None
    for text in texts:
        truth = text_matches(context, table_key, text, slots)
        slots = np.flatnonzero(truth).astype(np.int32) if slots is None else slots[truth]
    assert slots is not None
    return slots


def passing(context: QueryContext, table_key: str, conditions: Sequence[Condition], slots: SlotArray) -> Mask:
    """Return which of many slots, with repeats, pass conditions on them alone."""
    known = context.view.slots(table_key)
    if len(slots) < WHOLE_TABLE_FROM or len(slots) * 2 < known.size:
        return holds(context, table_key, conditions, slots)
    truth = np.zeros(known.size, np.bool_)
    truth[select(context, table_key, conditions)] = True
    return truth[slots]


# By key


def _by_key(context: QueryContext, table_key: str, conditions: Sequence[Condition]) -> int | None:
    """Return the one slot that equalities on the whole key leave, -1 for no slot, `None` without them."""
    node = context.view.catalog.type_of(table_key)
    if not isinstance(node, NodeType) or node.key is None:
        return None
    equal: dict[str, KeyValue] = {}
    for condition in conditions:
        pair = with_constant(condition, context)
        if pair is not None and condition_operator(condition) is Operator.EQ:
            equal.setdefault(pair[0].property, pair[1])
    if not all(name in equal for name in node.key):
        return None
    table = context.view.table(table_key)
    values: dict[str, KeyValue | None] = {}
    for name in node.key:
        if node.properties[name].type.scalar in FLOATS:
            return None
        value = equal[name]
        if not isinstance(value, str):
            held = typed(table.handle.schema.field(name), value)
            if held is None:
                return -1
            value = held
        values[name] = value
    return context.view.find(table_key, derive_id(node, values))


def _by_unique_column(
    context: QueryContext, table_key: str, conditions: Sequence[Condition]
) -> SlotArray | None:
    """Return the slot that an equality on a unique column leaves, looked up in its index."""
    view = context.view
    if view.rows(table_key) < LOOKUP_FROM:
        return None
    unique = view.catalog.type_of(table_key).unique
    for condition in conditions:
        pair = with_constant(condition, context)
        if (
            pair is not None
            and condition_operator(condition) is Operator.EQ
            and (pair[0].property,) in unique
        ):
            handle = view.table(table_key).handle
            rows = view.store.values_in(handle, pair[0].property, [pair[1]], ["id"], with_row_id=True)
            slots = view.slots(table_key).of_row_ids(rows["_rowid"].to_numpy().astype(np.int64))
            return slots[slots >= 0]
    return None


def _among_keys(context: QueryContext, table_key: str, conditions: Sequence[Condition]) -> SlotArray | None:
    """Return the slots whose key is in a list of the query, or `None` without such a condition."""
    node = context.view.catalog.type_of(table_key)
    if not isinstance(node, NodeType):
        return None
    for condition in conditions:
        if not isinstance(condition, Comparison) or condition.operator is not Operator.CONTAINS:
            continue
        keys, right = constant(condition.left, context.parameters), condition.right
        if keys is None or not isinstance(right, PropertyValue):
            continue
        if lookup_column(node, right.property) == "id":
            assert isinstance(keys.value, tuple)
            table = context.view.table(table_key)
            slots = context.view.derived.ids(table).slots(cast("tuple[str, ...]", keys.value))
            return distinct(slots[slots >= 0], context.view.slots(table_key).size)
    return None


def condition_operator(condition: Condition) -> Operator | None:
    """Return the operator of a comparison."""
    return condition.operator if isinstance(condition, Comparison) else None


def with_constant(condition: Condition, context: QueryContext) -> tuple[PropertyValue, KeyValue] | None:
    """Return property and scalar of a comparison between the two, either way round."""
    if not isinstance(condition, Comparison):
        return None
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if isinstance(one, PropertyValue):
            value = constant(other, context.parameters)
            if value is not None and isinstance(value.value, str | int | float | bool):
                return one, value.value
    return None


# By columns


def _by_columns(context: QueryContext, table_key: str, conditions: Sequence[Comparison]) -> SlotArray:
    """Decide comparisons over whole columns: those in memory first, then what is left of the others."""
    view = context.view
    table, known = view.table(table_key), view.slots(table_key)
    truth: Mask | None = known.live()
    left: list[Comparison] = []
    for condition in conditions:
        columns = {
            side: view.derived.cached_column(table, column_name(side))
            for side in (condition.left, condition.right)
            if isinstance(side, PropertyValue)
        }
        if any(column is None for column in columns.values()):
            left.append(condition)
            continue

        def read(
            expression: BoundExpression, columns: dict[PropertyValue, Values | None] = columns
        ) -> Values:
            assert isinstance(expression, PropertyValue)
            column = columns[expression]
            assert column is not None
            return column

        decided = comparison(condition, context, read, known.size)
        truth = decided if truth is None else truth & decided
        context.budget.check()
    if truth is None or len(left) == len(conditions):
        slots = known.all()
    else:
        slots = np.flatnonzero(truth).astype(np.int32)
    if not left:
        return slots
    if len(slots) * TAKE_SHARE <= known.size:
        return slots[holds(context, table_key, left, slots)]
    found = _by_reading(context, table_key, left)
    if len(slots) == known.live_count:
        return found
    kept = np.zeros(known.size, np.bool_)
    kept[found] = True
    return slots[kept[slots]]


def _by_reading(context: QueryContext, table_key: str, conditions: Sequence[Comparison]) -> SlotArray:
    """Decide comparisons by one pass over columns that are too large to keep."""
    view = context.view
    names = {column_name(side) for c in conditions for side in (c.left, c.right) if _is_column(side)}
    pushed = _pushed(context, conditions)
    batches = view.store.scan_batches(
        view.table(table_key).handle, columns=sorted(names), filter=pushed, with_row_id=True
    )
    parts = []
    for batch in batches:
        truth = np.ones(batch.num_rows, np.bool_)
        for condition in conditions:
            context.budget.check()
            truth &= comparison(
                condition,
                context,
                lambda side, batch=batch: batch.column(column_name(side)),  # type: ignore[misc]
                batch.num_rows,
            )
        parts.append(batch.column("_rowid").to_numpy()[truth])
        context.budget.check()
    if not parts:
        return NO_SLOTS
    slots = view.slots(table_key).of_row_ids(np.concatenate(parts).astype(np.int64))
    return np.sort(slots[slots >= 0])


def _pushed(context: QueryContext, conditions: Sequence[Comparison]) -> RowFilter | None:
    """Return the part of the conditions that a scan of the table can decide by itself."""
    parts: list[RowFilter] = []
    for condition in conditions:
        pair = with_constant(condition, context)
        if pair is not None and condition.operator in COMPARING and condition.left == pair[0]:
            parts.append(Compare(pair[0].property, COMPARING[condition.operator], pair[1]))
        if len(parts) == PUSHED_MAX:
            break  # S2: the others are decided in memory
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _is_column(expression: BoundExpression) -> bool:
    return isinstance(expression, PropertyValue)


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
