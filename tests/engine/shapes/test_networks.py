"""Graphs of networkx, out and in."""

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import networkx  # type: ignore[import-untyped] # it has no stubs
import pytest

import omnigraph
from omnigraph import BadRequest, Graph
from tests.engine.shapes.conftest import TOWN

SEED = 7
SEEN = datetime(2024, 5, 1, 13, 45, 12, 345_000, tzinfo=UTC)


def random_town(
    seed: int,
) -> tuple[list[dict[str, object]], list[dict[str, object]], list[dict[str, object]]]:
    """Return persons, notes and edges: loops, several edges between two, isolated nodes, missing values."""
    numbers = random.Random(seed)

    def maybe(value: object) -> object:
        return value if numbers.random() < 0.7 else None

    people = [
        {
            "name": f"p{n}",
            "age": maybe(numbers.randrange(-(2**62), 2**62)),
            "share": maybe(numbers.random()),
            "born": maybe(date(2000, 1, 1) + timedelta(days=n)),
            "seen": maybe(SEEN + timedelta(hours=n)),
            "mood": maybe("glad"),
            "tags": maybe([f"t{n}", ""]),
            "place": maybe([n, -0.5]),
            "photo": maybe(bytes([n])),
            "town": maybe("A"),
        }
        for n in range(numbers.randrange(1, 12))
    ]
    names = [str(person["name"]) for person in people]
    edges: list[dict[str, object]] = [
        {"from": numbers.choice(names), "to": numbers.choice(names), "since": maybe(n)}
        for n in range(numbers.randrange(25))
    ]
    return people, [{"text": "n", "kept": maybe(True)} for _ in range(2)], edges


@pytest.mark.case("surfaces", 665)
def test_a_graph_goes_out_and_comes_back_equal(tmp_path: Path) -> None:
    other = omnigraph.init(tmp_path / "other.omni", TOWN, durability="process")
    graph = omnigraph.init(tmp_path / "g.omni", TOWN, durability="process")
    for seed in range(SEED, SEED + 3):
        people, notes, edges = random_town(seed)
        graph.load({"Person": people, "Note": notes, "Knows": edges}, "overwrite", index=False)
        out = graph.to_networkx()

        # A type without entities is not in a network, so nothing replaces it.
        other.load({"Person": [], "Note": [], "Knows": []}, "overwrite", index=False)
        other.load_networkx(out, "append", index=False)

        assert type(out) is networkx.MultiDiGraph
        assert (out.number_of_nodes(), out.number_of_edges()) == (len(people) + 2, len(edges)), seed
        again = other.to_networkx()
        assert dict(again.nodes(data=True)) == dict(out.nodes(data=True)), seed
        assert sorted(again.edges(keys=True, data=True), key=str) == sorted(
            out.edges(keys=True, data=True), key=str
        ), seed
        for name in ("Person", "Note", "Knows"):
            assert other.table(name) == graph.table(name), seed


@pytest.mark.case("surfaces", 666)
def test_nodes_edges_and_attributes_have_the_types_of_python(town: Graph) -> None:
    people = [{"name": "a", "seen": SEEN, "age": 2**60, "town": None}, {"name": "b"}]
    town.load(
        {"Person": people, "Note": [{"text": "t"}], "Knows": [{"from": "a", "to": "b", "since": 4}]}, "append"
    )
    commit = town.commits()[0].graph_commit_id

    out = town.to_networkx()
    only = town.to_networkx(types=["Knows"])

    assert out.graph == {"branch": "main", "commit_id": commit}
    assert out.nodes["Person", "a"] == {"name": "a", "seen": SEEN, "age": 2**60, "town": None}
    assert out.nodes["Person", "b"] == {"name": "b", "town": "Ruhr"}
    ((source, target, key, attributes),) = out.edges(keys=True, data=True)
    assert (source, target, key[0], attributes) == (("Person", "a"), ("Person", "b"), "Knows", {"since": 4})
    assert networkx.shortest_path(out, ("Person", "a"), ("Person", "b")) == [("Person", "a"), ("Person", "b")]
    assert set(only.nodes) == {("Person", "a"), ("Person", "b")}
    assert only.number_of_edges() == 1
    town.load({"Person": [{"name": "c"}]}, "append", index=False)
    assert town.to_networkx(snapshot=commit).number_of_nodes() == 3


@pytest.mark.case("surfaces", 667)
def test_any_network_can_be_loaded(town: Graph, tmp_path: Path) -> None:
    club: Any = networkx.karate_club_graph()
    for node in club:
        club.nodes[node].clear()
    for _, _, attributes in club.edges(data=True):
        attributes["since"] = attributes.pop("weight")
    numbered = omnigraph.init(
        tmp_path / "n.omni", "node M { n: I64 @key }\nedge K: M -> M { since: I32? }", durability="process"
    )

    for graph, node_type, edge_type in ((town, "Person", "Knows"), (numbered, "M", "K")):
        graph.load_networkx(club, "append", node_type=node_type, edge_type=edge_type, index=False)
        back = networkx.Graph(graph.to_networkx())
        renamed = {(node_type, str(node)): node for node in club}
        assert networkx.is_isomorphic(networkx.relabel_nodes(back, renamed), club)
        assert {*networkx.relabel_nodes(back, renamed)} == {*club}


@pytest.mark.case("surfaces", 667)
def test_what_has_no_type_or_no_value_is_named(town: Graph) -> None:
    keyed: Any = networkx.MultiDiGraph([(("Person", "a"), ("Person", "b"), ("Nope", "1"))])
    untyped: Any = networkx.DiGraph([(("Person", "a"), ("Person", "b"))])
    naive: Any = networkx.DiGraph()
    naive.add_node(("Person", "a"), seen=SEEN.replace(tzinfo=None))
    refused: list[tuple[object, dict[str, str], str]] = [
        ([1], {}, "expected a graph of networkx, not a list of int"),
        (networkx.path_graph(2), {}, "node 0: a node is a .type, id., or say node_type="),
        (networkx.path_graph(2), {"node_type": "Persn"}, "unknown node type 'Persn'"),
        (
            networkx.path_graph(2),
            {"node_type": "Person"},
            "edge 0 → 1: its key is no .type, id., so say edge_type=",
        ),
        (untyped, {"edge_type": "Nope"}, "unknown edge type 'Nope'"),
        (keyed, {}, "unknown edge type 'Nope'"),
        (naive, {}, "network:1: Person.seen: .* has no time zone"),
        (
            networkx.DiGraph([(1.5, 2)]),
            {"node_type": "Person"},
            "the id of a node is a text or a whole number",
        ),
    ]

    for network, types, said in refused:
        with pytest.raises(BadRequest, match=said):
            town.load_networkx(network, "append", **types)  # type: ignore[arg-type] # of two options, by name
    assert town.table("Person").num_rows == 0
