"""One filter, two renderings, equal rows."""

import math
import operator
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.storage.tables.filter import (
    Always,
    And,
    Compare,
    FilterValue,
    IsIn,
    IsNotTrue,
    IsNull,
    LeafOperator,
    Not,
    Or,
    RowFilter,
    to_arrow_mask,
    to_lance,
)
from omnigraph.storage.tables.stage import IndexRequest
from omnigraph.storage.tables.table import SnapshotHandle
from tests.support.tables import Workbench, table_schema

I32, I64, U32, U64 = (
    [-(2**31), -5, 0, 1, 30, 31, 2**31 - 1],
    [-(2**63), -(2**53) - 1, -1, 0, 7, 2**53 + 1, 2**63 - 1],
    [0, 1, 30, 2**31, 2**32 - 1],
    [0, 1, 2**53 + 1, 2**63, 2**64 - 1],
)
F32 = [0.0, -0.0, 1.5, -2.25, 0.10000000149011612, 16_777_216.0, 3.4028234663852886e38]
F64 = [0.0, -0.0, 0.1, 1.5, -2.25, 2.0**53, 1e308, 5e-324, -1.7976931348623157e308]
TEXT = ["", "a", "it's", "back\\slash", 'quote"`', "line\nbreak", "é", "zz", "%", "NULL"]
DAYS = [-719_162, -1, 0, 20_000, 2_932_896]
MILLIS = [-62_135_596_800_000, -1, 0, 1_700_000_000_123, 253_402_300_799_999]

POOLS: dict[str, tuple[pa.DataType, list[FilterValue]]] = {
    "s": (pa.utf8(), list(TEXT)),
    "b": (pa.bool_(), [True, False]),
    "i32": (pa.int32(), list(I32)),
    "i64": (pa.int64(), list(I64)),
    "u32": (pa.uint32(), list(U32)),
    "u64": (pa.uint64(), list(U64)),
    "f32": (pa.float32(), list(F32)),
    "f64": (pa.float64(), list(F64)),
    "day": (pa.date32(), list(DAYS)),
    "at": (pa.date64(), list(MILLIS)),
}
NUMBERS: list[FilterValue] = [*I32, *I64, *U64, *F32, *F64, 30.5, 2.7, -0.5, 3_000_000_000, 16_777_217]
NUMBERS += [2**70, -(2**70), 1e300, -1e300, math.inf, -math.inf, 0.1]
SCHEMA = table_schema(*(pa.field(name, type_) for name, (type_, _) in POOLS.items()))


def sample_table() -> pa.Table:
    """Return every value of every pool beside every other column's, with nulls in between."""
    count = 3 * max(len(values) for _, values in POOLS.values())
    columns: dict[str, pa.Array[pa.Scalar[pa.DataType]]] = {"id": pa.array([f"r{n}" for n in range(count)])}
    for step, (name, (type_, values)) in enumerate(POOLS.items()):
        cycle = [*values, None]
        picked = [cycle[(n * (step + 1) + step) % len(cycle)] for n in range(count)]
        columns[name] = pa.array(picked, type_)
    return pa.table(columns, schema=SCHEMA)


def literals(column: str) -> st.SearchStrategy[FilterValue]:
    type_, values = POOLS[column]
    if pa.types.is_string(type_) or pa.types.is_boolean(type_):
        return st.sampled_from([*values, None])
    return st.sampled_from([*values, *NUMBERS, None])


OPERATORS: list[LeafOperator] = ["eq", "ne", "gt", "lt", "ge", "le"]


@st.composite
def leaves(draw: st.DrawFn) -> RowFilter:
    column = draw(st.sampled_from(list(POOLS)))
    match draw(st.integers(0, 5)):
        case 0:
            return IsNull(column)
        case 1:
            return Always(draw(st.booleans()))
        case 2:
            return IsIn(column, tuple(draw(st.lists(literals(column), max_size=4))))
        case _:
            return Compare(column, draw(st.sampled_from(OPERATORS)), draw(literals(column)))


def filters() -> st.SearchStrategy[RowFilter]:
    def grow(inner: st.SearchStrategy[RowFilter]) -> st.SearchStrategy[RowFilter]:
        groups = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(groups.map(And), groups.map(Or), inner.map(Not), inner.map(IsNotTrue))

    return st.recursive(leaves(), grow, max_leaves=6)


def single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def holds(filter_: RowFilter, row: dict[str, FilterValue]) -> bool | None:
    """Say whether a filter is true, false or unknown for one row: the definition, written a second time."""
    match filter_:
        case Always(value):
            return value
        case IsNull(column):
            return row[column] is None
        case Not(inner):
            answer = holds(inner, row)
            return None if answer is None else not answer
        case IsNotTrue(inner):
            return holds(inner, row) is not True
        case And(parts):
            answers = [holds(part, row) for part in parts]
            return False if False in answers else None if None in answers else True
        case Or(parts):
            answers = [holds(part, row) for part in parts]
            return True if True in answers else None if None in answers else False
        case IsIn(column, values):
            return holds(Or(tuple(Compare(column, "eq", value) for value in values)), row)
        case Compare(column, name, literal):
            found = row[column]
            if found is None or literal is None:
                return None
            if column == "f32" and isinstance(literal, float):
                literal = single(literal)
            return bool(getattr(operator, name)(found, literal))


