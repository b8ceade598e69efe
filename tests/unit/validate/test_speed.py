"""How fast a million rows are read and checked: written down, never asserted."""

import json
import sys
import time
from collections.abc import Callable
from itertools import count

import pyarrow as pa
import pytest

from omnigraph.core.ids import new_ulid
from omnigraph.validate.columns import Column, make_rows
from omnigraph.validate.records import read_ndjson
from omnigraph.validate.violations import ViolationLog
from tests.support.library import catalog
from tests.unit.validate.memory_view import change, committed, run, type_named

ROWS = 1_000_000
LINES = 200_000


def told(name: str, rows: int, work: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> None:
    """Say how many rows a second some work does."""
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    with capsys.disabled():
        sys.stdout.write(f"\n  {name}: {seconds:.2f} s, {rows / seconds:,.0f} rows/s")


@pytest.mark.slow
@pytest.mark.parametrize("is_edge", [False, True])
def test_reading_lines(is_edge: bool, capsys: pytest.CaptureFixture[str]) -> None:
    records: list[object] = [
        {"edge": "Wrote", "from": f"a{number}", "to": f"b{number}", "data": {"role": "main", "share": 0.5}}
        if is_edge
        else {"type": "Author", "data": {"handle": f"a{number}", "name": "N", "email": f"a{number}@x.org"}}
        for number in range(LINES)
    ]
    data = "\n".join(map(json.dumps, records)).encode()
    numbers = count()

    for name, make_id in (("ULIDs", new_ulid), ("counted ids", lambda: str(next(numbers)))):
        log = ViolationLog()
        told(
            f"{'edges' if is_edge else 'nodes'} with {name}",
            LINES,
            lambda make_id=make_id, log=log: read_ndjson(  # type: ignore[misc]
                data, file=0, file_name=None, catalog=catalog(), make_id=make_id, log=log
            ),
            capsys,
        )
        assert log.total == 0


@pytest.mark.slow
def test_checking_a_million_nodes_and_edges(capsys: pytest.CaptureFixture[str]) -> None:
    ids: Column = pa.array([f"person-{number:09}" for number in range(ROWS)])
    others: Column = pa.array([f"person-{number * 7 % ROWS:09}" for number in range(ROWS)])
    edge_ids: Column = pa.array([f"edge-{number:09}" for number in range(ROWS)])
    authors = make_rows(
        type_named("Author"),
        {"id": ids, "handle": ids, "name": ids, "email": others},
        lines=range(1, ROWS + 1),
    )
    mentors = make_rows(
        type_named("Mentors"),
        {"id": edge_ids, "src": ids, "dst": others},
        lines=range(ROWS + 1, 2 * ROWS + 1),
    )
    view = committed(authors)

    for name, changes in {
        "unique nodes": [change(authors, "append")],
        "nodes replaced by key": [change(authors)],
        "nodes and unique edges": [change(authors, "append"), change(mentors, "append")],
    }.items():
        log = ViolationLog()
        told(
            f"{name}, empty graph" if name != "nodes replaced by key" else f"{name}, a million committed",
            sum(item.rows.count for item in changes if item.rows is not None),
            lambda changes=changes, log=log, name=name: run(  # type: ignore[misc]
                view if name == "nodes replaced by key" else committed(), changes, log
            ),
            capsys,
        )
        assert log.total == 0
