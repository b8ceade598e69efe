"""`$_` asks whether something is there and makes no rows, wherever the planner starts."""

import pytest

from omnigraph.plan.optimize import plan_read
from omnigraph.plan.physical import Expand, Join, Keep, Scan
from tests.engine.plan.planning import ROWS, Counts
from tests.support.library import catalog
from tests.support.queries import bind_read, read


@pytest.mark.parametrize("authors", [1, 1_000_000])
@pytest.mark.parametrize(
    "clauses",
    ["$_ wrote $b", "$s: Shelf  $_ wrote $b", "$s: Shelf  $s.slot = 1  $_ wrote $b  $b.pages > 1"],
)
def test_the_end_without_a_name_is_never_scanned(clauses: str, authors: int) -> None:
    counts = Counts({**ROWS, "node:Author": authors})

    planned = plan_read(bind_read(read(clauses, "return { $b.title }")), catalog(), counts)

    scans = [op.scan if isinstance(op, Join) else op for op in planned.pipeline]
    assert all(op.type_name != "Author" for op in scans if isinstance(op, Scan))
    assert [op.keep for op in planned.pipeline if isinstance(op, Expand)] == [Keep.EXISTS]
