"""Rows with their places, and violations charged to them."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.validate.columns import TypedRows, charge, concat_rows, make_rows
from omnigraph.validate.violations import ViolationKind, ViolationLog
from tests.unit.validate.memory_view import rows_of, type_named


def notes(*places: tuple[int, int, str]) -> TypedRows:
    """Return notes at (file, line) with an id."""
    rows = rows_of("Note", *({"id": id_, "body": "x"} for _, _, id_ in places))
    files = np.array([file for file, _, _ in places], dtype=np.int32)
    return TypedRows(rows.type, rows.table, files, np.array([line for _, line, _ in places], dtype=np.int64))


def test_rows_have_the_columns_of_their_table_and_nulls_where_nothing_is_given() -> None:
    type_ = type_named("Note")

    rows = make_rows(type_, {"id": pa.array(["a", "b"])}, lines=[4, 5], file=2)

    assert rows.table.schema.equals(arrow_schema(type_))
    assert rows.table.column("made").null_count == 2
    assert (rows.files.tolist(), rows.lines.tolist(), rows.count) == ([2, 2], [4, 5], 2)


def test_rows_in_order_are_by_file_line_and_id() -> None:
    rows = notes((1, 1, "a"), (0, 2, "c"), (0, 2, "b"), (0, 1, "z"))

    assert rows.in_order().ids.to_pylist() == ["z", "b", "c", "a"]


def test_rows_that_are_in_order_are_not_touched() -> None:
    rows = notes((0, 1, "b"), (0, 3, "a"), (1, 1, "c"))

    assert rows.in_order() is rows


def test_rows_are_chosen_with_their_places_and_flaws() -> None:
    rows = notes((0, 1, "a"), (0, 2, "b"), (0, 3, "c"))
    flawed = TypedRows(
        rows.type, rows.table, rows.files, rows.lines, {"body": np.array([False, True, False])}
    )

    chosen = flawed.filter(np.array([False, True, True]))

    assert chosen.ids.to_pylist() == ["b", "c"]
    assert chosen.lines.tolist() == [2, 3]
    assert chosen.flaws["body"].tolist() == [True, False]
    assert flawed.filter(np.array([True, True, True])) is flawed


def test_pieces_make_one() -> None:
    left, right = notes((0, 1, "a")), notes((0, 2, "b"))
    flawed = TypedRows(right.type, right.table, right.files, right.lines, {"body": np.array([True])}, True)

    whole = concat_rows([left, flawed])

    assert whole.ids.to_pylist() == ["a", "b"]
    assert whole.flaws["body"].tolist() == [False, True]
    assert not whole.has_fresh_ids


@given(
    places=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from("abcdé")), max_size=30),
    limit=st.integers(1, 5),
)
def test_only_the_first_violations_of_a_check_are_made_and_all_are_counted(
    places: list[tuple[int, int, str]], limit: int
) -> None:
    rows, log = notes(*places), ViolationLog(limit)
    made: list[int] = []

    def message(row: int) -> str:
        made.append(row)
        return "wrong"

    charge(rows, np.arange(len(places)), log, kind=ViolationKind.ENUM, message=message)

    found = [(item.file, item.line, item.row_id) for item in log.first_violations()]
    assert found == sorted(places)[:limit]
    assert log.total == len(places)
    assert len(made) == min(limit, len(places))
