"""The work of one task of a load, in this process: nothing here needs Spark."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.bulk.load.new_rows import LeftOut
from omnigraph.bulk.load.spool import _plain
from omnigraph.bulk.load.tasks import ReadPlan, TaskWork, fragment_chunks, grouped, passing_rows, spool_keys
from omnigraph.bulk.sources.sources import WHOLE, Format, Slice, SourceInput, plan_slices
from omnigraph.catalog.build import compile_schema
from omnigraph.core.span import Source
from omnigraph.validate.columns import TypedRows, make_rows
from omnigraph.validate.questions import FILE, LINE, null_of
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
def work(tmp_path: Path) -> TaskWork:
    path = tmp_path / "people.ndjson"
    path.write_text(LINES)
    slices = plan_slices([SourceInput(str(path), Format.NDJSON, path.name)], target_bytes=WHOLE)
    (made,) = grouped(slices, WHOLE)
    return made


def test_a_row_that_breaks_a_rule_does_not_pass(work: TaskWork) -> None:
    found = passing_rows(work.slices[0], PLAN, ViolationLog())

    names = [name for rows in found if rows.type.name == "Person" for name in rows.table["name"].to_pylist()]
    assert names == ["ann", "bob"]


def test_keys_are_kept_with_what_became_of_the_slice(work: TaskWork, tmp_path: Path) -> None:
    report = spool_keys(work, PLAN, str(tmp_path / "keys"), with_nulls=True)

    (slice_,) = report.slices
    assert (dict(slice_.rows), slice_.total) == ({"node:Person": 2, "node:Note": 1}, 1)
    assert [violation.line for violation in slice_.violations] == [2]
    assert slice_.fresh == {"node:Note"}
    people = next(rows for rows in report.spooled if rows.table_key == "node:Person")
    ((keys, places),) = people.read(["name", null_of("age")])
    assert keys.to_pylist() == [{"name": "ann", null_of("age"): False}, {"name": "bob", null_of("age"): True}]
    assert places is not None
    assert places.to_pylist() == [{FILE: 0, LINE: 1}, {FILE: 0, LINE: 3}]


def test_a_row_that_is_left_out_is_not_read(work: TaskWork, tmp_path: Path) -> None:
    report = spool_keys(work, PLAN, str(tmp_path / "keys"), with_nulls=False)

    people = next(rows for rows in report.spooled if rows.table_key == "node:Person")
    others = LeftOut.of([(0, 9), (1, 1)])
    assert [keys["name"].to_pylist() for keys, _ in people.without(others).read(["name"])] == [["ann", "bob"]]
    first = LeftOut.of([(0, 9), (0, 1), (1, 3)])
    ((keys, _),) = people.without(first).read(["name"])
    assert keys["name"].to_pylist() == ["bob"]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ((1, 1, 1, 1), [(1, 1, 1), (1,)]),
        ((5, 1, 2), [(5,), (1, 2)]),
        ((0, 0), [(0, 0)]),
        ((), []),
    ],
)
def test_small_slices_that_follow_each_other_share_a_task(
    sizes: tuple[int, ...], groups: list[tuple[int, ...]]
) -> None:
    slices = [Slice(SourceInput("a", Format.NDJSON), 0, 0, size, size, 0) for size in sizes]

    found = grouped(slices, 3)

    assert [tuple(slice_.size for slice_ in item.slices) for item in found] == groups
    assert [item.number for item in found] == list(range(len(groups)))


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
