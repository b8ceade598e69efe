"""A graph as the model sees it, and what must hold for every graph whatever it contains.

A version of a table never changes. What was read of it once can be taken for what it still holds, where that
is not the question: readers take a note of what was seen.
"""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from omnigraph.graph.graph import Graph
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import Snapshot
from tests.models.histories.contents import OWN_TABLES, Contents
from tests.support.seam import internals

Rows = list[dict[str, Any]]
Seen = dict[tuple[str, str | None, int], Rows]  # by place, ref and version


def read_contents(graph: Graph, snapshot: Snapshot | None = None, seen: Seen | None = None) -> Contents:
    """Return everything that a snapshot holds, the newest of main if none is given."""
    shown = graph.snapshot() if snapshot is None else snapshot
    seen = {} if seen is None else seen
    rows = {key: _rows(graph, entry, seen) for key, entry in shown.entries.items()}
    own: dict[str, int] = {}
    for table in range(OWN_TABLES):
        own |= {f"{table}/{row['key']}": row["value"] for row in rows[f"node:Own{table}"]}
    people = rows["node:Person"]
    assert all(row["id"] == row["handle"] for row in people)
    notes = [row["body"] for row in rows["node:Note"]]
    assert len(set(notes)) == len(notes), "a note twice"
    return Contents(
        people={row["handle"]: (row["age"], row["tag"]) for row in people},
        teams={row["name"]: row["size"] for row in rows["node:Team"]},
        notes=frozenset(notes),
        knows=_edges("Knows", rows["edge:Knows"]),
        joined=_edges("Joined", rows["edge:Joined"]),
        own=own,
    )


def check_whole(graph: Graph, branch: str | None = None) -> list[str]:
    """Check pins, sidecars and history of a branch, and return the commit ids, oldest first; none is main."""
    check_heads(graph, graph.snapshot(branch).entries.values(), branch)
    check_nothing_left(graph)
    return check_chain(graph, branch)


def check_heads(graph: Graph, entries: Iterable[TableEntry], branch: str | None = None) -> None:
    """Check that the tables which a branch owns end where it pins them; main owns all that it shows."""
    parts = internals(graph).parts
    for entry in entries:
        if branch is None or (entry.owner is not None and entry.pin.branch == branch):
            head = parts.store.latest_version(parts.address(entry))
            assert head == entry.version, f"{entry.table_key}: HEAD {head}, pin {entry.version}"


def check_nothing_left(graph: Graph) -> None:
    """Check that no write is waiting for recovery."""
    # `name#<digits>` is a text that was never finished; such files are invisible to the engine.
    left = sorted(path.name for path in Path(graph.uri, "__recovery").glob("*") if "#" not in path.name)
    assert left == [], f"left in __recovery: {left}"


def check_chain(graph: Graph, branch: str | None = None) -> list[str]:
    """Check that the commits are one chain from the head to the first, and return their ids, oldest first."""
    commits = graph.commits(branch=branch)
    for child, parent in pairwise(commits):
        assert child.parent_commit_id == parent.graph_commit_id, f"{child} does not follow {parent}"
        assert child.manifest_version > parent.manifest_version
    assert commits[-1].parent_commit_id is None
    assert commits[0] == graph.snapshot(branch).head
    return [commit.graph_commit_id for commit in reversed(commits)]


def _rows(graph: Graph, entry: TableEntry, seen: Seen) -> Rows:
    place = (entry.location, entry.owner, entry.version)
    if place not in seen:
        parts = internals(graph).parts
        rows = parts.store.scan(parts.open(entry)).to_pylist()
        ids = [row["id"] for row in rows]
        assert len(set(ids)) == len(ids), f"an id of {entry.table_key} twice"
        assert len(rows) == entry.row_count, f"{entry.table_key}: {len(rows)} rows, pinned {entry.row_count}"
        seen[place] = rows
    return seen[place]


def _edges(type_name: str, rows: Rows) -> dict[str, tuple[str, str]]:
    edges = {row["tag"]: (row["src"], row["dst"]) for row in rows}
    assert len(edges) == len(rows), f"an edge of {type_name} twice"
    return edges
