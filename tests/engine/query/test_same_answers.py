"""The answer is a function of the snapshot: not of caches, indexes, fragments, or who asked before."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.operations.upkeep import tend
from tests.support.engine import edge, ndjson, node, reopen
from tests.support.people_graph import people_graph
from tests.support.queries import mutation, read
from tests.support.seam import internals

QUERIES = [
    read("$p: Person", "return { $p }"),
    read("$p: Person", "return { $p.town, sum($p.share) as s, count($p) as n }"),
    read("$a knows{1,3} $b", "return { $a.name, $b.name }"),
    read("$a $k:knows $b", "return { $k, $b.age } order { $b.age desc } limit 7"),
    read("$a knows $b $b.age > 1 not { $b knows $a }", "return { $a.name, $b.name }"),
    read("$a <knows> $b $b <knows> $c $c <knows> $a", "return { $a.name, $b.name, $c.name }"),
    read("$a: Person $b: Person $a.age = $b.age", "return { $a.name, count($b) as n } order { n }"),
    read("$p: Person $p.share >= 0.2", "return { $p.name } limit 3"),
]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Graph]:
    with people_graph(tmp_path / "people") as graph:
        grow(graph)
        yield graph


def grow(graph: Graph) -> None:
    """Add fragments without indexes, and change and remove rows of the older ones."""
    graph.ensure_indices()
    records = [node("Person", name=f"p{number}", age=number % 3, share=number / 7) for number in range(20)]
    records += [edge("Knows", f"p{number}", f"p{number * 7 % 20}") for number in range(20)]
    graph.load(ndjson(records), "append", index=False)
    for name, age in (("a", 5), ("p3", 2), ("e", 1)):
        text = mutation("update Person set { age: $n } where name = $p", "$n: I64, $p: String")
        graph.mutate(text, params={"n": age, "p": name})
    graph.mutate(mutation('delete Person where name = "p4"'))


def answers(graph: Graph) -> list[bytes]:
    """Return every answer as the bytes of an Arrow stream."""
    return [_bytes(graph.query(text).to_arrow()) for text in QUERIES]


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def test_the_same_bytes_twice_and_from_a_cold_handle(people: Graph) -> None:
    first = answers(people)

    assert answers(people) == first
    with reopen(people) as cold:
        assert answers(cold) == first


def test_the_same_bytes_with_hops_through_indexes(people: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(people)

    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "indexed")
    with reopen(people) as indexed:
        assert answers(indexed) == first


def test_the_same_bytes_before_and_after_compaction(people: Graph) -> None:
    first, then = answers(people), people.snapshot()

    for entry in then.entries.values():
        tend(internals(people), "main", entry)

    assert people.snapshot().entries != then.entries
    assert answers(people) == first
    with reopen(people) as cold:
        assert answers(cold) == first
    view = people.at(then)
    assert [_bytes(view.query(text).to_arrow()) for text in QUERIES] == first


def test_a_warm_handle_answers_like_a_cold_one_after_each_write(people: Graph) -> None:
    writes = [
        'insert Person { name: "new", age: 2 }',
        'insert Knows { from: "new", to: "a" }',
        'insert Knows { from: "a", to: "new", since: 4 }',
        'update Person set { share: 0.25 } where name = "new"',
        'delete Knows where from = "a"',
        'delete Person where name = "b"',
        'insert Person { name: "b", age: 1 }',
    ]
    for write in writes:
        people.mutate(mutation(write))
        with reopen(people) as cold:
            assert answers(people) == answers(cold), write


def test_a_write_brings_forward_what_queries_use_and_the_next_query_finds_it(people: Graph) -> None:
    text = read("$a knows $b", "return { $a.name, $b.age }")
    for _ in range(40):
        people.query(text)
    reading = internals(people).reading

    for write in (
        'insert Knows { from: "a", to: "d" }',
        'update Person set { age: 77 } where name = "d"',
        'delete Knows where from = "b"',
    ):
        people.mutate(mutation(write))
        brought = reading.derived.counts
        people.query(text)
        assert reading.derived.counts == brought, write
    assert {"a.name": "a", "b.age": 77} in people.query(text).rows


def test_writes_that_nobody_reads_bring_nothing_forward(people: Graph) -> None:
    people.query(read("$a knows $b", "return { count($b) as n }"))
    reading = internals(people).reading

    people.mutate(mutation('insert Knows { from: "a", to: "d" }'))
    after_first = reading.derived.counts
    for _ in range(3):
        people.mutate(mutation('insert Knows { from: "a", to: "d" }'))

    assert reading.derived.counts == after_first
