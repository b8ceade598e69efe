"""`explain` names the indexes that a plan can use, and what they cover."""

from pathlib import Path
from typing import Any

import pytest

from omnigraph.graph.graph import Graph
from tests.support.engine import edge, ndjson, new_graph, node
from tests.support.queries import mutation

SCHEMA = """\
node Doc {
    code:  String @key
    mail:  String? @unique
    text:  String? @index
    rank:  I32? @index
    note:  String?
    place: Vector(2)? @index
}
node Slot { room: String  number: I32  @key(room, number) }
edge Cites: Doc -> Doc
"""
READS = {
    "by key": ('$d: Doc $d.code = "a"', "", {("node:Doc", "id", "btree")}),
    "by keys": ('$d: Doc ["a", "b"] contains $d.code', "", {("node:Doc", "id", "btree")}),
    "by a unique property": ('$d: Doc $d.mail = "x"', "", {("node:Doc", "mail", "btree")}),
    "by a range": ("$d: Doc 3 < $d.rank", "", {("node:Doc", "rank", "btree")}),
    "by words": ('$d: Doc search($d.text, "w")', "", {("node:Doc", "text", "fulltext")}),
    "by a part of a text": ('$d: Doc $d.mail contains "x"', "", set()),
    "by what has no index": ('$d: Doc $d.note = "x"', "", set()),
    "by what differs": ('$d: Doc $d.mail != "x"', "", set()),
    "by distance": (
        "$d: Doc",
        " order { nearest($d.place, [1.0, 2.0]) } limit 2",
        {("node:Doc", "place", "vector")},
    ),
    "by both rankings": (
        "$d: Doc",
        ' order { rrf(nearest($d.place, [1.0, 2.0]), bm25($d.text, "w")) } limit 2',
        {("node:Doc", "place", "vector"), ("node:Doc", "text", "fulltext")},
    ),
    "over an edge": ("$d: Doc $d cites $e", "", {("edge:Cites", "src", "btree")}),
    "against an edge": (
        '$d: Doc $d.code = "a" $e cites $d',
        "",
        {("edge:Cites", "dst", "btree"), ("node:Doc", "id", "btree")},
    ),
    "inside of a negation": ("$d: Doc not { $d cites $_ }", "", {("edge:Cites", "src", "btree")}),
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with all kinds of indexes, covering everything."""
    graph = new_graph(tmp_path / "docs", SCHEMA)
    docs = [node("Doc", code=f"d{number}", text="w", rank=number, place=[number, 1]) for number in range(4)]
    graph.load(ndjson([*docs, edge("Cites", "d0", "d1")]), "append")
    return graph


def named(graph: Graph, text: str) -> dict[tuple[str, str, str], str]:
    """Return the indexes of an explanation with what they cover."""
    document = graph.explain(text).to_json()
    found = list(document["indexes"])
    waiting: list[dict[str, Any]] = list(document["pipeline"])
    while waiting:
        operator = waiting.pop()
        found += operator["indexes"]
        waiting += operator.get("inner", [])
    return {(item["table_key"], item["property"], item["kind"]): item["coverage"] for item in found}


@pytest.mark.case("engine", 499)
@pytest.mark.case("surfaces", 254)
@pytest.mark.parametrize("case", READS)
def test_each_operator_names_what_it_can_look_up_in(graph: Graph, case: str) -> None:
    match, tail, expected = READS[case]
    text = f"query q() {{ match {{ {match} }} return {{ $d.code }}{tail} }}"

    assert named(graph, text) == dict.fromkeys(expected, "indexed")
    shown = graph.explain(text).to_text()
    for _, column, kind in expected:
        assert f"index {column} ({kind})\n" in shown


def test_a_key_of_several_properties_is_the_id(graph: Graph) -> None:
    both = 'query q() { match { $s: Slot $s.room = "a" $s.number = 1 } return { $s.room } }'
    one = 'query q() { match { $s: Slot $s.room = "a" } return { $s.room } }'

    assert ("node:Slot", "id", "btree") in named(graph, both)
    assert ("node:Slot", "id", "btree") not in named(graph, one)


@pytest.mark.case("engine", 499)
def test_what_an_index_lacks_is_told_with_it(graph: Graph) -> None:
    text = 'query q() { match { $d: Doc $d.code = "d1" } return { $d.code } }'
    graph.mutate(mutation('update Doc set { rank: 9 } where code = "d1"'))

    assert (
        "index id (btree): 1 of 4 rows not covered: written since it was built\n"
        in graph.explain(text).to_text()
    )

    graph.load(ndjson([node("Doc", code=code) for code in ("d0", "d1")]), "overwrite", index=False)

    (operator,) = graph.explain(text).to_json()["pipeline"]
    assert operator["indexes"] == [
        {
            "table_key": "node:Doc",
            "property": "id",
            "kind": "btree",
            "coverage": "missing",
            "reason": "not built yet",
        }
    ]
