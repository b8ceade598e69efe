"""Groups of rows: a number per row, equal where all grouping keys are.

G1  A key is read once per node, not once per row, and not at all where the node itself is the group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.catalog.bound import EntityValue, PropertyValue
from omnigraph.catalog.model import NodeType
from omnigraph.core.arrays import Codes, Values
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.order import list_codes
from omnigraph.exec.rows import BindingTable, distinct

GroupKey = PropertyValue | EntityValue
_CODE_MAX = 1 << 62
_COUNT_UP_TO = 4  # numbers up to this many times the rows are counted instead of sorted


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each row is in, and one row of each group."""

    count: int
    of_row: Codes | None  # `None`: all rows are one group
    first: Codes
    is_each_row: bool = False  # every row is the group of its own number


def group(context: QueryContext, keys: Sequence[GroupKey], rows: BindingTable) -> Groups:
    """Return the groups of rows by keys, in no particular order."""
    if len(keys) == 1 and _is_each_row(context, keys[0], rows):
        every = np.arange(rows.size)
        return Groups(rows.size, every, every, is_each_row=True)
    codes, span = np.zeros(rows.size, np.int64), 1
    for key in keys:
        context.budget.check()
        next_codes, next_span = _key_codes(context, key, rows)
        if span * next_span > _CODE_MAX:
            codes, span = _dense(codes)
        codes, span = codes * next_span + next_codes, span * next_span
    return _groups(codes, span)


def _is_each_row(context: QueryContext, key: GroupKey, rows: BindingTable) -> bool:
    """Return whether a key is an entity that ascends from row to row, as a scan gives it."""
    table_key, slots = rows.tables[key.variable], rows.slots[key.variable]
    if not isinstance(key, EntityValue) and not is_identifying(context, table_key, key.property):
        return False
    return bool((slots[1:] > slots[:-1]).all())


def _groups(codes: Codes, span: int) -> Groups:
    size = len(codes)
    if span <= max(_COUNT_UP_TO * size, 1 << 16):
        first = np.full(span, -1, np.int64)
        first[codes[::-1]] = np.arange(size - 1, -1, -1)
        present = first >= 0
        number = np.cumsum(present) - 1
        return Groups(int(present.sum()), number[codes], first[present])
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1])) if size else np.empty(0, np.bool_)
    of_row = np.empty(size, np.int64)
    of_row[order] = np.cumsum(begins) - 1
    return Groups(int(begins.sum()), of_row, order[begins])


def _dense(codes: Codes) -> tuple[Codes, int]:
    groups = _groups(codes, _CODE_MAX)
    assert groups.of_row is not None
    return groups.of_row, max(groups.count, 1)


def _key_codes(context: QueryContext, key: GroupKey, rows: BindingTable) -> tuple[Codes, int]:
    """Return a number below the span for each row's key."""
    table_key, slots = rows.tables[key.variable], rows.slots[key.variable]
    size = context.view.slots(table_key).size
    if isinstance(key, EntityValue) or is_identifying(context, table_key, key.property):
        return slots.astype(np.int64), max(size, 1)
    if len(slots) * 8 < size:
        return _value_codes(context.view.column(table_key, key.property, slots))
    nodes = distinct(slots, size)
    values = context.view.column(table_key, key.property, nodes)
    codes, span = _value_codes(values)
    of_slot = np.zeros(size, np.int64)
    of_slot[nodes] = codes
    return of_slot[slots], span


def is_identifying(context: QueryContext, table_key: str, name: str) -> bool:
    """Return whether each value of a property belongs to one entity: then the entity is the group (G1)."""
    type_ = context.view.catalog.type_of(table_key)
    return isinstance(type_, NodeType) and type_.key == (name,)


def _value_codes(values: Values) -> tuple[Codes, int]:
    """Return a number for each value; null has its own, both zeros share one, and so do all NaN."""
    if pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        codes = list_codes(values)
        return codes, int(codes.max(initial=0)) + 1
    if pa.types.is_floating(values.type):
        values = _plain_floats(values)
    encoded = values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode()
    span = len(encoded.dictionary)
    indices = encoded.indices
    if indices.null_count:
        indices = indices.fill_null(span)
    return indices.to_numpy(zero_copy_only=False).astype(np.int64), span + 1


def _plain_floats(values: Values) -> Values:
    numbers = values.to_numpy(zero_copy_only=False) + 0.0
    missing = values.is_null().to_numpy(zero_copy_only=False)
    numbers[np.isnan(numbers)] = np.nan
    plain: Values = pa.array(numbers, values.type, mask=missing)
    return plain
