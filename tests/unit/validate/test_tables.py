"""Arrow tables as input: the same rows and faults as lines of JSON."""

from collections.abc import Mapping
from datetime import date
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog
from omnigraph.validate.columns import Column, TypedRows
from omnigraph.validate.tables import read_table
from omnigraph.validate.values import check_values
from omnigraph.validate.violations import ViolationLog
from tests.support.library import compile_text
from tests.unit.validate.memory_view import messages, type_named

KINDS = compile_text("""\
node Kinds {
    text: String?  flag: Bool?  i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
    day: Date?  moment: DateTime?  blob: Blob?  words: [String]?  numbers: [I32]?  days: [Date]?
    spot: Vector(2)?
}
""")


NO_TIME = "a Date has no time of day, and this is not midnight in UTC"
TIMES: list[tuple[pa.DataType, str]] = [
    (pa.date64(), "'1970-01-01 00:00:00.001'"),
    (pa.timestamp("s", "Asia/Tokyo"), "'1970-01-01 00:00:01'"),
    (pa.timestamp("us"), "'1970-01-01 00:00:00.000001'"),
    (pa.timestamp("ns", "UTC"), "'1970-01-01 00:00:00.000000001'"),
]
ITEM_TIMES: list[tuple[pa.DataType, str]] = [
    (pa.date64(), "'1970-01-01T00:00:00.001000+00:00'"),
    (pa.timestamp("us"), "'1970-01-01T00:00:00.000001'"),
]


def read(
    type_name: str, columns: Mapping[str, Any], log: ViolationLog | None = None, of: Catalog | None = None
) -> TypedRows:
    """Return the rows of a table; generated ids are 1, 2, 3."""
    ids = count(1)
    log = ViolationLog() if log is None else log
    return read_table(
        pa.table(dict(columns)),
        type_named(type_name, of),
        file=0,
        file_name=None,
        make_id=lambda: str(next(ids)),
        log=log,
    )


def refusals(
    type_name: str, columns: Mapping[str, Any], of: Catalog | None = None
) -> list[tuple[int, str, str]]:
    """Return line, kind and message of what is refused."""
    log = ViolationLog()
    check_values(read(type_name, columns, log, of), log)
    return messages(log.first_violations())


def stored(name: str, column: Column) -> list[object]:
    """Return what is stored of a column of Kinds, dates as numbers."""
    log = ViolationLog()
    rows = read("Kinds", {name: column}, log, KINDS)
    assert log.total == 0
    assert rows.table.schema.equals(arrow_schema(KINDS.nodes["Kinds"]))
    found: Any = rows.table.column(name)
    if pa.types.is_date(found.type):
        found = found.cast(pa.int64() if pa.types.is_date64(found.type) else pa.int32())
    values: list[object] = found.to_pylist()
    return values


def test_a_table_of_nodes_has_ids_by_key_and_nulls_where_a_column_is_missing() -> None:
    rows = read("Author", {"name": ["Ann", "Bob"], "handle": ["ann", "bob"]})

    assert rows.ids.to_pylist() == ["ann", "bob"]
    assert rows.table["email"].to_pylist() == [None, None]
    assert rows.lines.tolist() == [1, 2]
    assert not rows.has_fresh_ids


def test_a_table_of_edges_has_from_and_to() -> None:
    rows = read("Cites", {"from": ["a"], "to": ["b"], "page": [7]})

    assert rows.table.to_pylist() == [{"id": "1", "src": "a", "dst": "b", "page": 7, "remark": None}]
    assert rows.has_fresh_ids


def test_given_ids_are_used_and_holes_are_filled() -> None:
    rows = read("Note", {"id": ["x", None], "body": ["a", "b"]})

    assert rows.ids.to_pylist() == ["x", "1"]
    assert read("Note", {"id": pa.array([None], pa.utf8()), "body": ["a"]}).has_fresh_ids


def test_ids_and_ends_may_be_encoded() -> None:
    encoded = pa.array(["a", "a"]).dictionary_encode()

    rows = read("Cites", {"from": encoded, "to": pa.array(["b", "c"], pa.large_utf8())})

    assert rows.table.select(["src", "dst"]).to_pydict() == {"src": ["a", "a"], "dst": ["b", "c"]}


