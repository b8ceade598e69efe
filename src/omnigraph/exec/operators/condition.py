"""Conditions over rows that are already bound: properties are fetched for them, then compared in memory."""

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.catalog.bound import BoundExpression, Comparison, Condition, PropertyValue, TextMatchValue
from omnigraph.core.arrays import Mask, SlotArray, Values
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.comparison import compare, compare_constants
from omnigraph.exec.operators.operand import Constant, constant
from omnigraph.exec.operators.text import text_matches
from omnigraph.exec.rows import BindingTable
from omnigraph.plan.pattern import variables_of

ROWS_AT_ONCE = 131_072  # the dearest comparison, of texts in Python, takes a fifth of a second for them
ColumnOf = Callable[[BoundExpression], Values]


def never_true(conditions: Sequence[Condition], context: QueryContext) -> bool:
    """Return whether a condition has a null constant, or has only constants and is not true."""
    for condition in conditions:
        if isinstance(condition, TextMatchValue):
            if _constant(condition.query, context).value is None:
                return True
            continue
        left = constant(condition.left, context.parameters)
        right = constant(condition.right, context.parameters)
        if (left is not None and left.value is None) or (right is not None and right.value is None):
            return True
        if left is None or right is None:
            continue
        if not compare_constants(left.value, condition.operator, right.value):
            return True
    return False


def holds(context: QueryContext, table_key: str, conditions: Sequence[Condition], slots: SlotArray) -> Mask:
    """Return for which slots of one table all conditions on their variable are true."""
    alive = np.ones(len(slots), np.bool_)
    positions = np.arange(len(slots))
    if never_true(conditions, context):
        return np.zeros(len(slots), np.bool_)
    for condition in _cheapest_first(conditions):
        if not len(positions):
            break
        context.budget.check()
        current = slots if len(positions) == len(slots) else slots[positions]
        if isinstance(condition, TextMatchValue):
            truth = text_matches(context, table_key, condition, current)
        else:
            truth = _compared(
                condition,
                context,
                [current],
                lambda part: _reader(context, table_key, part[0]),
                size=len(current),
            )
        alive[positions] = truth
        positions = positions[truth]
    return alive


def _reader(context: QueryContext, table_key: str, slots: SlotArray) -> ColumnOf:
    return lambda expression: context.view.column(table_key, column_name(expression), slots)


def holds_for_rows(context: QueryContext, conditions: Sequence[Condition], rows: BindingTable) -> Mask:
    """Return for which rows all conditions are true, whatever variables they are about."""
    if never_true(conditions, context):
        return np.zeros(rows.size, np.bool_)
    alive = np.ones(rows.size, np.bool_)
    positions = np.arange(rows.size)
    current = rows
    for condition in _cheapest_first(conditions):
        if not len(positions):
            break
        context.budget.check()
        truth = _row_condition(context, condition, current)
        alive[positions] = truth
        if not truth.all():
            positions = positions[truth]
            current = current.where(truth)
    return alive


def _row_condition(context: QueryContext, condition: Condition, rows: BindingTable) -> Mask:
    if isinstance(condition, TextMatchValue):
        name = condition.field.variable
        return text_matches(context, rows.tables[name], condition, rows.slots[name])

    names = sorted({*variables_of(condition.left), *variables_of(condition.right)})

    def columns(parts: Sequence[SlotArray]) -> ColumnOf:
        slots = dict(zip(names, parts, strict=True))

        def column(expression: BoundExpression) -> Values:
            (name,) = variables_of(expression)
            return _reader(context, rows.tables[name], slots[name])(expression)

        return column

    return _compared(condition, context, [rows.slots[name] for name in names], columns, size=rows.size)


def _compared(
    condition: Comparison,
    context: QueryContext,
    slots: Sequence[SlotArray],
    columns: Callable[[Sequence[SlotArray]], ColumnOf],
    *,
    size: int,
) -> Mask:
    """Return where a comparison is true, looking at the clock from time to time: rows may be millions."""
    if size <= ROWS_AT_ONCE:
        return comparison(condition, context, columns(slots), size)
    truth = np.empty(size, np.bool_)
    for start in range(0, size, ROWS_AT_ONCE):
        context.budget.check()
        parts = [column[start : start + ROWS_AT_ONCE] for column in slots]
        truth[start : start + ROWS_AT_ONCE] = comparison(
            condition, context, columns(parts), min(ROWS_AT_ONCE, size - start)
        )
    return truth


def comparison(condition: Comparison, context: QueryContext, column: ColumnOf, size: int) -> Mask:
    """Return for which rows a comparison is true, given how its columns are read."""
    left = constant(condition.left, context.parameters) or column(condition.left)
    right = constant(condition.right, context.parameters) or column(condition.right)
    return compare(left, condition.operator, right, size)


def column_name(expression: BoundExpression) -> str:
    """Return the column of a table that an operand reads."""
    assert isinstance(expression, PropertyValue), f"not a column: {expression}"
    return expression.property


def _constant(expression: BoundExpression, context: QueryContext) -> Constant:
    found = constant(expression, context.parameters)
    assert found is not None, f"not a constant: {expression}"
    return found


def _cheapest_first(conditions: Sequence[Condition]) -> list[Condition]:
    """Return comparisons before text predicates, which ask an index or read whole texts."""
    return sorted(conditions, key=lambda condition: isinstance(condition, TextMatchValue))
