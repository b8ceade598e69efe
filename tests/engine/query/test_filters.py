"""Bindings and filters of the conformance list."""

import pytest

from omnigraph.graph.graph import Graph
from tests.support.queries import books, read
from tests.support.reading import ask, codes, json_rows, values

ALL = ["AA-1", "AA-2", "BB-1", "BB-2"]


@pytest.mark.case("languages", 134)
def test_a_key_finds_its_node(library: Graph) -> None:
    result = ask(library, '$b: Book { code: "AA-1" }', "return { $b.title }")

    assert json_rows(result) == [{"b.title": "Glass Rivers"}]


@pytest.mark.case("languages", 135)
def test_a_result_without_rows_has_its_columns(library: Graph) -> None:
    result = ask(library, '$b: Book { code: "ZZ-9" }', "return { $b.title }")

    assert (result.rows, result.columns) == ([], ["b.title"])


@pytest.mark.case("languages", 136)
def test_a_variable_gives_the_whole_entity(library: Graph) -> None:
    (row,) = json_rows(ask(library, '$b: Book { code: "AA-1" }', "return { $b }"))

    names = [
        "added", "blurb", "code", "embedding", "format", "pages",
        "price", "published", "stock", "tags", "title", "weight",
    ]  # fmt: skip
    assert list(row) == ["b"]
    assert list(row["b"]) == ["id", *names]
    assert (row["b"]["id"], row["b"]["stock"], row["b"]["tags"]) == ("AA-1", None, ["river", "glass"])


@pytest.mark.case("languages", 137)
def test_values_are_encoded_by_their_type(library: Graph) -> None:
    tail = "return { $b.published, $b.added, $b.embedding, $b.pages }"

    (row,) = ask(library, '$b: Book { code: "AA-1" }', tail).json_rows()

    assert row == ["2020-05-01", "2021-01-01T00:00:00.000Z", [1.0, 0.0, 0.0, 0.0], 300]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        pytest.param('{ format: "paper" }', ["AA-1", "BB-2"], marks=pytest.mark.case("languages", 138)),
        pytest.param('$b.format = "vinyl"', [], marks=pytest.mark.case("languages", 139)),
        pytest.param('{ tags: "glass" }', ["AA-1"], marks=pytest.mark.case("languages", 140)),
        pytest.param('$b.tags contains "machine"', ["AA-2"], marks=pytest.mark.case("languages", 140)),
        pytest.param('$b.title contains "Song"', ["BB-1", "BB-2"], marks=pytest.mark.case("languages", 141)),
        pytest.param('$b.title contains "song"', [], marks=pytest.mark.case("languages", 141)),
        pytest.param('$b.title starts_with "River"', ["BB-1"], marks=pytest.mark.case("languages", 141)),
        pytest.param(
            '"see AA-1 and AA-2" contains $b.code',
            ["AA-1", "AA-2"],
            marks=pytest.mark.case("languages", 142),
        ),
        pytest.param("$b.pages != 120", ["AA-1"], marks=pytest.mark.case("languages", 143)),
        pytest.param("$b.pages = 120.0", ["AA-2", "BB-2"], marks=pytest.mark.case("languages", 144)),
        pytest.param("{ pages: 120.5 }", [], marks=pytest.mark.case("languages", 144)),
        pytest.param(
            "$b.pages < 3000000000", ["AA-1", "AA-2", "BB-2"], marks=pytest.mark.case("languages", 144)
        ),
        pytest.param("$b.weight = 0.1", ["AA-1"], marks=pytest.mark.case("languages", 145)),
        pytest.param(
            '$b.published >= date("2020-01-01")', ["AA-1", "BB-2"], marks=pytest.mark.case("languages", 146)
        ),
        pytest.param(
            '$b.added < datetime("2021-01-02T01:00:00+01:00")',
            ["AA-1"],
            marks=pytest.mark.case("languages", 147),
        ),
        pytest.param("$b.added <= now()", ALL, marks=pytest.mark.case("languages", 147)),
        # either side, and lists and needles of other kinds
        ("120 = $b.pages", ["AA-2", "BB-2"]),
        ("150 < $b.pages", ["AA-1"]),
        ('$b.title contains ""', ALL),
        ('$b.blurb contains ""', ["AA-1", "AA-2", "BB-2"]),
        ('$b.title contains "%"', []),
        ('$b.title starts_with ".*"', []),
        ('["AA-1", "ZZ-1"] contains $b.code', ["AA-1"]),
        ("$b.price = 8", ["AA-2", "BB-1"]),
        ("$b.price > 8.0 $b.pages > 200", ["AA-1"]),
        ("$b.price >= $b.pages", []),
        ("$b.price < $b.pages", ["AA-1", "AA-2", "BB-2"]),
        ("$b.code = $b.code", ALL),
        ("$b.blurb = $b.blurb", ["AA-1", "AA-2", "BB-2"]),
        ('"x" = "x"', ALL),
        ('"x" = "y"', []),
        ('{ code: "AA-1", code: "AA-2" }', []),
        ('{ code: "AA-1" } $b.pages > 1000', []),
    ],
)
def test_books_that_pass(library: Graph, clauses: str, expected: list[str]) -> None:
    assert codes(library, clauses) == expected


