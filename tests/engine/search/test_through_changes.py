"""Searches of a table that is loaded, indexed, replaced, reshaped and merged: the same answers each time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.graph.graph import Graph
from tests.support.engine import ndjson, new_graph, node
from tests.support.queries import mutation
from tests.support.seam import internals

DOCS = """\
node Doc {
    code: String @key
    text: String? @index
    place: Vector(2)? @index
    secret: String?
}
"""
RESHAPED = DOCS.replace("    secret: String?\n", "    size: I32 @default(3)\n")
PLAIN = DOCS.replace("    secret: String?\n", "")
WORDS = ("river", "rivers", "machine", "quiet song", "glass", "naïve café", "the of")
SEARCHES = {
    "match": 'query q() { match { $d: Doc search($d.text, "machines RIVER") } return { $d.code } }',
    **{
        f"fuzzy {edits}": f'query q() {{ match {{ $d: Doc fuzzy($d.text, "rivar glass", {edits}) }} '
        "return { $d.code } }"
        for edits in range(4)
    },
    "near": "query q() { match { $d: Doc } return { $d.code, nearest($d.place, [2.0, 1.0]) as score } "
    "order { nearest($d.place, [2.0, 1.0]) } limit 9 }",
    "bm25": 'query q() { match { $d: Doc } return { $d.code, bm25($d.text, "river song") as score } '
    'order { bm25($d.text, "river song") } }',
}
Answers = dict[str, list[tuple[str, float | None]]]


def documents(first: int, last: int) -> bytes:
    return ndjson([document(number) for number in range(first, last)])


def document(number: int) -> dict[str, object]:
    text = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 2 + number % 4))
    place = None if number % 5 == 0 else [number % 4, number % 3]
    return node("Doc", code=f"d{number:02d}", text=text, place=place)


def merge_a_branch(graph: Graph) -> None:
    graph.create_branch("june")
    graph.load(documents(60, 70), "append", index=False, branch="june")
    graph.mutate(mutation('update Doc set { text: "a quiet river" } where code = "d41"'), branch="june")
    graph.mutate(mutation('delete Doc where code = "d42"'), branch="june")
    graph.load(documents(70, 72), "append", index=False)
    graph.merge("june")


# What happens to the table, and what its text index covers then.
STEPS: dict[str, tuple[Callable[[Graph], object], str]] = {
    "no index": (lambda graph: graph.load(documents(0, 30), "append", index=False), "missing"),
    "fully covered": (lambda graph: graph.ensure_indices(), "indexed"),
    "partly covered": (lambda graph: graph.load(documents(30, 40), "append", index=False), "degraded"),
    "overwritten": (lambda graph: graph.load(documents(30, 60), "overwrite", index=False), "missing"),
    "indexed again": (lambda graph: graph.ensure_indices(), "indexed"),
    "reshaped": (lambda graph: graph.apply_schema(RESHAPED, allow_data_loss=True, index=False), "degraded"),
    "merged": (merge_a_branch, "degraded"),
    "optimized": (lambda graph: graph.optimize(), "indexed"),
}


def answers(graph: Graph) -> Answers:
    found: Answers = {}
    for name, text in SEARCHES.items():
        rows: list[dict[str, Any]] = graph.query(text).to_pylist()
        told = [(row["d.code"], row.get("score")) for row in rows]
        found[name] = told if name in {"near", "bm25"} else sorted(told)
    return found


def copied(graph: Graph, plain: Graph) -> None:
    """Give the same rows to a graph that never has an index."""
    kept = ("code", "text", "place")
    rows: list[dict[str, Any]] = list(graph.export())
    records = [node("Doc", **{name: row["data"].get(name) for name in kept}) for row in rows]
    plain.load(ndjson(records), "overwrite", index=False)


def coverage(graph: Graph) -> str:
    """Return how much of the texts the index covers."""
    (table,) = graph.index_status()
    return next(index.coverage for index in table.indexes if index.property == "text")


@pytest.mark.case("engine", 303)
def test_every_state_of_a_table_gives_the_same_answers(tmp_path: Path) -> None:
    graph, plain = new_graph(tmp_path / "graph", DOCS), new_graph(tmp_path / "plain", PLAIN)
    internals(graph).parts.store.analyses.small_rows = 0  # whatever has an index is asked
    for step, (take, covered) in STEPS.items():
        take(graph)

        found = answers(graph)

        copied(graph, plain)
        expected = answers(plain)
        assert (coverage(graph), coverage(plain)) == (covered, "missing"), step
        for name in SEARCHES:
            codes = [code for code, _ in expected[name]]
            assert codes, f"{name} has nothing to find after '{step}'"
            if name == "bm25" and covered == "degraded":  # words are counted as of the index
                assert sorted(code for code, _ in found[name]) == sorted(codes), step
                continue
            assert [code for code, _ in found[name]] == codes, (step, name)
            if name in {"near", "bm25"}:
                scores = [score for _, score in expected[name]]
                assert [score for _, score in found[name]] == pytest.approx(scores, rel=1e-5), (step, name)
