"""Traversals of several hops from many starts at once, which advance together."""

from collections.abc import Iterator

import pytest

from omnigraph.exec.operators.reach import PAIRS_STARTS_MIN
from omnigraph.graph.graph import Graph
from tests.support.engine import edge, new_graph, node
from tests.support.reading import ask, values

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person\n"
RINGS = [[f"r{ring}{place}" for place in range(4)] for ring in range(8)]
assert len(RINGS) * 4 >= PAIRS_STARTS_MIN


@pytest.fixture(scope="module", params=["csr", "indexed"])
def rings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Eight rings of four; in the first, one person knows itself."""
    people = [node("Person", name=name) for ring in RINGS for name in ring]
    knows = [edge("Knows", ring[at - 1], ring[at]) for ring in RINGS for at in range(4)]
    loop = edge("Knows", RINGS[0][0], RINGS[0][0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", request.param)
        with new_graph(tmp_path_factory.mktemp("rings") / "graph", SCHEMA, *people, *knows, loop) as graph:
            yield graph


@pytest.mark.parametrize(
    ("low", "high", "steps"),
    [(1, 1, [1]), (1, 2, [1, 2]), (2, 3, [2, 3]), (1, 9, [1, 2, 3]), (3, 9, [3])],
)
def test_every_node_is_reported_once_at_its_first_distance(
    rings: Graph, low: int, high: int, steps: list[int]
) -> None:
    expected = [(ring[at], ring[(at + step) % 4]) for ring in RINGS for at in range(4) for step in steps]
    to_loop = {RINGS[0][0]: 0, RINGS[0][3]: 1, RINGS[0][2]: 2, RINGS[0][1]: 3}
    expected += [
        (start, RINGS[0][0])
        for start, distance in to_loop.items()
        if low <= distance + 1 <= high and distance not in steps
    ]

    found = values(ask(rings, f"$a knows{{{low},{high}}} $b", "return { $a.name, $b.name }"))

    assert sorted(found) == sorted(expected)