@pytest.mark.case("languages", 148)
def test_a_null_parameter_matches_nothing(library: Graph) -> None:
    assert codes(library, "$b.published = $d", declared="$d: Date?") == []
    assert codes(library, "$b.published != $d", declared="$d: Date?") == []


@pytest.mark.case("languages", 149)
def test_two_variables_are_joined_by_an_equality(library: Graph) -> None:
    match = "$a: Book $b: Book $a.pages = $b.pages $a.code < $b.code"

    assert values(ask(library, match, "return { $a.code, $b.code }")) == [("AA-2", "BB-2")]


@pytest.mark.case("languages", 150)
def test_unconnected_bindings_form_a_product(library: Graph) -> None:
    assert values(ask(library, "$a: Author $s: Shelf", "return { count($a) as n }")) == [8]


def test_a_composite_key_finds_its_node(library: Graph) -> None:
    match = '$s: Shelf { room: "north", slot: 1 }'

    assert values(ask(library, match, "return { $s.label }")) == ["A"]
    assert values(ask(library, match.replace("1", "1.0"), "return { $s.label }")) == ["A"]
    assert values(ask(library, match.replace("1", "1.5"), "return { $s.label }")) == []


@pytest.mark.case("languages", 187)
def test_large_integers_travel_as_texts(library: Graph) -> None:
    text = books('{ code: "AA-1" }', "return { $n }", "$n: I64")

    for given in (9007199254740993, "9007199254740993"):
        result = library.query(text, params={"n": given})
        assert result.json_rows() == [["9007199254740993"]]
        assert result.scalar() == 9007199254740993


def test_a_parameter_of_every_type_is_returned_as_it_was_declared(library: Graph) -> None:
    declared = "$s: String, $f: F32, $d: Date, $t: DateTime, $l: [I32], $v: Vector(2), $o: Bool?"
    tail = "return { $s, $f, $d, $t, $l, $v, $o, 1, now() }"
    text = read('$b: Book { code: "AA-1" }', tail, declared)
    given = {
        "s": "x", "f": 0.5, "d": "2020-01-02", "t": "2020-01-02T03:04:05.678Z", "l": [1, 2], "v": [1, 2]
    }  # fmt: skip

    result = library.query(text, params=given)

    assert result.columns == ["s", "f", "d", "t", "l", "v", "o", "literal", "now"]
    (row,) = result.json_rows()
    assert row[:8] == ["x", 0.5, "2020-01-02", "2020-01-02T03:04:05.678Z", [1, 2], [1.0, 2.0], None, 1]


@pytest.mark.parametrize(
    ("clauses", "params", "expected"),
    [
        ("$codes contains $b.code", {"codes": ["BB-1", "AA-2", "BB-1", "ZZ-9"]}, ["AA-2", "BB-1"]),
        ("$codes contains $b.code  $b.pages = 120", {"codes": ["AA-1", "AA-2"]}, ["AA-2"]),
        ("$codes contains $b.code", {"codes": []}, []),
        ("$codes contains $b.title", {"codes": ["River Songs"]}, ["BB-1"]),
        ("$codes contains $b.code", {"codes": ["' OR true --"]}, []),
    ],
)
def test_a_list_parameter_selects_many_at_once(
    library: Graph, clauses: str, params: dict[str, object], expected: list[str]
) -> None:
    query = f"query q($codes: [String]) {{ match {{ $b: Book  {clauses} }} return {{ $b.code }} }}"

    assert [row["b.code"] for row in library.query(query, params=params)] == expected


def test_a_text_parameter_is_searched_for_a_property(library: Graph) -> None:
    query = "query q($t: String) { match { $b: Book  $t contains $b.code } return { $b.code } }"

    found = library.query(query, params={"t": "see AA-1 and BB-2"})
    assert [row["b.code"] for row in found] == ["AA-1", "BB-2"]
