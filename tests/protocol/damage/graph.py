"""A graph with one of everything, and what was acknowledged of it."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import omnigraph
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.failpoint import failpoint
from omnigraph.graph.graph import Graph
from tests.support.protocol import BEFORE, COLUMNS, SCHEMA, records

BRANCHES = ("main", "june", "july")
_UPDATE = 'query q() { update Person set { age: 31 } where name = "ann" }'
_DELETE = 'query q() { delete Person where name = "gone" }'
_UNFINISHED = 'query q() { insert Person { name: "half" } insert Knows { from: "half", to: "ann" } }'
QUERY = "query q() { match { $p: Person  $p knows $q } return { $p.name as one, $q.name as other } }"


@dataclass(frozen=True, slots=True)
class View:
    """What a graph shows, thing by thing; a thing that raised a typed error is in `errors` instead."""

    things: Mapping[str, object]
    errors: Mapping[str, OmnigraphError] = field(default_factory=dict)


def insert(graph: Graph, name: str, branch: str | None = None) -> str:
    """Insert a person; return the commit."""
    result = graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}', branch=branch)
    assert result.commit is not None
    return result.commit.graph_commit_id


def build(root: Path, *, is_unfinished: bool) -> None:
    """Make the graph: indexes, deletions, branches, merges, a recovery, and perhaps an unfinished write."""
    with omnigraph.init(root, SCHEMA, durability="full") as graph:
        graph.load(records(BEFORE), "append")
        insert(graph, "gone")
        graph.mutate(_UPDATE)
        graph.mutate(_DELETE)
        graph.create_branch("june")
        insert(graph, "june 1", "june")
        insert(graph, "on main")
        graph.create_branch("may")
        insert(graph, "may 1", "may")
        graph.merge("may")
        graph.delete_branch("may")
        graph.create_branch("july", "june")
        insert(graph, "july 1", "july")
        graph.merge("main", into="june")
    with omnigraph.open(root, durability="full") as graph:
        _leave_unfinished(graph, "write.post_finalize_pre_publisher")
    with omnigraph.open(root, durability="full") as graph:
        insert(graph, "last")
        if is_unfinished:
            _leave_unfinished(graph, "write.post_table_commit", name="quarter")


def _leave_unfinished(graph: Graph, place: str, name: str = "half") -> None:
    with failpoint(place, "raise:once"):
        try:
            graph.mutate(_UNFINISHED.replace("half", name))
        except OmnigraphError:
            return
    raise AssertionError("the write was to fail")


def look(graph: Graph) -> View:
    """Read everything; each thing by itself, so that one error hides nothing."""
    things: dict[str, object] = {}
    errors: dict[str, OmnigraphError] = {}

    def note(name: str, read: object) -> None:
        try:
            things[name] = read()  # type: ignore[operator]
        except OmnigraphError as error:
            errors[name] = error

    note("branches", graph.branches)
    for branch in BRANCHES:
        for table in COLUMNS:
            note(f"{branch}:{table}", lambda table=table, branch=branch: _rows(graph, table, branch))
        note(
            f"{branch}:commits",
            lambda branch=branch: [c.graph_commit_id for c in graph.commits(branch=branch)],
        )
        note(f"{branch}:query", lambda branch=branch: _pairs(graph, branch))
    return View(things, errors)


def _rows(graph: Graph, table: str, branch: str) -> list[tuple[object, ...]]:
    rows = graph.table(table, branch=branch).to_pylist()
    return sorted((tuple(row[column] for column in COLUMNS[table]) for row in rows), key=str)


def _pairs(graph: Graph, branch: str) -> list[tuple[object, ...]]:
    return sorted(((row["one"], row["other"]) for row in graph.query(QUERY, branch=branch).rows), key=str)


def reset(root: Path, pristine: Path) -> None:
    """Make the graph as it was, at the same place: branches name files of others by full paths."""
    if root.exists():
        shutil.rmtree(root)
    shutil.copytree(pristine, root)
