"""A process that writes to a graph all the time: on main, and on branches that it makes and merges."""

from itertools import count
from pathlib import Path

import omnigraph
from omnigraph.graph.graph import Graph

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"
INSERT = "query q($n: String) { insert Person { name: $n } }"
PAIR = "query q($n: String, $m: String) { insert Person { name: $n } insert Knows { from: $n, to: $m } }"


def write_forever(root: Path) -> None:
    """Write until a file says stop; say each round."""
    with omnigraph.open(root, durability="process") as graph:
        for number in count(1):
            one_round(graph, number)
            print(number, flush=True)  # noqa: T201 - the test reads it
            if (root.parent / "stop").exists():
                return


def one_round(graph: Graph, number: int) -> None:
    """Make a branch, write to it and to main, merge it, and delete the one before the last."""
    name = f"round-{number}"
    graph.create_branch(name)
    graph.mutate(PAIR, params={"n": f"{name} on main", "m": "first"})
    graph.mutate(PAIR, params={"n": f"{name} on its own", "m": "first"}, branch=name)
    graph.merge(name, "main")
    graph.mutate(INSERT, params={"n": f"{name} later"}, branch=name)
    graph.create_branch(f"from-{number}", from_=name)
    graph.merge("main", f"from-{number}")
    if number > 2:
        graph.delete_branch(f"from-{number - 2}")
        graph.delete_branch(f"round-{number - 2}")
