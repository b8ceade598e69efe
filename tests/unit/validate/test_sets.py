"""The four questions about keys, asked of Arrow; a brute force in Python is the judge."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.validate.columns import Column, TableChange
from omnigraph.validate.sets import NO_IDS, KeyOps, holds_one_of, later_positions, tuple_codes
from tests.support.library import compile_text
from tests.unit.validate.memory_view import MemoryView, change, removal, rows_of

KEYS = compile_text("""\
node Key { text: String?  number: I64?  day: Date?  moment: DateTime?  flag: Bool?  real: F64? }
edge Link: Key -> Key
""")
TYPES: dict[str, Any] = {item.name: item.type for item in arrow_schema(KEYS.nodes["Key"])}
NUMBERED: dict[str, pa.DataType] = {"day": pa.int32(), "moment": pa.int64()}
Row = tuple[object, ...]


def column(name: str, values: Sequence[object], chunk: int = 3) -> Column:
    """Return a column in chunks; dates are given as numbers."""
    whole: Any = pa.array(values, NUMBERED.get(name, TYPES[name])).cast(TYPES[name])
    pieces = [whole[start : start + chunk] for start in range(0, len(whole), chunk)]
    return pa.chunked_array(pieces, TYPES[name])


def table_of(names: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table of key columns."""
    columns = [column(name, [row[position] for row in rows]) for position, name in enumerate(names)]
    return pa.Table.from_arrays(columns, names=list(names))


def view_of(names: Sequence[str], rows: Sequence[Row]) -> MemoryView:
    """Return a committed table whose rows have the ids 0, 1, 2."""
    given = table_of(names, rows)
    ids: list[Any] = [pa.array([str(position) for position in range(len(rows))], pa.utf8())]
    others = [given[name] if name in names else pa.nulls(len(rows), TYPES[name]) for name in list(TYPES)[1:]]
    table = pa.Table.from_arrays(ids + others, schema=arrow_schema(KEYS.nodes["Key"]))
    return MemoryView({"node:Key": table}, KEYS)


def equal(left: object, right: object) -> bool:
    return left is not None and right is not None and left == right


def same(left: Row, right: Row) -> bool:
    return all(equal(one, other) for one, other in zip(left, right, strict=True))


VALUES: dict[str, st.SearchStrategy[object]] = {
    "text": st.sampled_from(["", "a", "b", "é"]),
    "number": st.sampled_from([-1, 0, 1, 2**62]),
    "day": st.integers(-2, 2),
    "moment": st.sampled_from([0, 1, 86_400_000]),
    "flag": st.booleans(),
    "real": st.sampled_from([0.0, -0.0, 0.5, -0.5]),
}


@st.composite
def keyed(draw: st.DrawFn, pieces: int) -> tuple[list[str], list[list[Row]]]:
    """Return some key columns, and lists of rows of them."""
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True))
    row = st.tuples(*(st.none() | VALUES[name] for name in names))
    return names, [draw(st.lists(row, max_size=8)) for _ in range(pieces)]


def ops(view: MemoryView, *changes: TableChange) -> KeyOps:
    """Return the form under test."""
    return KeyOps(view, {item.type.table_key: item for item in changes})


@given(keyed(1))
def test_duplicates_are_the_rows_after_the_first(given_keys: tuple[list[str], list[list[Row]]]) -> None:
    names, (rows,) = given_keys

    found = ops(MemoryView({}, KEYS)).duplicates(table_of(names, rows))

    assert found.tolist() == [
        position
        for position, row in enumerate(rows)
        if any(same(row, earlier) for earlier in rows[:position])
    ]


@given(keyed(2), st.sets(st.integers(0, 7)))
def test_existing_are_the_committed_holders_outside(
    given_keys: tuple[list[str], list[list[Row]]], outside: set[int]
) -> None:
    names, (committed, wanted) = given_keys
    outside_ids = pa.array(sorted(map(str, outside)), pa.utf8())

    found = ops(view_of(names, committed)).existing(
        "node:Key", table_of(names, wanted), names, outside_ids=outside_ids
    )

    assert sorted(map(str, found["id"].to_pylist())) == [
        str(position)
        for position, row in enumerate(committed)
        if position not in outside and any(same(row, other) for other in wanted)
    ]
    assert set(found.column_names) == {"id", *names}


@given(keyed(2))
def test_membership_of_tuples(given_keys: tuple[list[str], list[list[Row]]]) -> None:
    names, (rows, others) = given_keys

    found = holds_one_of(table_of(names, rows), table_of(names, others))

    assert found.tolist() == [any(same(row, other) for other in others) for row in rows]


def test_existing_asks_the_view_once_and_by_the_column_that_says_most() -> None:
    view = view_of(["flag", "text"], [(True, "a"), (True, "b"), (False, "a")])

    found = ops(view).existing(
        "node:Key",
        table_of(["flag", "text"], [(True, "a"), (True, "z")]),
        ["flag", "text"],
        outside_ids=NO_IDS,
    )

    assert found["id"].to_pylist() == ["0"]
    assert view.calls == [("rows_by_values", "node:Key")]