def test_an_empty_table_is_no_rows() -> None:
    assert read("Author", {"handle": pa.array([], pa.utf8())}).count == 0


def test_a_given_id_of_a_keyed_node_must_be_the_one_of_its_key() -> None:
    found = refusals("Author", {"id": ["ann", "eve"], "handle": ["ann", "bob"], "name": ["A", None]})

    assert found == [(2, "record", "Author has id 'eve', but its key (handle) gives 'bob'")]


@pytest.mark.parametrize(
    ("type_name", "columns", "message"),
    [
        ("Author", {"handel": ["a"]}, "Author has no property 'handel'; did you mean 'handle'?"),
        ("Author", {"src": ["a"]}, "Author has no property 'src'"),
        ("Cites", {"from": ["a"]}, "the table for Cites has no column 'to'"),
        ("Cites", {"from": [1], "to": ["b"]}, "column 'from' of Cites is int64, not a text"),
        ("Note", {"id": [1], "body": ["b"]}, "column 'id' of Note is int64, not a text"),
    ],
)
def test_a_wrong_column_refuses_the_table_at_its_first_row(
    type_name: str, columns: Mapping[str, Any], message: str
) -> None:
    assert refusals(type_name, columns) == [(1, "record", message)]


def test_a_column_that_stands_twice_is_refused() -> None:
    log = ViolationLog()
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["body", "body"])

    read_table(twice, type_named("Note"), file=0, file_name="t", make_id=lambda: "1", log=log)

    assert messages(log.first_violations()) == [
        (1, "record", "column 'body' appears twice in the table for Note")
    ]


