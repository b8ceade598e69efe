"""Which values are equal when rows are joined, grouped and counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.graph.graph import Graph
from tests.support.engine import edge, ndjson, new_graph, node
from tests.support.reading import ask, values

SCHEMA = """\
node Person { name: String @key  town: String?  share: F64?  code: U64?  age: I64? }
edge Knows: Person -> Person
"""
RECORDS = (
    node("Person", name="a", town="x", share=0.0, code=2**63 + 1, age=-1),
    node("Person", name="b", town="x", share=-0.0, code=0, age=0),
    node("Person", name="c", share=1.5, age=5),
    node("Person", name="d", town="y", code=5),
    node("Person", name="e"),
    edge("Knows", "a", "b", id="k1"),
    edge("Knows", "a", "c", id="k2"),
    edge("Knows", "b", "a", id="k3"),
    edge("Knows", "c", "a", id="k4"),
    edge("Knows", "c", "b", id="k5"),
    edge("Knows", "d", "a", id="k6"),
)


@pytest.fixture(scope="module", params=["csr", "indexed"])
def people(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", request.param)
        with new_graph(tmp_path_factory.mktemp("equal") / "graph", SCHEMA, *RECORDS) as graph:
            yield graph


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("$a.town = $b.town", ["aa", "ab", "ba", "bb", "dd"]),
        ("$a.share = $b.share", ["aa", "ab", "ba", "bb", "cc"]),
        ("$a.code = $b.age", ["bb", "dc"]),
        ("$a.code > $b.age", ["aa", "ab", "ac", "ba", "da", "db"]),
        ("$a.age < $b.code", ["aa", "ab", "ad", "ba", "bd", "ca"]),
        ("$a.town = $b.town $a.share = $b.share", ["aa", "ab", "ba", "bb"]),
    ],
)
def test_null_equals_nothing_and_numbers_compare_by_value(
    people: Graph, condition: str, expected: list[str]
) -> None:
    found = values(ask(people, f"$a: Person $b: Person {condition}", "return { $a.name, $b.name }"))

    assert sorted(f"{left}{right}" for left, right in found) == expected


@pytest.mark.parametrize(
    ("match", "tail", "expected"),
    [
        ("$a: Person", "$a.share, count($a) as n", [(None, 2), (0.0, 2), (1.5, 1)]),
        ("$a: Person", "$a.town, count($a) as n", [(None, 2), ("x", 2), ("y", 1)]),
        ("$a $k:knows $b", "$a.town, count($k) as n", [(None, 2), ("x", 3), ("y", 1)]),
        ("$a knows $b", "$a.town, count($b) as n", [(None, 2), ("x", 3), ("y", 1)]),
        ("$a knows $b $b knows $c", "$a.town, count($c) as n", [(None, 3), ("x", 5), ("y", 2)]),
        ("$a knows $b", "$a.town, avg($a.share) as n", [(None, 1.5), ("x", 0.0), ("y", None)]),
        ("$a knows $b", "$a.town, sum($a.age) as n", [(None, 10.0), ("x", -2.0), ("y", None)]),
        (
            "$a: Person",
            "$a.town, min($a.age) as l, max($a.age) as g",
            [(None, 5, 5), ("x", -1, 0), ("y", None, None)],
        ),
    ],
)
def test_groups(people: Graph, match: str, tail: str, expected: list[object]) -> None:
    found = values(ask(people, match, f"return {{ {tail} }}"))

    assert sorted(found, key=str) == sorted(expected, key=str)


def test_a_sum_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    """One after the other, each of the small values would vanish beside the large one."""
    large, small = 2.0**60, [1.0] * 300
    totals = []
    with new_graph(tmp_path / "graph", SCHEMA) as graph:
        for order in ([large, *small, -large], [*small, large, -large], [large, -large, *small]):
            people = [node("Person", name=f"p{at:03}", share=value) for at, value in enumerate(order)]
            graph.load(ndjson(people), "overwrite", index=False)
            totals += values(ask(graph, "$p: Person", "return { sum($p.share) as n }"))

    assert totals == [300.0] * 3


def test_rows_of_equal_keys_come_by_id(tmp_path: Path) -> None:
    people = [node("Person", name=name, town="x") for name in ("d", "b", "e", "a", "c")]
    with new_graph(tmp_path / "graph", SCHEMA, *people) as graph:
        found = values(ask(graph, "$p: Person", "return { $p.name } order { $p.town } limit 3"))

    assert found == ["a", "b", "c"]


def test_integers_of_two_types_compare_exactly(tmp_path: Path) -> None:
    """As floats they would be one number."""
    people = [node("Person", name="p", age=2**53 + 1), node("Person", name="q", code=2**53)]
    with new_graph(tmp_path / "graph", SCHEMA, *people) as graph:
        found = {
            operator: values(
                ask(graph, f"$a: Person $b: Person $a.age {operator} $b.code", "return { $a.name, $b.name }")
            )
            for operator in ("=", ">", "<=")
        }

    assert found == {"=": [], ">": [("p", "q")], "<=": []}
