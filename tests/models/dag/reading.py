"""A graph as the model sees it: the rows of a snapshot, raw and through queries, and of differences."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from omnigraph.core.errors import EntityNotFound
from tests.models.dag.model import Difference, EdgeRule, Row, Rows
from tests.models.dag.schema import RULES
from tests.support.seam import internals

if TYPE_CHECKING:
    from omnigraph import Graph, Snapshot
    from omnigraph.changes.model import EntityChange, Image


def stored_rows(graph: "Graph", snapshot: "Snapshot") -> Rows:
    """Return every stored row of a snapshot, those that no query reaches included."""
    parts = internals(graph).parts
    found: Rows = {}
    for key in RULES:
        entry = snapshot.entries[key]
        rows = parts.store.scan(parts.open(entry)).to_pylist()
        found[key] = {row.pop("id"): row for row in rows}
        assert len(found[key]) == len(rows) == entry.row_count, f"{key}: {rows}, pinned {entry.row_count}"
    return found


def queried_rows(graph: "Graph", *, branch: str | None = None, snapshot: str | None = None) -> Rows:
    """Return what queries show of a branch, or of a commit."""
    found: Rows = {}
    for key, rule in RULES.items():
        type_name = key.split(":")[1]
        is_edge = isinstance(rule, EdgeRule)
        pattern = f"$a $x:{type_name.lower()} $b" if is_edge else f"$x: {type_name}"
        text = f"query q() {{ match {{ {pattern} }} return {{ $x }} }}"
        answer = graph.query(text, branch=branch, snapshot=snapshot).to_pylist()
        rows = [dict(cast("Row", row["x"])) for row in answer]
        found[key] = {str(row.pop("id")): row for row in rows}
        assert len(found[key]) == len(rows), f"{key} has an id twice: {rows}"
    return found


def diffed(graph: "Graph", before: str, after: str) -> list[Difference]:
    """Return how the engine says that two branches or commits differ, by table and id."""
    return _differences(graph.diff(after, before))


def committed(graph: "Graph", commit_id: str) -> list[Difference]:
    """Return what the engine says that a commit changed, by table and id."""
    return _differences(graph.commit_changes(commit_id))


def entity(graph: "Graph", table_key: str, row_id: str, target: str) -> Row | None:
    """Return one entity as a branch or a commit shows it."""
    try:
        row = graph.entity_at(table_key.split(":")[1], row_id, target)
    except EntityNotFound:
        return None
    assert row.pop("id") == row_id
    return row


def _differences(changes: "Iterable[EntityChange]") -> list[Difference]:
    found = [
        Difference(
            f"{each.kind}:{each.type.name}", each.id, str(each.op), _row(each.before), _row(each.after)
        )
        for each in changes
    ]
    return sorted(found, key=lambda each: each[:2])


def _row(image: "Image | None") -> Row | None:
    if image is None:
        return None
    ends = image.endpoints
    return {**image.properties, **({} if ends is None else {"src": ends.source, "dst": ends.target})}
