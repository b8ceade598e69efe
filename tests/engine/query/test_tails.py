"""Aggregates, order and limit of the conformance list."""

import pytest

from omnigraph.graph.graph import Graph
from tests.support.queries import books
from tests.support.reading import ask, codes, json_rows, named, values

SUMMARY = (
    "count($b) as c, count($b.pages) as p, sum($b.pages) as s, avg($b.pages) as v, "
    "min($b.pages) as lo, max($b.title) as t"
)


@pytest.mark.case("languages", 166)
def test_aggregates_pass_over_nulls(library: Graph) -> None:
    result = library.query(books("", f"return {{ {SUMMARY} }}"))

    assert result.json_rows() == [[4, 3, 540.0, 180.0, 120, "River Songs"]]


@pytest.mark.case("languages", 167)
def test_aggregates_of_no_rows(library: Graph) -> None:
    none = '$b.format = "vinyl"'

    alone = library.query(books(none, f"return {{ {SUMMARY} }}"))
    grouped = library.query(books(none, f"return {{ $b.format, {SUMMARY} }}"))

    assert alone.json_rows() == [[0, 0, None, None, None, None]]
    assert (grouped.rows, len(grouped.columns)) == ([], 7)
    assert alone.to_arrow().schema.types == grouped.to_arrow().schema.types[1:]


@pytest.mark.case("languages", 168)
def test_groups_are_ordered_by_an_aggregate_then_by_their_keys(library: Graph) -> None:
    result = library.query(books("", "return { $b.pages, count($b) as n } order { n desc }"))

    assert values(result) == [(120, 2), (None, 1), (300, 1)]


@pytest.mark.case("languages", 169)
def test_an_aggregate_has_the_name_of_its_argument(library: Graph) -> None:
    assert library.query(books("", "return { count($b) }")).columns == ["b"]


@pytest.mark.case("languages", 170)
def test_nulls_sort_first_ascending_and_last_descending(library: Graph) -> None:
    assert codes(library, "", "order { $b.pages }") == ["BB-1", "AA-2", "BB-2", "AA-1"]
    assert codes(library, "", "order { $b.pages desc }") == ["AA-1", "AA-2", "BB-2", "BB-1"]


@pytest.mark.case("languages", 171)
def test_several_keys_and_limits(library: Graph) -> None:
    assert codes(library, "", "order { $b.price desc, $b.code desc }") == ["BB-2", "AA-1", "BB-1", "AA-2"]
    assert codes(library, "", "order { $b.price } limit 1") == ["AA-2"]
    assert codes(library, "", "order { $b.price } limit 0") == []
    assert len(codes(library, "", f"order {{ $b.price }} limit {2**64 - 1}")) == 4
    assert codes(library, "", "limit 2") == ["AA-1", "AA-2"]


@pytest.mark.case("languages", 172)
def test_edges_break_ties(library: Graph) -> None:
    match = '$a: Author { handle: "cy" } $a $w:wrote $b'

    assert named(library, match, "$w.role", "order { $b.price }") == ["main", "translator"]


@pytest.mark.case("languages", 219)
def test_whole_entities_are_grouping_keys(library: Graph) -> None:
    tail = "return { $a, count($w) as n } order { n desc }"

    rows = json_rows(ask(library, "$a: Author $a $w:wrote $b", tail))

    assert [(row["a"]["id"], row["a"]["name"], row["n"]) for row in rows] == [
        ("ada", "Ada Quill", 2),
        ("cy", "Cy Verse", 2),
        ("ben", "Ben Ode", 1),
    ]


@pytest.mark.case("languages", 220)
def test_an_alias_of_an_entity_orders_by_its_id(library: Graph) -> None:
    rows = json_rows(library.query(books("", "return { $b as x } order { x desc }")))

    assert [row["x"]["id"] for row in rows] == ["BB-2", "BB-1", "AA-2", "AA-1"]


def test_columns_may_have_one_name(library: Graph) -> None:
    result = library.query(books('{ code: "AA-1" }', "return { $b.code as x, $b.pages as x }"))

    assert result.columns == ["x", "x"]
    assert result.json_rows() == [["AA-1", 300]]
    assert result.rows == [{"x": 300}]


def test_counts_multiply_along_unused_traversals(library: Graph) -> None:
    match = "$a: Author $a wrote $b $b cites $c"

    assert values(ask(library, match, "return { $a.handle, count($c) as n } order { n desc }")) == [
        ("ada", 2),
        ("ben", 1),
        ("cy", 1),
    ]
    assert values(ask(library, match, "return { count($a) as n }")) == [4]
    assert values(ask(library, "$a: Author $a $w:wrote $b", "return { count($w) as n }")) == [5]
    assert values(ask(library, "$a: Book $a <cites> $b", "return { count($b) as n }")) == [7]


def test_aggregates_are_weighted_by_rows(library: Graph) -> None:
    match = "$a: Book $a cites{1,5} $b"
    tail = "return { sum($a.price) as s, avg($a.price) as v, min($a.price) as lo, count($a.pages) as n }"

    assert values(ask(library, match, tail)) == [(2 * (12.5 + 8.0 + 20.0) + 8.0, 89.0 / 7, 8.0, 6)]
