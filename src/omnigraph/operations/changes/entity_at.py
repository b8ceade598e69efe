"""`entity_at`: one node or edge as it was, from one table."""

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.catalog.arrow_schema import shown_rows
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.errors import EntityNotFound
from omnigraph.core.values import is_text
from omnigraph.history.branches import trimmed_name
from omnigraph.history.identity import branch_name
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import Target, pin_table, read_target
from omnigraph.operations.reclaimed import at_head, reading_of


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """One node or edge: a table of its row, Blobs included, the type of it, and the commit that shows it."""

    type: NodeType | EdgeType
    row: pa.Table
    commit_id: str

    def values(self) -> dict[str, object]:
        """Return the properties of the entity, with its id and the ends of an edge."""
        return dict(self.row.to_pylist()[0])


def entity_at(
    graph: OpenGraph, type_name: str, entity_id: str, target: Target, *, actor: str | None = None
) -> FoundEntity:
    """Return an entity as a target shows it.

    Raises:
        BadRequest: the target has no such type.
        EntityNotFound: it has no such entity.
        PolicyDenied: the actor may not read the target's branch.
        HistoricalVersionReclaimed: the table's version was cleaned up.
    """
    shown = read_target(graph, target, actor)
    store = graph.parts.store

    def read(snapshot: Snapshot) -> FoundEntity | None:
        if not is_text(entity_id):
            return None
        pinned = pin_table(graph, snapshot, type_name)
        rows = store.rows_by_id(pinned.open(store), [entity_id])
        type_ = graph.catalog_of(snapshot).type_of(pinned.table_key)
        if not rows.num_rows:
            return None
        return FoundEntity(type_, shown_rows(rows, type_), snapshot.commit_id)

    branch = branch_name(shown.branch)
    if isinstance(target, str) and trimmed_name(target) == branch:
        found = at_head(graph, lambda: graph.newest(branch), lambda state: read(state.snapshot()))
    else:
        with reading_of(graph, shown):
            found = read(shown)
    if found is None:
        raise EntityNotFound(type_name, entity_id)
    return found
