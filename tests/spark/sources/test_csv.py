"""CSV: a header, types by the catalog, null for nothing, and the line of every mistake."""

from pathlib import Path

import pytest

from omnigraph.bulk.sources.sources import Format, SourceInput
from omnigraph.core.errors import BadRequest
from tests.spark.sources.test_slices import Found, read


def read_text(folder: Path, text: str, table_key: str = "node:Person") -> Found:
    """Return what a text of CSV holds."""
    (folder / "x.csv").write_bytes(text.encode())
    return read(SourceInput(str(folder / "x.csv"), Format.CSV, "x.csv", None, table_key))


def test_texts_become_values_of_their_types(tmp_path: Path) -> None:
    text = 'name,age,score,tags,born\nann,-5,1e3,"[""a"",""b""]",2020-01-02\nbob,,,,\n'

    rows, violations = read_text(tmp_path, text)

    assert violations == []
    assert [row for _, row in rows] == [
        {
            "id": "ann",
            "name": "ann",
            "age": -5,
            "score": 1000.0,
            "tags": ["a", "b"],
            "born": rows[0][1]["born"],
        },
        {"id": "bob", "name": "bob", "age": None, "score": None, "tags": None, "born": None},
    ]
    assert str(rows[0][1]["born"]) == "2020-01-02"


def test_nothing_is_null_and_quotes_around_nothing_are_the_empty_text(tmp_path: Path) -> None:
    rows, violations = read_text(tmp_path, 'name,age\n"",1\n,2\n')

    assert [(line, row["name"]) for line, row in rows] == [(2, ""), (3, None)]
    assert violations == []  # that a name is required is for the value checks


def test_edges_have_their_ends_and_the_order_of_columns_is_free(tmp_path: Path) -> None:
    rows, violations = read_text(tmp_path, "to,since,from\nb,2020-01-01,a\nb,,\n", "edge:Knows")

    assert [(row["src"], row["dst"]) for _, row in rows] == [("a", "b")]
    assert violations == [(3, "'from' of Knows is missing")]


def test_every_mistake_has_the_line_where_its_row_begins(tmp_path: Path) -> None:
    text = (
        "name,age,score,tags,born\n"
        '"two\nlines",x,,,\n'
        "\n"
        "bob,1\n"
        "cy,1.0,abc,[1,not-a-date\n"
        "dot,12345678901,inf,{},2020-02-30\n"
        'q"q,,,,\n'
        '"a"b,,,,\n'
        "eve,0x10,+1,[],\n"
        "fin,1,2,,"
    )

    rows, violations = read_text(tmp_path, text)

    assert [line for line, _ in rows] == [2, 6, 7, 10, 11]
    assert violations == [
        (2, "Person.age: expected I32, got string 'x'"),
        (5, "the row has 2 fields, but the header has 5"),
        (6, "Person.age: expected I32, got string '1.0'"),
        (6, "Person.born: invalid Date 'not-a-date': write YYYY-MM-DD"),
        (6, "Person.score: expected F64, got string 'abc'"),
        (6, "Person.tags: expected [String]?, got string '[1'"),
        (7, "Person.age: 12345678901 does not fit I32"),
        (7, "Person.born: invalid Date '2020-02-30': write YYYY-MM-DD"),
        (7, "Person.score: expected F64, got string 'inf'"),
        (7, "Person.tags: expected [String]?, got string '{}'"),
        (8, "a quote in a field that does not begin with one: put the field in quotes and double the quote"),
        (9, "text after the closing quote of a field"),
        (10, "Person.age: expected I32, got string '0x10'"),
        (10, "Person.score: expected F64, got string '+1'"),
    ]


def test_a_quote_that_is_not_closed_is_one_mistake(tmp_path: Path) -> None:
    rows, violations = read_text(tmp_path, 'name,age\nann,1\n"bob,2\ncy,3\n')

    assert [row["id"] for _, row in rows] == ["ann"]
    assert violations == [(3, "the quote of a field is not closed")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty: the first line of CSV names the columns"),
        ("name,,age\n", "column 2 has no name"),
        ('"name\n', "the quote of a field is not closed"),
    ],
)
def test_a_file_without_a_header_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=said):
        read_text(tmp_path, text)


def test_columns_that_the_type_does_not_have_are_refused_at_the_first_line(tmp_path: Path) -> None:
    assert read_text(tmp_path, "name,agee\nann,1\n")[1] == [
        (1, "Person has no property 'agee'; did you mean 'age'?")
    ]
    assert read_text(tmp_path, "name,name\nann,1\n")[1] == [
        (1, "column 'name' appears twice in the table for Person")
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,age\nann,0x1F\n", "Person.age: expected I32, got string '0x1F'"),
        ("name,score\nann,.5\n", "Person.score: expected F64, got string '.5'"),
        ("name,score\nann,inf\n", "Person.score: expected F64, got string 'inf'"),
    ],
)
def test_a_number_that_only_arrow_would_read_is_none(tmp_path: Path, text: str, problem: str) -> None:
    """Alone in its column, which would be converted in one go."""
    assert read_text(tmp_path, text)[1] == [(2, problem)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("ann,1,2", "the row has 3 fields, but the header has 2"),
        ('a"n"n,1', "a quote in a field that does not begin with one"),
        ('"ann"x,1', "text after the closing quote of a field"),
    ],
)
def test_a_mistake_alone_in_its_file_is_found(row: str, said: str, tmp_path: Path) -> None:
    """Every other row could be read in one go: the one mistake must not be read with them."""
    rows, violations = read_text(tmp_path, f"name,age\nbob,1\n{row}\ncy,2\n")

    assert [values["id"] for _, values in rows] == ["bob", "cy"]
    assert [(line, message[: len(said)]) for line, message in violations] == [(3, said)]


def test_bytes_that_are_no_text_are_found(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"name,age\nbob,1\n\xff,2\n")

    rows, violations = read(SourceInput(str(path), Format.CSV, "x.csv", None, "node:Person"))

    assert [values["id"] for _, values in rows] == ["bob"]
    assert violations == [(3, "invalid UTF-8")]


def test_a_byte_order_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="begins with a byte order mark"):
        read_text(tmp_path, "\ufeffname,age\nann,1\n")
