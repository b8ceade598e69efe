"""A small graph of persons with everything that makes traversals hard, and its contents."""

from pathlib import Path

from omnigraph.graph.graph import Graph
from tests.support.engine import edge, new_graph, node

SCHEMA = """\
node Person { name: String @key  age: I64?  share: F64?  town: String? }
node Empty  { name: String @key  size: I32? }
edge Knows: Person -> Person { since: I32? }
edge Holds: Person -> Empty
"""

# a -> b twice, b -> a, c with two loops, d -> a, e alone.
RECORDS = (
    node("Person", name="a", age=1, share=0.1, town="x"),
    node("Person", name="b", age=2, share=0.2, town="x"),
    node("Person", name="c", age=2, share=None, town=None),
    node("Person", name="d", age=None, share=0.3, town="y"),
    node("Person", name="e", age=9007199254740993, share=-0.5, town="y"),
    edge("Knows", "a", "b", id="k1", since=1),
    edge("Knows", "a", "b", id="k2", since=2),
    edge("Knows", "b", "a", id="k3", since=3),
    edge("Knows", "c", "c", id="k4", since=None),
    edge("Knows", "c", "c", id="k5", since=5),
    edge("Knows", "d", "a", id="k6", since=6),
)


def people_graph(root: Path) -> Graph:
    """Return a new graph with these persons; without indexes."""
    return new_graph(root, SCHEMA, *RECORDS)
