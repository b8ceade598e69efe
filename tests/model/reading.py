"""A graph as the model sees it, and what must hold for every graph whatever it contains."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from omnigraph.graph.graph import Graph
from tests.model.contents import OWN_TABLES, Contents


def read_contents(graph: Graph) -> Contents:
    """Return everything that the newest snapshot holds."""
    own: dict[str, int] = {}
    for table in range(OWN_TABLES):
        own |= {f"{table}/{row['key']}": row["value"] for row in _rows(graph, f"Own{table}")}
    people = _rows(graph, "Person")
    assert all(row["id"] == row["handle"] for row in people)
    notes = [row["body"] for row in _rows(graph, "Note")]
    assert len(set(notes)) == len(notes), "a note twice"
    return Contents(
        people={row["handle"]: (row["age"], row["tag"]) for row in people},
        teams={row["name"]: row["size"] for row in _rows(graph, "Team")},
        notes=frozenset(notes),
        knows=_edges(graph, "Knows"),
        joined=_edges(graph, "Joined"),
        own=own,
    )


def check_whole(graph: Graph) -> list[str]:
    """Check pins, sidecars and history after an open, and return the commit ids, oldest first."""
    parts = graph._graph.parts
    snapshot = graph.snapshot()
    for entry in snapshot.entries.values():
        head = parts.store.latest_version(parts.address(entry))
        assert head == entry.version, f"{entry.table_key}: HEAD {head}, pin {entry.version}"
        counted = parts.store.open_at(parts.address(entry), entry.version).row_count
        assert counted == entry.row_count, f"{entry.table_key}: {counted} rows, pinned {entry.row_count}"
    # `name#<digits>` is a text that was never finished; such files are invisible to the engine.
    left = sorted(path.name for path in Path(graph.uri, "__recovery").glob("*") if "#" not in path.name)
    assert left == [], f"left in __recovery: {left}"
    return check_chain(graph)


def check_chain(graph: Graph) -> list[str]:
    """Check that the commits are one chain from the head to the first, and return their ids, oldest first."""
    commits = graph.commits()
    for child, parent in pairwise(commits):
        assert child.parent_commit_id == parent.graph_commit_id, f"{child} does not follow {parent}"
        assert child.manifest_version > parent.manifest_version
    assert commits[-1].parent_commit_id is None
    assert commits[0] == graph.snapshot().head
    return [commit.graph_commit_id for commit in reversed(commits)]


def _rows(graph: Graph, type_name: str) -> list[dict[str, Any]]:
    rows = graph.table(type_name).to_pylist()
    ids = [row["id"] for row in rows]
    assert len(set(ids)) == len(ids), f"an id of {type_name} twice"
    return rows


def _edges(graph: Graph, type_name: str) -> dict[str, tuple[str, str]]:
    rows = _rows(graph, type_name)
    edges = {row["tag"]: (row["src"], row["dst"]) for row in rows}
    assert len(edges) == len(rows), f"an edge of {type_name} twice"
    return edges
