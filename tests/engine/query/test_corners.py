"""Nulls, empty tables, parallel edges, loops and numbers at the edge of their types."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from omnigraph.graph.graph import Graph
from tests.support.people_graph import people_graph
from tests.support.reading import ask, named, values


@pytest.fixture(scope="module", params=["csr", "indexed"])
def people(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """The persons, read with adjacency in memory and with hops through the table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", request.param)
        with people_graph(tmp_path_factory.mktemp("people") / "graph") as graph:
            yield graph


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("$a knows $b", [("a", "b"), ("b", "a"), ("c", "c"), ("d", "a")]),
        ("$a $k:knows $b", [("a", "b"), ("a", "b"), ("b", "a"), ("c", "c"), ("c", "c"), ("d", "a")]),
        ("$a <knows> $b", [("a", "b"), ("a", "d"), ("b", "a"), ("c", "c"), ("d", "a")]),
        (
            "$a $k:<knows> $b",
            [("a", "b")] * 3 + [("a", "d")] + [("b", "a")] * 3 + [("c", "c")] * 2 + [("d", "a")],
        ),
        ("$a knows{1,9} $b", [("a", "b"), ("b", "a"), ("c", "c"), ("d", "a"), ("d", "b")]),
        ("$a knows{2,9} $b", [("d", "b")]),
        ("$a <knows>{2,2} $b", [("b", "d"), ("d", "b")]),
        ("$a: Person $b: Person $a knows $b $b knows $a", [("a", "b"), ("b", "a"), ("c", "c")]),
        ("$a knows $b $a $k:knows $b", [("a", "b")] * 2 + [("b", "a")] + [("c", "c")] * 2 + [("d", "a")]),
        ("$a knows $b $b.age > 1", [("a", "b"), ("c", "c")]),
        ("$a $k:knows $b $k.since > 1", [("a", "b"), ("b", "a"), ("c", "c"), ("d", "a")]),
        ("$a knows $b not { $b knows $a }", [("d", "a")]),
        ("$a knows $b not { $c knows $a }", [("d", "a")]),
        ("$a: Person $b: Person $a.town = $b.town $a.name < $b.name", [("a", "b"), ("d", "e")]),
        ("$a: Person $b: Person $a.age = $b.age $a.name < $b.name", [("b", "c")]),
        ("$a: Person $b: Person $a.share > $b.age", []),
        ("$a: Person $b: Person $a.share < $b.age $b.name = $a.name", [("a", "a"), ("b", "b"), ("e", "e")]),
        (
            '$a: Person $b: Person not { $a knows{1,2} $b } $a.name = "d"',
            [("d", "c"), ("d", "d"), ("d", "e")],
        ),
    ],
)
def test_pairs(people: Graph, match: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(values(ask(people, match, "return { $a.name, $b.name }"))) == expected


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("count($a) as n", [6]),
        ("$a.name, count($b) as n", [("a", 2), ("b", 1), ("c", 2), ("d", 1)]),
        ("$b.town, sum($k.since) as n", [(None, 5.0), ("x", 12.0)]),
        ("$b.age, avg($a.share) as n, min($k.since) as m", [(1, 0.25, 3), (2, 0.1, 1)]),
        ("max($k.since) as m, min($b.name) as n", [(6, "a")]),
    ],
)
def test_aggregates_over_parallel_edges(people: Graph, tail: str, expected: list[object]) -> None:
    found = values(ask(people, "$a $k:knows $b", f"return {{ {tail} }}"))

    assert found == expected


def test_integers_beyond_doubles_compare_exactly(people: Graph) -> None:
    assert named(people, "$p: Person $p.age = 9007199254740993", "$p.name") == ["e"]
    assert named(people, "$p: Person $p.age = 9007199254740992", "$p.name") == []
    assert named(people, "$p: Person $p.age = 9007199254740992.0", "$p.name") == []
    assert named(people, "$p: Person $p.age > 9007199254740992.0", "$p.name") == ["e"]


def test_empty_tables(people: Graph) -> None:
    assert values(ask(people, "$e: Empty", "return { $e }")) == []
    assert values(ask(people, "$e: Empty { size: 1 }", "return { $e.name } order { $e.size } limit 3")) == []
    assert values(ask(people, "$p holds $e", "return { $p.name, $e.name }")) == []
    assert values(ask(people, "$p: Person not { $p holds $_ }", "return { count($p) as n }")) == [5]
    assert values(ask(people, "$e: Empty", "return { count($e) as n, max($e.size) as m }")) == [(0, None)]
    result = ask(people, "$p holds $e", "return { $p, $e.size, count($e) as n }")
    assert result.to_arrow().schema.field("e.size").type == pa.int32()
    assert pa.types.is_struct(result.to_arrow().schema.field("p").type)


def test_the_order_of_many_ties_and_few_places(people: Graph) -> None:
    tail = "return { $a.name, $b.name } order { $a.town desc, $b.age } limit 4"

    found = values(ask(people, "$a: Person $b: Person", tail))

    assert found == [("d", "d"), ("e", "d"), ("d", "a"), ("e", "a")]
