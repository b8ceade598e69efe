"""Running a physical plan: one operator after the other over the binding table.

X1  A query sees one snapshot, writes nothing and ends within its budget or with a typed error.
X2  Its result is a function of the snapshot, the query, its parameters and its time; never of caches.
"""

import pyarrow as pa

from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.anti_join import anti_join
from omnigraph.exec.operators.close import close
from omnigraph.exec.operators.condition import holds_for_rows
from omnigraph.exec.operators.expand import expand
from omnigraph.exec.operators.join import join, scan
from omnigraph.exec.operators.tail import finish
from omnigraph.exec.rows import UNIT, BindingTable
from omnigraph.plan.physical import (
    AntiJoin,
    Close,
    Expand,
    FilterRows,
    Join,
    PhysicalPlan,
    PlanOperator,
    Scan,
)


def execute(plan: PhysicalPlan, context: QueryContext) -> pa.Table:
    """Return the result of a plan on the snapshot of the context.

    Raises:
        QueryTimeout, QueryMemoryExceeded, CartesianProductRefused: the query needs more than it may.
        ExecutionError: a value cannot be evaluated.
    """
    return finish(context, plan, run_pipeline(context, plan.pipeline, UNIT))


def run_pipeline(
    context: QueryContext, operators: tuple[PlanOperator, ...], rows: BindingTable
) -> BindingTable:
    """Return the rows that operators make from others."""
    for operator in operators:
        match operator:
            case Scan():
                rows = scan(context, operator, rows)
            case Expand():
                rows = expand(context, operator, rows)
            case FilterRows():
                rows = rows.where(holds_for_rows(context, operator.conditions, rows))
            case Close():
                rows = close(context, operator, rows)
            case Join():
                rows = join(context, operator, rows)
            case AntiJoin():
                rows = anti_join(context, operator, rows, run_pipeline)
        context.budget.hold(rows.nbytes)
    return rows
