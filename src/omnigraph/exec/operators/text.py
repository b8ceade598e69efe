"""Text predicates over rows that are already bound."""

import numpy as np

from omnigraph.catalog.bound import TextMatchValue
from omnigraph.core.arrays import Mask, SlotArray
from omnigraph.core.errors import ExecutionError
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.operand import constant
from omnigraph.exec.rows import distinct

EDITS_DEFAULT = 2


def text_matches(
    context: QueryContext, table_key: str, condition: TextMatchValue, slots: SlotArray | None
) -> Mask:
    """Return for which slots a text predicate is true; without slots, for each slot of the table."""
    from omnigraph.exec.search import fuzzy_matching, matching  # late: most queries search nothing

    view = context.view
    known = view.slots(table_key)
    query = constant(condition.query, context.parameters)
    assert query is not None
    found = np.zeros(known.size, np.bool_)
    if query.value is not None:
        within = None if slots is None else known.row_ids(distinct(slots, known.size))
        handle, field = view.table(table_key).handle, condition.field.property
        if condition.function == "fuzzy":
            edits = _edits(context, condition)
            row_ids = fuzzy_matching(
                view.store, handle, field, str(query.value), edits, within, budget=context.budget
            )
        else:
            row_ids = matching(view.store, handle, field, str(query.value), within, budget=context.budget)
        matched = known.of_row_ids(row_ids)
        found[matched[matched >= 0]] = True
    return found if slots is None else found[slots]


def _edits(context: QueryContext, condition: TextMatchValue) -> int:
    if condition.edits is None:
        return EDITS_DEFAULT
    given = constant(condition.edits, context.parameters)
    if given is None or not isinstance(given.value, int) or given.value < 0:
        raise ExecutionError("the number of edits of fuzzy must be an integer, zero or greater")
    return given.value