def test_an_edge_without_an_end_is_refused_at_its_row_alone() -> None:
    log = ViolationLog()

    rows = read("Cites", {"from": ["a", None, "c", None], "to": ["b", "b", None, None]}, log)

    assert [(line, text) for line, _, text in messages(log.first_violations())] == [
        (2, "'from' of Cites is missing"),
        (3, "'to' of Cites is missing"),
        (4, "'from' of Cites is missing"),
    ]
    assert rows.lines.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("text", pa.array(["a", None], pa.large_utf8()), ["a", None]),
        ("text", pa.array(["a", None]).dictionary_encode(), ["a", None]),
        ("text", pa.array(["a"], pa.string_view()), ["a"]),
        ("text", pa.nulls(2), [None, None]),
        ("flag", pa.array([True, None]), [True, None]),
        ("i32", pa.array([5, None], pa.int64()), [5, None]),
        ("i64", pa.array([5], pa.uint8()), [5]),
        ("i64", pa.array(["5", None]), [5, None]),
        ("u64", pa.array([5], pa.int32()), [5]),
        ("u64", pa.array(["18446744073709551615"]), [2**64 - 1]),
        ("f32", pa.array([1, None], pa.int64()), [1.0, None]),
        ("f64", pa.array([2**60, None], pa.int64()), [float(2**60), None]),
        ("f64", pa.array([0.5], pa.float32()), [0.5]),
        ("f32", pa.array([0.5], pa.float64()), [0.5]),
        ("day", pa.array([date(1970, 1, 2)]), [1]),
        ("day", pa.array([5], pa.int64()), [5]),
        ("day", pa.array(["1970-01-03", None]), [2, None]),
        ("day", pa.array([-86_400_000_000, None], pa.int64()).cast(pa.timestamp("us")), [-1, None]),
        ("day", pa.array([86_400_000], pa.int64()).cast(pa.date64()), [1]),
        ("moment", pa.array([5], pa.int64()), [5]),
        ("moment", pa.array([5], pa.int64()).cast(pa.date64()), [5]),
        ("moment", pa.array([1], pa.int32()).cast(pa.date32()), [86_400_000]),
        ("moment", pa.array([1_999, -1], pa.int64()).cast(pa.timestamp("us")), [1, -1]),
        ("moment", pa.array([3_600]).cast(pa.timestamp("s", "Europe/Paris")), [3_600_000]),
        ("moment", pa.array([1_999_999], pa.int64()).cast(pa.timestamp("ns", "UTC")), [1]),
        ("moment", pa.array(["1970-01-01T00:00:01Z"]), [1_000]),
        ("blob", pa.array([b"x", None]), [b"x", None]),
        ("blob", pa.array(["base64:eA=="]), [b"x"]),
        ("words", pa.array([["a"], None, []], pa.large_list(pa.large_utf8())), [["a"], None, []]),
        ("words", pa.nulls(1), [None]),
        ("numbers", pa.array([[1, 2], None], pa.list_(pa.int64())), [[1, 2], None]),
        ("numbers", pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [[1, 2]]),
        ("spot", pa.array([[1.0, 2.0], None], pa.list_(pa.float64())), [[1.0, 2.0], None]),
        ("spot", pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2)), [[1.0, 2.0], None]),
        ("spot", pa.array([[1, 2]], pa.list_(pa.int32())), [[1.0, 2.0]]),
    ],
)
def test_columns_of_other_types_are_converted(name: str, column: Column, expected: list[object]) -> None:
    assert stored(name, column) == expected
    assert stored(name, pa.chunked_array([column, column])) == expected * 2


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("i32", pa.array([1, 2**40]), "Kinds.i32: 1099511627776 does not fit I32"),
        *(
            (
                "day",
                pa.array([None, 1], pa.int64()).cast(type_),
                f"Kinds.day: invalid Date {shown}: {NO_TIME}",
            )
            for type_, shown in TIMES
        ),
        *(
            (
                "days",
                pa.array([[], [1]], pa.list_(pa.int64())).cast(pa.list_(type_)),
                f"Kinds.days: item 1: invalid Date {shown}: {NO_TIME}",
            )
            for type_, shown in ITEM_TIMES
        ),
        ("u32", pa.array([1, -1]), "Kinds.u32: -1 does not fit U32"),
        ("i64", pa.array([None, 1.0]), "Kinds.i64: expected I64, got number 1.0"),
        ("f64", pa.array([None, "1"]), "Kinds.f64: expected F64, got string '1'"),
        ("text", pa.array([None, 5]), "Kinds.text: expected String, got number"),
        ("text", pa.array([None, b"x"]), "Kinds.text: expected String, got bytes"),
        ("flag", pa.array([None, 1]), "Kinds.flag: expected Bool, got number"),
        ("day", pa.array(["1970-01-01", "x"]), "Kinds.day: invalid Date 'x': write YYYY-MM-DD"),
        ("day", pa.array([None, 1.5]), "Kinds.day: expected Date, got number 1.5"),
        ("f32", pa.array([None, 1e39]), "Kinds.f32 must be finite, not inf"),
        ("words", pa.array([["a"], ["b", None]]), "Kinds.words: a null item in [String]?"),
        ("numbers", pa.array([[1], [2**40]]), "Kinds.numbers: item 1: 1099511627776 does not fit I32"),
        ("spot", pa.array([[1.0, 2.0], [1.0]]), "Kinds.spot: expected 2 numbers for Vector(2)?, got 1"),
        ("spot", pa.array([[1.0, 2.0], [1.0, None]]), "Kinds.spot: a null item in Vector(2)?"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_at_its_row(name: str, column: Column, message: str) -> None:
    assert refusals("Kinds", {name: column}, KINDS) == [(2, "type", message)]


def test_a_missing_required_column_is_missed_in_every_row() -> None:
    assert [(line, kind) for line, kind, _ in refusals("Author", {"handle": ["a", "b"]})] == [
        (1, "required"),
        (2, "required"),
    ]


def test_a_point_in_time_that_python_cannot_hold_is_refused_like_any_wrong_value() -> None:
    moments = pa.array([None, 10**18], pa.timestamp("s"))
    days = pa.array([[0], [2**31 - 1]], pa.list_(pa.int32())).view(pa.list_(pa.date32()))

    assert refusals("Kinds", {"text": moments}, KINDS) == [
        (2, "type", "Kinds.text: expected String, got a point in time outside of the years 1 to 9999")
    ]
    assert [line for line, _, _ in refusals("Kinds", {"words": days}, KINDS)] == [1, 2]