def test_existing_finds_ids_themselves() -> None:
    view = view_of(["text"], [("a",), ("b",)])

    found = ops(view).existing("node:Key", pa.table({"id": ["1", "9"]}), ["id"], outside_ids=NO_IDS)

    assert found.to_pydict() == {"id": ["1"]}


def test_a_zero_is_found_under_either_sign() -> None:
    view = view_of(["real"], [(-0.0,), (0.0,)])

    found = ops(view).existing("node:Key", table_of(["real"], [(0.0,)]), ["real"], outside_ids=NO_IDS)

    assert found["id"].to_pylist() == ["0", "1"]
    assert [math.copysign(1.0, float(str(zero))) for zero in found["real"].to_pylist()] == [-1.0, 1.0]


def links(*edges: tuple[str, str, str]) -> MemoryView:
    """Return a view of edges (id, src, dst)."""
    rows = rows_of("Link", *({"id": id_, "src": src, "dst": dst} for id_, src, dst in edges), of=KEYS)
    return MemoryView({"edge:Link": rows.table}, KEYS)


ENDS = st.sampled_from("abc")


@given(
    edges=st.lists(st.tuples(ENDS, ENDS), max_size=8),
    sources=st.sets(ENDS),
    without=st.sets(st.integers(0, 7)),
)
def test_counts_are_of_the_edges_that_stay(
    edges: list[tuple[str, str]], sources: set[str], without: set[int]
) -> None:
    view = links(*((str(position), src, dst) for position, (src, dst) in enumerate(edges)))

    found = ops(view).counts(
        "edge:Link",
        pa.array(sorted(sources), pa.utf8()),
        without_edge_ids=pa.array(sorted(map(str, without)), pa.utf8()),
    )

    counted = dict(zip(found["src"].to_pylist(), found["n"].to_pylist(), strict=True))
    assert counted == {
        source: count
        for source in sources
        if (count := sum(src == source and row not in without for row, (src, _) in enumerate(edges)))
    }


def test_sources_are_those_of_the_edges_named() -> None:
    view = links(("1", "a", "b"), ("2", "a", "c"), ("3", "b", "c"))

    assert ops(view).sources("edge:Link", pa.array(["1", "2", "9"])).to_pylist() == ["a"]
    assert ops(view).sources("edge:Link", NO_IDS).to_pylist() == []


@given(
    present=st.sets(st.integers(0, 5)), removed=st.sets(st.integers(0, 5)), wanted=st.sets(st.integers(0, 5))
)
def test_missing_are_ids_that_nobody_has_after_the_write(
    present: set[int], removed: set[int], wanted: set[int]
) -> None:
    rows = rows_of("Key", *({"id": str(number)} for number in sorted(present)), of=KEYS)
    view = MemoryView({"node:Key": rows.table}, KEYS)
    deletion = removal("Key", *map(str, sorted(removed)), of=KEYS)

    found = ops(view, deletion).missing("node:Key", pa.array(sorted(map(str, wanted)), pa.utf8()))

    assert found.to_pylist() == sorted(str(number) for number in wanted - (present - removed))


def test_an_overwritten_table_has_no_committed_rows() -> None:
    rows = rows_of("Key", {"id": "1", "text": "a"}, of=KEYS)
    edge = rows_of("Link", {"id": "e", "src": "1", "dst": "1"}, of=KEYS)
    view = MemoryView({"node:Key": rows.table, "edge:Link": edge.table}, KEYS)
    new = rows_of("Key", of=KEYS)
    overwritten = ops(view, change(new, "overwrite"), change(rows_of("Link", of=KEYS), "overwrite"))

    assert overwritten.missing("node:Key", pa.array(["1"])).to_pylist() == ["1"]
    keys = pa.table({"text": ["a"]})
    assert overwritten.existing("node:Key", keys, ["text"], outside_ids=NO_IDS).num_rows == 0
    assert overwritten.counts("edge:Link", pa.array(["1"]), without_edge_ids=NO_IDS).num_rows == 0
    assert overwritten.sources("edge:Link", pa.array(["e"])).to_pylist() == ["1"]
    assert view.calls == [("rows_by_values", "edge:Link")]


@pytest.mark.parametrize("names", [["text"], ["text", "number"]])
def test_no_rows_have_no_answers(names: list[str]) -> None:
    view = view_of(["text"], [("a",)])
    empty = table_of(names, [])

    assert ops(view).duplicates(empty).tolist() == []
    assert ops(view).existing("node:Key", empty, names, outside_ids=NO_IDS).num_rows == 0
    assert ops(view).missing("node:Key", NO_IDS).to_pylist() == []
    assert ops(view).counts("edge:Link", NO_IDS, without_edge_ids=NO_IDS).num_rows == 0
    assert view.calls == []


def test_many_wide_columns_do_not_overflow() -> None:
    count = 3_000
    wide: dict[str, Any] = {f"c{number}": pa.array(range(count)) for number in range(7)}

    codes = tuple_codes(pa.concat_tables([pa.table(wide), pa.table(wide)]))

    assert later_positions(codes).tolist() == list(range(count, 2 * count))
