"""A graph of persons in an object store, for tests that count what is asked of it."""

import json

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init

SCHEMA = """\
node Person { handle: String @key  age: I64? }
edge Knows: Person -> Person
node Filler { name: String @key }
"""
INSERT = "query m($h: String) { insert Person { handle: $h } }"
PAIR = 'query m($h: String) { insert Person { handle: $h } insert Knows { from: $h, to: "first" } }'
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"


def with_one_commit(uri: str) -> None:
    """Make a graph with one commit."""
    with init(uri, SCHEMA) as graph:
        insert(graph, "ann")


def insert(graph: Graph, handle: str) -> None:
    """Insert one person."""
    graph.mutate(INSERT, params={"h": handle})


def persons(graph: Graph) -> int:
    """Return how many persons a query finds."""
    number = graph.query(COUNT).rows[0]["n"]
    assert isinstance(number, int)
    return number


def people(*handles: str) -> bytes:
    """Return persons as lines of a load."""
    return "\n".join(json.dumps({"type": "Person", "data": {"handle": h}}) for h in handles).encode()
