"""A small graph for merges, and short ways to change it on either side."""

import json
from collections.abc import Iterable
from pathlib import Path

from omnigraph.core.merge_conflict import MergeConflict
from omnigraph.graph.graph import Graph
from omnigraph.graph.opening import init

SCHEMA = """\
node Person {
    name: String @key
    age: I64?
    email: String? @unique
    tags: [String]?
    mood: enum(calm, cross)?
    face: Vector(2)?
    photo: Blob?
    @range(age, 0..200)
}
node Team { name: String @key  city: String?  floor: I64?  @unique(city, floor) }
edge Knows:  Person -> Person { since: I64? }
edge Joined: Person -> Team @card(0..2)
edge Leads:  Person -> Team @card(1..)
"""
PEOPLE = ("ann", "bob", "cid", "dan")


def node(type_name: str, **data: object) -> dict[str, object]:
    """Return the record of a node."""
    return {"type": type_name, "data": data}


def edge(type_name: str, source: str, target: str, **data: object) -> dict[str, object]:
    """Return the record of an edge; `id` is one of its properties."""
    return {"edge": type_name, "from": source, "to": target, "data": data}


def new_world(root: Path) -> Graph:
    """Create the graph: four people, two teams, an edge of each kind."""
    graph = init(root, SCHEMA, durability="process")
    put(
        graph,
        None,
        *(node("Person", name=name, age=30) for name in PEOPLE),
        node("Team", name="red", city="Bonn", floor=1),
        node("Team", name="blue", city="Bonn", floor=2),
        edge("Knows", "ann", "bob", id="k1", since=2001),
        edge("Knows", "cid", "dan", id="k2", since=2002),
        edge("Joined", "ann", "red", id="j1"),
        edge("Leads", "dan", "red", id="l1"),
    )
    graph.create_branch("june")
    return graph


def put(graph: Graph, branch: str | None, *records: dict[str, object]) -> None:
    """Load records, new ones or replacements, as one commit."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    graph.load(text.encode(), "merge", branch=branch, index=False)


def run(graph: Graph, branch: str | None, statements: str) -> None:
    """Run statements as one mutation."""
    graph.mutate(f"query change() {{ {statements} }}", branch=branch)


def set_age(graph: Graph, branch: str | None, name: str, age: int) -> None:
    """Change one person."""
    run(graph, branch, f'update Person set {{ age: {age} }} where name = "{name}"')


def remove(graph: Graph, branch: str | None, type_name: str, row_id: str) -> None:
    """Delete one node, with its edges."""
    run(graph, branch, f'delete {type_name} where name = "{row_id}"')


def rows(graph: Graph, type_name: str, branch: str | None = None) -> dict[str, dict[str, object]]:
    """Return all rows of a type by id."""
    return {str(row["id"]): row for row in graph.table(type_name, branch=branch).to_pylist()}


def ages(graph: Graph, branch: str | None = None) -> dict[str, object]:
    """Return everybody's age."""
    return {name: row["age"] for name, row in rows(graph, "Person", branch).items()}


def kinds(conflicts: Iterable[MergeConflict]) -> list[tuple[str, str | None, str]]:
    """Return conflicts without their words."""
    return [(conflict.table_key, conflict.row_id, conflict.kind.value) for conflict in conflicts]


def pins(graph: Graph, branch: str | None = None) -> dict[str, tuple[int, str | None]]:
    """Return where every table of a branch is pinned."""
    return {key: (entry.version, entry.owner) for key, entry in graph.snapshot(branch).entries.items()}