def selected_by_definition(filter_: RowFilter, table: pa.Table) -> list[str]:
    plain = table
    for name, type_ in [("day", pa.int32()), ("at", pa.int64())]:
        plain = plain.set_column(plain.schema.get_field_index(name), name, plain[name].cast(type_))
    return [row["id"] for row in plain.to_pylist() if holds(filter_, row) is True]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workbench, SnapshotHandle, SnapshotHandle]:
    """Return the sample table without indexes and with a B-tree on every column, in several fragments."""
    bench = Workbench(tmp_path_factory.mktemp("filters"), SCHEMA)
    table = sample_table()
    bench.append(table.slice(0, 12))
    bench.append(table.slice(12))
    plain = bench.head()
    bench.index(*(IndexRequest(name, "btree") for name in SCHEMA.names))
    return bench, plain, bench.head()


@settings(max_examples=400)
@given(filter_=filters())
def test_text_and_mask_select_the_rows_of_the_definition(
    filter_: RowFilter, tables: tuple[Workbench, SnapshotHandle, SnapshotHandle]
) -> None:
    bench, plain, indexed = tables
    table = sample_table()

    expected = selected_by_definition(filter_, table)

    assert table.filter(to_arrow_mask(filter_, table))["id"].to_pylist() == expected
    assert sorted(bench.ids(plain, filter_)) == sorted(expected)
    assert sorted(bench.ids(indexed, filter_)) == sorted(expected)


RENDERED: list[tuple[RowFilter, str]] = [
    (Compare("i32", "gt", 30.5), "`i32` >= 31"),
    (Compare("i32", "le", 30.5), "`i32` <= 30"),
    (Compare("i32", "eq", 2.7), "false"),
    (Compare("i32", "ne", 2.7), "`i32` IS NOT NULL"),
    (Compare("i32", "eq", 120.0), "`i32` = 120"),
    (Compare("i32", "lt", 3_000_000_000), "`i32` <= 2147483647"),
    (Compare("i32", "gt", 3_000_000_000), "false"),
    (Compare("u32", "ge", -1), "`u32` >= 0"),
    (Compare("i64", "eq", -(2**63)), "`i64` = arrow_cast('-9223372036854775808', 'Int64')"),
    (Compare("f32", "eq", 0.1), "`f32` = 0.10000000149011612"),
    (Compare("f32", "gt", 16_777_217), "`f32` >= 16777218.0"),
    (Compare("f64", "eq", 3), "`f64` = 3.0"),
    (Compare("f64", "lt", math.inf), "`f64` <= 1.7976931348623157e+308"),
    (Compare("f64", "eq", math.nan), "false"),
    (Compare("s", "eq", "it's"), "`s` = 'it''s'"),
    (Compare("day", "ge", -1), "`day` >= arrow_cast(-1, 'Date32')"),
    (Compare("at", "lt", 5), "`at` < arrow_cast(5, 'Date64')"),
    (Compare("s", "ne", None), "false"),
    (IsIn("i32", (1, 2.5, 2**40, None, 1)), "`i32` IN (1)"),
    (IsIn("i32", ()), "false"),
    (Not(IsIn("i32", (1,))), "(`i32` IS NOT NULL) AND ((`i32` NOT IN (1)) OR (`i32` IS NULL))"),
    (Not(Compare("i32", "lt", 1)), "`i32` >= 1"),
    (IsNotTrue(Compare("i32", "lt", 1)), "(`i32` >= 1) OR (`i32` IS NULL)"),
    (And(()), "true"),
    (Or(()), "false"),
]


@pytest.mark.parametrize(("filter_", "text"), RENDERED, ids=[text for _, text in RENDERED])
def test_literals_take_the_type_of_their_column(filter_: RowFilter, text: str) -> None:
    assert to_lance(filter_, SCHEMA) == text


@pytest.mark.parametrize("column", POOLS)
def test_typed_literals_use_the_index(
    tables: tuple[Workbench, SnapshotHandle, SnapshotHandle], column: str
) -> None:
    _, _, indexed = tables
    value = POOLS[column][1][0]

    plan = indexed._dataset.scanner(filter=to_lance(Compare(column, "eq", value), SCHEMA)).explain_plan(True)

    assert f"{column}__btree" in plan


@pytest.mark.parametrize(
    ("column", "value"), [("s", 1), ("b", 1), ("i32", "1"), ("i32", True), ("day", "2020-01-01")]
)
def test_a_literal_of_another_kind_is_our_mistake(column: str, value: FilterValue) -> None:
    with pytest.raises(AssertionError, match=column):
        to_lance(Compare(column, "eq", value), SCHEMA)
