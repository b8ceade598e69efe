"""What tests of branches do and look at."""

from pathlib import Path

from omnigraph.graph.graph import Graph
from omnigraph.history.branches import BRANCHES_DIR
from tests.support.seam import internals

TABLES = ("Person", "Company", "Knows", "WorksAt")


def insert(
    graph: Graph, name: str, branch: str | None = None, age: int = 1, retry: float | None = None
) -> None:
    """Insert a person."""
    source = f'query q() {{ insert Person {{ name: "{name}", age: {age} }} }}'
    graph.mutate(source, branch=branch, retry=retry)


def set_age(graph: Graph, name: str, age: int, branch: str | None = None) -> None:
    """Give a person another age."""
    source = f'query q() {{ update Person set {{ age: {age} }} where name = "{name}" }}'
    assert graph.mutate(source, branch=branch).affected_nodes == 1


def remove(graph: Graph, name: str, branch: str | None = None) -> None:
    """Delete a person, and the edges at it."""
    assert graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch).affected_nodes


def names(graph: Graph, branch: str | None = None) -> list[str]:
    """Return the persons of a branch, read by a query."""
    source = "query q() { match { $p: Person } return { $p.name as name } order { $p.name } }"
    return [str(row["name"]) for row in graph.query(source, branch=branch).rows]


def ages(graph: Graph, branch: str | None = None) -> dict[str, int]:
    """Return the ages of the persons of a branch, read from the table."""
    return {row["name"]: row["age"] for row in graph.table("Person", branch=branch).to_pylist()}


def everything(graph: Graph, branch: str | None = None) -> dict[str, list[dict[str, object]]]:
    """Return all rows of a branch."""
    return {name: graph.table(name, branch=branch).to_pylist() for name in TABLES}


def owners(graph: Graph, branch: str) -> dict[str, str | None]:
    """Return the ref that holds each table of a branch; none is main."""
    return {key: entry.owner for key, entry in graph.snapshot(branch).entries.items()}


def refs(graph: Graph, table_key: str) -> set[str]:
    """Return the refs that a table has on disk."""
    parts = internals(graph).parts
    entry = graph.snapshot().entry(table_key)
    return {ref.name for ref in parts.store.list_refs(parts.address(entry))}


def manifest_refs(graph: Graph) -> set[str]:
    """Return the refs that the manifest has on disk."""
    parts = internals(graph).parts
    return {ref.name for ref in parts.store.list_refs(parts.coordinator.address())}


def control_files(graph: Graph) -> list[str]:
    """Return the names of the control objects."""
    folder = Path(graph.uri) / BRANCHES_DIR
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
