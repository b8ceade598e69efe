"""Edges without one of their nodes, which no write leaves and a damaged graph may have: no hop takes them."""

from collections.abc import Iterator

import pytest

from omnigraph.graph.graph import Graph
from tests.engine.dense.unchecked import publish_delete
from tests.support.people_graph import people_graph
from tests.support.reading import ask, values


@pytest.fixture(scope="module", params=["csr", "indexed"])
def torn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """The persons after `b` went without its edges: a -> b twice, b -> a."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", request.param)
        with people_graph(tmp_path_factory.mktemp("torn") / "graph") as graph:
            publish_delete(graph, "node:Person", ["b"])
            yield graph


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("$a knows $b", [("c", "c"), ("d", "a")]),
        ("$a $k:knows $b", [("c", "c"), ("c", "c"), ("d", "a")]),
        ("$a <knows> $b", [("a", "d"), ("c", "c"), ("d", "a")]),
        ("$a knows{1,3} $b", [("c", "c"), ("d", "a")]),
        ('$b: Person $b.name = "a" $a knows $b', [("d", "a")]),
        ("$a: Person $b: Person $a knows $b", [("c", "c"), ("d", "a")]),
        ('$a: Person { name: "a" } $a knows $b', []),
        ('$a: Person { name: "a" } $b: Person not { $a knows $_ }', [("a", n) for n in "acde"]),
    ],
)
def test_a_hop_needs_both_its_nodes(torn: Graph, match: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(values(ask(torn, match, "return { $a.name, $b.name }"))) == expected


def test_a_hop_that_is_none_is_not_counted(torn: Graph) -> None:
    assert values(ask(torn, "$a $k:knows $b", "return { count($k) as n }")) == [3]
