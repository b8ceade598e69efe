"""The work of one task of a load, in this process: nothing here needs Spark."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.bulk.load.spool import _plain
from omnigraph.bulk.load.tasks import ReadPlan, SliceWork, check_slice, fragment_chunks, passing_rows
from omnigraph.bulk.sources.sources import WHOLE, Format, SourceInput, plan_slices
from omnigraph.catalog.build import compile_schema
from omnigraph.core.span import Source
from omnigraph.validate.columns import TypedRows, make_rows
from omnigraph.validate.records import ReadLimits
from omnigraph.validate.violations import ViolationLog
from tests.support.seam import patched

CATALOG = compile_schema(
    Source("node Person { name: String @key  age: I32?  @range(age, 0..150) }\nnode Note { text: String }\n")
)
PLAN = ReadPlan(CATALOG, ReadLimits(), violations_max=10)
LINES = """\
{"type": "Person", "data": {"name": "ann", "age": 30}}
{"type": "Person", "data": {"name": "old", "age": 900}}
{"type": "Person", "data": {"name": "bob"}}
{"type": "Note", "data": {"text": "hello"}}
"""


@pytest.fixture
def work(tmp_path: Path) -> SliceWork:
    path = tmp_path / "people.ndjson"
    path.write_text(LINES)
    (slice_,) = plan_slices([SourceInput(str(path), Format.NDJSON, path.name)], target_bytes=WHOLE)
    return SliceWork(slice_, 0)


def names(work: SliceWork) -> list[str]:
    found = passing_rows(work, PLAN, ViolationLog())
    return [
        str(name) for rows in found if rows.type.name == "Person" for name in rows.table["name"].to_pylist()
    ]


def test_a_row_that_breaks_a_rule_does_not_pass(work: SliceWork) -> None:
    assert names(work) == ["ann", "bob"]

    report = check_slice(work, PLAN)

    assert (dict(report.rows), report.total) == ({"node:Person": 2, "node:Note": 1}, 1)
    assert [violation.line for violation in report.violations] == [2]


def test_a_row_that_was_rejected_before_does_not_pass(work: SliceWork) -> None:
    assert names(SliceWork(work.slice, 0, rejected=(1,))) == ["bob"]


def test_only_tables_whose_ids_were_all_made_here_have_fresh_ones(work: SliceWork) -> None:
    assert check_slice(work, PLAN).fresh == {"node:Note"}


@pytest.mark.parametrize("sizes", [(3, 3, 3), (10,), (4, 4), (1, 9, 0)])
def test_every_row_is_in_one_fragment_and_none_is_too_long(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    patched(monkeypatch, "omnigraph.bulk.load.tasks.MAX_FRAGMENT_ROWS", 4)

    pieces = list(fragment_chunks(people(sizes)))

    lines = [line for piece in pieces for line in piece.lines.tolist()]
    assert lines == list(range(sum(sizes)))
    assert [piece.count for piece in pieces[:-1]] == [4] * (len(pieces) - 1)
    assert pieces[-1].count <= 4
    ids = [str(name) for piece in pieces for name in piece.table["name"].to_pylist()]
    assert ids == [f"p{line}" for line in lines]


def people(sizes: tuple[int, ...]) -> Iterator[TypedRows]:
    start = 0
    for size in sizes:
        texts = pa.array([f"p{number}" for number in range(start, start + size)], pa.utf8())
        lines = np.arange(start, start + size, dtype=np.int64)
        yield make_rows(CATALOG.nodes["Person"], {"id": texts, "name": texts}, lines=lines)
        start += size


def test_decimals_of_spark_are_integers_only_when_they_are_whole() -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)),
            pa.array([Decimal(7)], pa.decimal128(18, 0)),
            pa.array([Decimal("1.5")], pa.decimal128(10, 1)),
        ],
        ["large", "small", "part"],
    )

    plain = _plain(batch)

    assert plain.schema.types == [pa.uint64(), pa.int64(), pa.decimal128(10, 1)]
    assert plain.to_pylist() == [{"large": 2**64 - 1, "small": 7, "part": Decimal("1.5")}]
