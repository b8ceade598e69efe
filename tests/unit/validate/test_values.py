"""Value checks over columns: kinds, texts, and which rows pass."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.catalog.model import Catalog
from omnigraph.validate.columns import TypedRows, make_rows
from omnigraph.validate.values import check_values
from omnigraph.validate.violations import ViolationLog
from tests.support.library import compile_text
from tests.unit.validate.memory_view import columns_of, messages, rows_of, type_named

BOOK = {"code": "AB-1", "title": "T", "price": 1.0, "format": "paper", "added": 0}

NUMBERS = compile_text("""\
node Item {
    small: I32?
    large: U64?
    half: F32?
    whole: F64?
    @range(small, 1..5)
    @range(small, ..3)
    @range(large, -5..)
    @range(half, 0..0.1)
    @range(whole, -1.5..)
    @range(small, -9999999999..9999999999)
}
node Odd { small: I32? @range(small, 9999999999..) }
node Log { at: DateTime? on: Date? ons: [Date]? marks: [F32]? words: [String]? spot: Vector(2)? }
edge Links: Item -> Item { how: enum(a, b) }
""")


def check(rows: TypedRows) -> tuple[list[bool], list[tuple[int, str, str]]]:
    """Return which rows pass, and what is wrong with the others."""
    log = ViolationLog()
    passing = check_values(rows, log)
    assert log.total == len(log.first_violations())
    return passing.tolist(), messages(log.first_violations())


def items(of: Catalog, name: str, **columns: Sequence[object]) -> TypedRows:
    """Return rows of a type without a key from some of its columns, converted by Arrow alone."""
    type_ = of.nodes.get(name) or of.edges[name]
    count = len(next(iter(columns.values())))
    schema = make_rows(type_, {}, lines=[]).table.schema
    arrays = {key: pa.array(values, schema.field(key).type) for key, values in columns.items()}
    arrays["id"] = pa.array([f"i{position}" for position in range(count)], pa.utf8())
    for end in ("src", "dst") if name in of.edges else ():
        arrays[end] = arrays["id"]
    return make_rows(type_, arrays, lines=range(1, count + 1))


def test_good_rows_pass() -> None:
    rows = rows_of(
        "Book", BOOK, BOOK | {"pages": 1, "tags": [], "embedding": [1, 2, 3, 4]}, BOOK | {"pages": 5000}
    )

    assert check(rows) == ([True, True, True], [])


def test_no_rows_pass_too() -> None:
    assert check(rows_of("Book")) == ([], [])


def test_a_required_value_is_named() -> None:
    rows = rows_of("Book", BOOK, BOOK | {"title": None, "price": None})

    assert check(rows) == (
        [True, False],
        [
            (2, "required", "missing required property Book.price"),
            (2, "required", "missing required property Book.title"),
        ],
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_float_is_finite_and_reported_once(value: float) -> None:
    passing, found = check(items(NUMBERS, "Item", half=[0.1, value], whole=[None, value]))

    assert passing == [True, False]
    assert [(line, kind) for line, kind, _ in found][:2] == [(2, "type"), (2, "type")]
    assert [text.split(" ")[0] for _, _, text in found][:2] == ["Item.half", "Item.whole"]
    assert "must be finite" in found[0][2]


def test_nan_is_no_range_violation_besides() -> None:
    _, found = check(items(NUMBERS, "Item", whole=[float("nan")]))

    assert [kind for _, kind, _ in found] == ["type"]


def test_an_f32_must_stay_finite_after_rounding() -> None:
    rows = rows_of("Book", BOOK | {"weight": 1e39})

    assert check(rows)[1] == [(1, "type", "Book.weight must be finite, not inf")]


def test_an_enum_value_is_in_its_set_for_nodes_and_edges() -> None:
    _, nodes = check(rows_of("Book", BOOK, BOOK | {"format": "vinyl"}))
    _, edges = check(items(NUMBERS, "Links", how=["a", "c"]))

    assert nodes == [
        (2, "enum", "invalid enum value 'vinyl' for Book.format: expected one of audio, ebook, paper")
    ]
    assert edges == [(2, "enum", "invalid enum value 'c' for Links.how: expected one of a, b")]


def test_an_absent_enum_is_no_wrong_one() -> None:
    rows = rows_of("Wrote", {"id": "e", "src": "a", "dst": "b", "role": None})

    assert check(rows) == ([True], [])


def test_a_range_is_inclusive_and_leaves_null_alone() -> None:
    rows = rows_of("Book", *(BOOK | {"pages": pages} for pages in (None, 0, 1, 5000, 5001)))

    assert check(rows) == (
        [True, False, True, True, False],
        [
            (2, "range", "@range violation on Book.pages: 0 is not in 1..5000"),
            (5, "range", "@range violation on Book.pages: 5001 is not in 1..5000"),
        ],
    )


def test_every_declared_range_is_checked() -> None:
    _, found = check(items(NUMBERS, "Item", small=[0, 1, 3, 4, 6]))

    assert [(line, text.rsplit(" ", 1)[1]) for line, _, text in found] == [
        (1, "1..5"),
        (4, "..3"),
        (5, "1..5"),
        (5, "..3"),
    ]


def test_a_range_holds_at_the_ends_of_the_width() -> None:
    rows = items(NUMBERS, "Item", large=[0, 2**64 - 1], small=[None, None])

    assert check(rows) == ([True, True], [])


def test_a_bound_beyond_the_width_is_met_by_no_value() -> None:
    passing, found = check(items(NUMBERS, "Odd", small=[2**31 - 1, None]))

    assert passing == [False, True]
    assert found[0][2].startswith("@range violation on Odd.small")


def test_a_bound_of_an_f32_is_rounded_as_the_values_are() -> None:
    assert check(items(NUMBERS, "Item", half=[0.1, 0.11]))[0] == [True, False]


def test_a_check_searches_the_pattern() -> None:
    rows = rows_of("Book", BOOK, BOOK | {"code": "ab-1"})

    assert check(rows) == (
        [True, False],
        [(2, "check", "@check violation on Book.code: 'ab-1' does not match '^[A-Z]{2}-[0-9]+$'")],
    )


def test_a_long_value_is_cut_in_a_message() -> None:
    _, found = check(rows_of("Book", BOOK | {"code": "x" * 10_000}))

    assert len(found[0][2]) < 300


def test_dates_have_a_year_of_four_digits() -> None:
    day, millisecond = 2_932_896, 253_402_300_799_999  # the last ones of 9999

    rows = items(NUMBERS, "Log", on=[day, day + 1, None], at=[millisecond, None, millisecond + 1])

    assert check(rows) == (
        [True, False, False],
        [
            (2, "type", "Log.on: a Date must have a year from 1 to 9999"),
            (3, "type", "Log.at: a DateTime must have a year from 1 to 9999"),
        ],
    )


def test_lists_and_vectors_have_no_null_and_no_unstorable_item() -> None:
    rows = items(
        NUMBERS,
        "Log",
        words=[["a"], ["a", None], None, []],
        marks=[[1.0], [float("nan")], [], None],
        spot=[[0.0, 1.0], [1.0, None], [float("inf"), 0.0], None],
        ons=[[0], [2_932_897], None, []],
    )

    passing, found = check(rows)

    assert passing == [True, False, False, True]
    assert found == [
        (2, "type", "Log.marks: an item must be finite"),
        (2, "type", "Log.ons: an item has a day outside of the years 1 to 9999"),
        (2, "type", "Log.spot: a null item in Vector(2)?"),
        (2, "type", "Log.words: a null item in [String]?"),
        (3, "type", "Log.spot: an item must be finite"),
    ]


def test_items_are_found_behind_nulls_and_in_every_chunk() -> None:
    first = items(NUMBERS, "Log", words=[None, ["a"]]).table
    second = items(NUMBERS, "Log", words=[["b"], None, ["c", None]]).table
    whole = pa.concat_tables([first, second])
    lines = np.arange(1, 6, dtype=np.int64)

    passing, found = check(TypedRows(NUMBERS.nodes["Log"], whole, np.zeros(5, dtype=np.int32), lines))

    assert passing == [True, True, True, True, False]
    assert [line for line, _, _ in found] == [5]


def test_a_flaw_fails_its_row_without_a_second_report() -> None:
    type_ = type_named("Book")
    columns = columns_of(type_, [BOOK | {"title": None}, BOOK])
    good = make_rows(type_, columns, lines=[1, 2])
    flawed = TypedRows(type_, good.table, good.files, good.lines, {"title": np.array([True, False])})

    assert check(flawed) == ([False, True], [])


def test_several_faults_of_a_row_come_in_the_order_of_the_kinds() -> None:
    _, found = check(rows_of("Book", {"code": "x", "title": None, "price": 1e999, "format": "f", "pages": 0}))

    assert [kind for _, kind, _ in found] == ["required", "required", "type", "enum", "range", "check"]


def test_a_million_faults_are_counted_and_not_worded() -> None:
    rows = items(NUMBERS, "Item", small=[9] * 100_000)
    log = ViolationLog()

    check_values(rows, log)

    assert log.total == 200_000
    assert len(log.first_violations()) == 100


@pytest.mark.parametrize(
    ("column", "inside", "outside"),
    [("whole", [-1.5, 0.0, 1e300], [-1.500001, -1e300]), ("half", [0.0, 0.1], [-0.1, 0.11])],
)
def test_both_bounds_of_floats_hold(column: str, inside: list[object], outside: list[object]) -> None:
    passing, _ = check(items(NUMBERS, "Item", **{column: [*inside, *outside]}))

    assert passing == [True] * len(inside) + [False] * len(outside)
