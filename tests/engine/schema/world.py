"""A graph whose schema is about to change, and what tests look at before and after.

`files_of` and `row_marks` say what storage holds of a table: a change that touches no row leaves both as they
were.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.graph.graph import Graph
from omnigraph.history.state import Snapshot
from tests.support.engine import edge, new_graph, node
from tests.support.seam import internals

TEAM = """\
node Person {
    name: String @key
    age: I32?
    nick: String? @index
    mood: enum(calm, glad)?
    score: F32?
    note: String
}
node Company { name: String @key  city: String? }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Company
"""
RECORDS = (
    node("Person", name="ann", age=30, nick="a", mood="calm", score=1.5, note="x"),
    node("Person", name="bob", age=40, note="y"),
    node("Company", name="acme", city="Bonn"),
    edge("Knows", "ann", "bob", since=2001),
    edge("WorksAt", "ann", "acme"),
)
PEOPLE = {
    "ann": {
        "id": "ann",
        "name": "ann",
        "age": 30,
        "nick": "a",
        "mood": "calm",
        "score": 1.5,
        "note": "x",
    },
    "bob": {
        "id": "bob",
        "name": "bob",
        "age": 40,
        "nick": None,
        "mood": None,
        "score": None,
        "note": "y",
    },
}
EMAIL = TEAM.replace("    note: String\n", "    note: String\n    email: String?\n")


def replaced(old: str, new: str, schema: str = TEAM) -> str:
    """Return the schema with a part rewritten."""
    assert schema.count(old) == 1, f"{old} is not there once"
    return schema.replace(old, new)


def team(root: Path, schema: str = TEAM) -> Graph:
    """Return a graph with a few rows and no index."""
    return new_graph(root, schema, *RECORDS)


def data_files(graph: Graph) -> dict[str, bytes]:
    """Return the files of tables that hold rows, deletions or indexes, with their bytes."""
    root = Path(graph.uri)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("nodes", "edges")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and path.parts[-2] not in {"_versions", "_transactions"}
    }


def row_marks(graph: Graph, table_key: str, branch: str | None = None) -> dict[str, dict[str, Any]]:
    """Return what storage says of each row: its stable id, and when it was made and changed."""
    parts = internals(graph).parts
    handle = parts.open(graph.snapshot(branch).entry(table_key))
    wanted = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = handle._dataset.scanner(columns=wanted).to_table().to_pylist()
    return {row.pop("id"): row for row in rows}


def field_ids(graph: Graph, table_key: str, branch: str | None = None) -> dict[str, int]:
    """Return the number that storage knows each column of a table by."""
    parts = internals(graph).parts
    schema = parts.open(graph.snapshot(branch).entry(table_key))._dataset.lance_schema
    return {field.name(): field.id() for field in schema.fields()}


def snapshot_at(graph: Graph, version: int) -> Snapshot:
    """Return what main showed at a version of its manifest."""
    return internals(graph).state().snapshot_at(version)


def coverage(graph: Graph, table_key: str, branch: str | None = None) -> dict[str, str]:
    """Return how much of a table each declared index covers, by property and kind."""
    (found,) = [table for table in graph.index_status(branch=branch) if table.table_key == table_key]
    return {f"{index.property}:{index.kind}": index.coverage for index in found.indexes}


@dataclass(frozen=True, slots=True)
class Pins:
    """Which version of its table each type shows, by lifetime: names may change."""

    versions: Mapping[str, int]

    @staticmethod
    def of(graph: Graph, branch: str | None = None) -> "Pins":
        """Return the pins of a branch."""
        entries = graph.snapshot(branch).entries.values()
        return Pins({entry.location: entry.version for entry in entries})

    def moved(self, before: "Pins") -> dict[str, int]:
        """Return by how much the tables moved that were there before and are still there."""
        both = self.versions.keys() & before.versions.keys()
        steps = {key: self.versions[key] - before.versions[key] for key in both}
        return {key: step for key, step in steps.items() if step}
