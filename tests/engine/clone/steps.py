"""What tests of copies do to graphs, and what they see of them."""

from pathlib import Path
from typing import Any

from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import open as open_graph
from tests.support.engine import edge, node

SCHEMA = """\
node Person { name: String @key  age: I32?  bio: String? @index }
edge Knows: Person -> Person
"""
PERSONS = [node("Person", name=f"p{n}", age=n, bio=f"number {n}") for n in range(12)]
EDGES = [edge("Knows", f"p{n}", f"p{n + 1}", id=f"k{n}") for n in range(11)]

INSERT = "query q($n: String) { insert Person { name: $n, age: 1 } }"
UPDATE = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
DELETE = "query q($n: String) { delete Person where name = $n }"
EVERYBODY = "query q() { match { $a: Person } return { $a.name, $a.age } }"


def shown(graph: Graph) -> dict[str, Any]:
    """Return what every branch shows, now and at each of its commits."""
    return {branch: history(graph, branch) for branch in graph.branches()}


def history(graph: Graph, branch: str) -> list[tuple[str, list[str]]]:
    """Return the commits of a branch, newest first, each with the persons that it shows."""
    commits = [commit.graph_commit_id for commit in graph.commits(branch=branch)]
    return [(commit, persons(graph, commit)) for commit in commits]


def persons(graph: Graph, commit: str) -> list[str]:
    """Return the persons at a commit, with their ages."""
    return sorted(f"{row['a.name']}:{row['a.age']}" for row in graph.query(EVERYBODY, snapshot=commit))


def shown_at(place: Path | str) -> dict[str, Any]:
    """Return the same of a graph at a place, opened to be read."""
    with open_graph(place, mode="ro") as graph:
        return shown(graph)
