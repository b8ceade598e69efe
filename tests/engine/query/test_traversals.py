"""Traversals and negation of the conformance list."""

from typing import Any

import pytest

from omnigraph.graph.graph import Graph
from tests.support.reading import ask, codes, json_rows, named, values


def from_author(library: Graph, handle: str, traversal: str, shown: str = "$b.code") -> list[Any]:
    return named(library, f'$a: Author {{ handle: "{handle}" }} $a {traversal}', shown)


def from_book(library: Graph, code: str, traversal: str) -> list[Any]:
    return named(library, f'$a: Book {{ code: "{code}" }} $a {traversal} $b', "$b.code")


def authors(library: Graph, clauses: str) -> list[Any]:
    return named(library, f"$a: Author {clauses}", "$a.handle")


@pytest.mark.case("languages", 151)
def test_one_hop_in_either_orientation(library: Graph) -> None:
    assert from_author(library, "ada", "wrote $b") == ["AA-1", "BB-1"]
    assert named(library, '$b: Book { code: "AA-1" } $b wrote $a', "$a.handle") == ["ada"]
    assert named(library, '$b: Book { code: "AA-1" } $b storedon $s', "$s.label") == ["A"]


@pytest.mark.case("languages", 152)
def test_parallel_edges_are_one_row_unless_the_edge_is_bound(library: Graph) -> None:
    assert from_author(library, "cy", "wrote $b") == ["BB-2"]
    assert from_author(library, "cy", "$w:wrote $b", "$w.role") == ["main", "translator"]


@pytest.mark.case("languages", 153)
def test_edges_are_filtered_and_counted(library: Graph) -> None:
    match = '$a: Author $a $w:wrote $b $w.role = "main"'

    assert values(ask(library, match, "return { count($b) as n }")) == [3]
    assert values(ask(library, "$a: Author $a $w:wrote $b", "return { count($w.share) as n }")) == [3]


@pytest.mark.case("languages", 154)
def test_an_edge_between_two_types_does_not_chain(library: Graph) -> None:
    assert from_author(library, "ada", "wrote{1,2} $b") == ["AA-1", "BB-1"]
    assert from_author(library, "ada", "wrote{2,2} $b") == []


@pytest.mark.case("languages", 155)
@pytest.mark.parametrize(
    ("bounds", "expected"), [("{1,3}", ["AA-2", "BB-2"]), ("{2,3}", ["BB-2"]), ("{3,3}", [])]
)
def test_a_node_is_reported_at_its_first_distance(library: Graph, bounds: str, expected: list[str]) -> None:
    assert from_book(library, "AA-1", f"cites{bounds}") == expected


@pytest.mark.case("languages", 156)
@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        ("cites", ["BB-1"]),
        ("cites{1,5}", ["BB-1"]),
        ("cites{2,2}", []),
        ("<cites>", ["BB-1"]),
        ("<cites>{1,3}", ["BB-1"]),
        ("cites{1,4000000000}", ["BB-1"]),
    ],
)
def test_a_loop_leads_back_once(library: Graph, edge: str, expected: list[str]) -> None:
    assert from_book(library, "BB-1", edge) == expected


@pytest.mark.case("languages", 157)
def test_undirected_traversals(library: Graph) -> None:
    assert from_book(library, "AA-1", "<cites>") == ["AA-2", "BB-2"]
    assert from_author(library, "ben", "mentors $b", "$b.handle") == ["cy"]
    assert from_author(library, "ben", "<mentors> $b", "$b.handle") == ["ada", "cy"]
    assert from_author(library, "ada", "<mentors>{1,2} $b", "$b.handle") == ["ben", "cy"]


@pytest.mark.case("languages", 158)
def test_triangles(library: Graph) -> None:
    match = "$a: Book $a cites $b $b cites $c $c cites $a"

    assert values(ask(library, match, "return { count($a) as n }")) == [4]


def test_both_ends_bound_with_an_edge_give_one_row_per_edge(library: Graph) -> None:
    match = '$a: Author { handle: "cy" } $b: Book { code: "BB-2" } $a wrote $b $a $w:wrote $b'

    assert named(library, match, "$w.role") == ["main", "translator"]


def test_both_ends_bound_with_bounds_are_a_condition(library: Graph) -> None:
    match = "$a: Book $b: Book $a.price < $b.price $a cites{2,3} $b"

    assert named(library, match, "$a.code") == ["AA-1", "AA-2"]


@pytest.mark.case("languages", 217)
def test_a_traversal_without_a_binding(library: Graph) -> None:
    pairs = sorted(values(ask(library, "$a wrote $b", "return { $a.handle, $b.code }")))

    assert pairs == [("ada", "AA-1"), ("ada", "BB-1"), ("ben", "AA-2"), ("cy", "BB-2")]


@pytest.mark.case("languages", 218)
def test_an_edge_is_returned_whole(library: Graph) -> None:
    match = '$a: Author { handle: "cy" } $a $w:wrote $b'

    rows = json_rows(ask(library, match, "return { $w } order { $w.role }"))

    assert [list(row["w"]) for row in rows] == [["id", "src", "dst", "role", "share"]] * 2
    assert [row["w"] for row in rows] == [
        {"id": "w4", "src": "cy", "dst": "BB-2", "role": "main", "share": 0.6},
        {"id": "w5", "src": "cy", "dst": "BB-2", "role": "translator", "share": 0.4},
    ]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        pytest.param(
            "not { $b storedOn $_ }", ["AA-2", "BB-1", "BB-2"], marks=pytest.mark.case("languages", 159)
        ),
        pytest.param(
            'not { $b cites $x  $x.format = "paper" }',
            ["AA-1", "BB-1"],
            marks=pytest.mark.case("languages", 160),
        ),
        pytest.param(
            "not { $b cites $x  $x.pages > 100 }", ["BB-1"], marks=pytest.mark.case("languages", 161)
        ),
        ('not { $b.format = "paper" }', ["AA-2", "BB-1"]),
        ("not { $b.pages > 100 }", ["BB-1"]),
        ("not { $b cites $b }", ["AA-1", "AA-2", "BB-2"]),
        ("not { $a: Author $a wrote $b }", []),
    ],
)
def test_books_without(library: Graph, clauses: str, expected: list[str]) -> None:
    assert codes(library, clauses) == expected


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        pytest.param(
            'not { $a wrote $b  not { $b.format = "paper" } }',
            ["cy", "dot"],
            marks=pytest.mark.case("languages", 162),
        ),
        pytest.param(
            'not { $a $w:wrote $b  $w.role = "editor" }',
            ["ben", "cy", "dot"],
            marks=pytest.mark.case("languages", 163),
        ),
        pytest.param("not { $a <mentors> $_ }", ["dot"], marks=pytest.mark.case("languages", 164)),
        pytest.param(
            "not { $a mentors{2,2} $x }", ["ben", "cy", "dot"], marks=pytest.mark.case("languages", 164)
        ),
        pytest.param(
            "not { $x: Author  $x.born < $a.born }",
            ["ada", "ben", "dot"],
            marks=pytest.mark.case("languages", 165),
        ),
    ],
)
def test_authors_without(library: Graph, clauses: str, expected: list[str]) -> None:
    assert authors(library, clauses) == expected
