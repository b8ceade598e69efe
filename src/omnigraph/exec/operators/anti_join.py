"""`not`: rows from which the inside yields nothing.

N1  The inside runs once, over all distinct values of the outer variables that it mentions at the same
    time. A column of the rows says where each of them began, and survives every operator like a variable.
"""

from collections.abc import Callable

import numpy as np

from omnigraph.core.arrays import Ints, Mask
from omnigraph.exec.context import QueryContext
from omnigraph.exec.rows import BindingTable, distinct
from omnigraph.plan.physical import AntiJoin, PlanOperator

ORIGIN = "__origin_"  # no variable of a query or a plan begins like this
RunInner = Callable[[QueryContext, tuple[PlanOperator, ...], BindingTable], BindingTable]


def anti_join(context: QueryContext, operator: AntiJoin, rows: BindingTable, run: RunInner) -> BindingTable:
    """Return the rows for which the inside has no match; `run` runs a pipeline from given rows."""
    if not rows.size:
        return rows
    which, outer = _distinct(context, rows, operator.on)
    origin = f"{ORIGIN}{len(rows.slots)}"
    begun = BindingTable(
        outer.size, {**outer.slots, origin: np.arange(outer.size, dtype=np.int32)}, outer.tables
    )
    found = run(context, operator.inner, begun)
    matched: Mask = np.zeros(outer.size, np.bool_)
    matched[found.slots[origin]] = True
    return rows.where(~matched[which])


def _distinct(context: QueryContext, rows: BindingTable, names: tuple[str, ...]) -> tuple[Ints, BindingTable]:
    """Return each combination of some variables once, and for every row which one it has."""
    tables = {name: rows.tables[name] for name in names}
    if not names:
        return np.zeros(rows.size, np.int64), BindingTable(1)
    if len(names) == 1:
        (name,) = names
        slots = rows.slots[name]
        nodes = distinct(slots, context.view.slots(tables[name]).size)
        if len(nodes) == rows.size and bool((nodes == slots).all()):
            return np.arange(rows.size), BindingTable(rows.size, {name: slots}, tables)
        return np.searchsorted(nodes, slots), BindingTable(len(nodes), {name: nodes}, tables)
    codes = rows.slots[names[0]].astype(np.int64)
    for name in names[1:]:
        _, dense = np.unique(codes, return_inverse=True)
        codes = (dense.astype(np.int64) << 32) | rows.slots[name]
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return which, BindingTable(len(first), {name: rows.slots[name][first] for name in names}, tables)
