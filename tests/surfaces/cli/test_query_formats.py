"""The output formats of reads, exactly: what people see, and what other programs parse."""

import csv
import io
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.render.cells import cut, width, wrap
from omnigraph.cli.render.formats import csv_lines, jsonl_lines, kv_lines
from omnigraph.cli.render.table import TableLayout, table_lines
from omnigraph.client.answer import ReadAnswer

CONTROL = "\x1b[31mred\x07\r\u202e\u2028"  # a colour, a bell, a return, a turn of direction, a separator
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def answer(columns: Sequence[str], *rows: Sequence[object], snapshot: str | None = None) -> ReadAnswer:
    """Return an answer of a query `q`."""
    branch = "main" if snapshot is None else None
    return ReadAnswer("q", {"branch": branch, "snapshot": snapshot}, columns, rows)


def table(answer: ReadAnswer, layout: TableLayout | None = None) -> list[str]:
    return list(table_lines(answer, layout))


def parsed(lines: Sequence[str]) -> list[list[str]]:
    return list(csv.reader(io.StringIO("".join(f"{line}\n" for line in lines), newline="")))


CRAFT = answer(
    ["c.code", "mass", "c"],
    ["VGR-1", 825.5, {"id": "VGR-1", "tags": ["a", None]}],
    ["GLL-1", None, {"id": "GLL-1", "tags": []}],
)


def test_a_table_has_a_title_a_head_a_rule_and_rows() -> None:
    assert table(CRAFT) == [
        "2 rows from branch main via q",
        "c.code |  mass | c",
        "-------+-------+---------------------------------",
        'VGR-1  | 825.5 | {"id":"VGR-1","tags":["a",null]}',
        'GLL-1  |  null | {"id":"GLL-1","tags":[]}',
    ]


def test_a_table_without_rows_still_has_its_columns() -> None:
    assert table(answer(["c.code", "n"])) == ["0 rows from branch main via q", "c.code | n", "-------+--"]


def test_a_table_without_columns_has_no_rows() -> None:
    assert table(answer([])) == ["0 rows from branch main via q", "(no rows)"]


def test_the_title_names_the_snapshot_that_was_read() -> None:
    assert table(answer(["n"], [1], snapshot="01OLD"))[0] == "1 row from snapshot 01OLD via q"


def test_a_column_of_texts_and_numbers_is_aligned_to_the_left() -> None:
    big = answer(["n"], [1], ["9007199254740993"])

    assert table(big)[2:] == ["----------------", "1", "9007199254740993"]


def test_a_table_keeps_its_lines_and_the_terminal_its_state() -> None:
    shown = table(answer(["text"], ["one\ntwo\t" + CONTROL]))[-1]

    assert shown == r"one\ntwo\t\x1b[31mred\x07\r\u202e\u2028"


def test_wide_characters_are_counted_as_the_terminal_counts_them() -> None:
    lines = table(answer(["name", "n"], ["日本", 1], ["e\u0301te\u0301", 2], ["plain", 3]))

    assert lines[1:] == ["name  | n", "------+--", "日本  | 1", "e\u0301te\u0301   | 2", "plain | 3"]
    assert {width(line.split(" | ")[0]) for line in lines[3:]} == {5}


def test_a_cell_that_is_too_wide_is_cut() -> None:
    narrow = TableLayout(max_column_width=5)

    assert table(answer(["long heading"], ["abcde"], ["abcdef"], ["日本語"]), narrow)[1:] == [
        "long…",
        "-----",
        "abcde",
        "abcd…",
        "日本…",
    ]


def test_a_cell_may_be_wrapped_in_place_of_cut() -> None:
    wrapped = TableLayout(max_column_width=4, cell_layout="wrap")

    assert table(answer(["a", "n"], ["abcdefghij", 7], ["日本語", 8]), wrapped)[3:] == [
        "abcd | 7",
        "efgh |",
        "ij   |",
        "日本 | 8",
        "語   |",
    ]


def test_the_default_width_of_a_column_is_eighty() -> None:
    assert width(table(answer(["a"], ["x" * 81]))[-1]) == 80
    assert table(answer(["a"], ["x" * 80]))[-1] == "x" * 80


@given(TEXTS, st.integers(min_value=2, max_value=9))
def test_what_is_cut_or_wrapped_fits(text: str, cells: int) -> None:
    assert width(cut(text, cells)) <= cells
    assert all(width(line) <= cells for line in wrap(text, cells))
    assert "".join(wrap(text, cells)) == text


def test_kv_has_a_block_for_each_row() -> None:
    assert list(kv_lines(CRAFT)) == [
        "2 rows from branch main via q",
        "row 1",
        "c.code: VGR-1",
        "mass: 825.5",
        'c: {"id":"VGR-1","tags":["a",null]}',
        "",
        "row 2",
        "c.code: GLL-1",
        "mass: null",
        'c: {"id":"GLL-1","tags":[]}',
    ]


def test_kv_without_rows_says_so() -> None:
    assert list(kv_lines(answer(["a"]))) == ["0 rows from branch main via q", "(no rows)"]


def test_kv_keeps_the_lines_of_a_text_but_lets_nothing_steer_the_terminal() -> None:
    assert list(kv_lines(answer(["a"], ["one\ntwo\x1b[2J"])))[2:] == ["a: one\ntwo\\x1b[2J"]


@pytest.mark.case("surfaces", 31)
def test_csv_quotes_what_needs_it_and_nothing_else() -> None:
    lines = list(
        csv_lines(answer(["a", 'b"c'], ["x y", 'says "no", twice'], ["two\nlines", "\r"], [None, True]))
    )

    assert lines == ['a,"b""c"', 'x y,"says ""no"", twice"', '"two\nlines","\r"', "null,true"]
    assert parsed(lines)[1:3] == [["x y", 'says "no", twice'], ["two\nlines", "\r"]]


@pytest.mark.case("surfaces", 31)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4), st.lists(TEXTS, max_size=4))
def test_csv_parses_back_equal(pairs: list[tuple[str, str]], singles: list[str]) -> None:
    assert parsed(list(csv_lines(answer(["a", "b"], *pairs))))[1:] == [list(pair) for pair in pairs]
    assert parsed(list(csv_lines(answer(["a"], *([text] for text in singles)))))[1:] == [[t] for t in singles]


def test_csv_has_lists_and_objects_as_compact_json() -> None:
    lines = list(csv_lines(CRAFT))

    assert lines[0] == "c.code,mass,c"
    assert json.loads(parsed(lines)[1][2]) == {"id": "VGR-1", "tags": ["a", None]}


def test_csv_gives_texts_as_they_are() -> None:
    assert list(csv_lines(answer(["a"], ["\x1b[31m日\t"])))[1] == "\x1b[31m日\t"


def test_jsonl_begins_with_what_the_answer_is() -> None:
    lines = list(jsonl_lines(answer(["a", "b"], [1, "é\n"], [None, [1.5]])))

    assert lines == [
        '{"kind":"metadata","query_name":"q","target":{"branch":"main","snapshot":null},"row_count":2}',
        '{"a":1,"b":"é\\n"}',
        '{"a":null,"b":[1.5]}',
    ]


def test_columns_of_one_name_stay_apart_in_tables_and_csv_and_the_last_one_wins_in_objects() -> None:
    twice = answer(["n", "n"], [1, 2])

    assert table(twice)[1:] == ["n | n", "--+--", "1 | 2"]
    assert list(csv_lines(twice)) == ["n,n", "1,2"]
    assert list(jsonl_lines(twice))[1:] == ['{"n":2}']
