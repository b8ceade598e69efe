"""`entity_at`: one node or edge as it was, from one table."""

from typing import Any

from omnigraph.catalog.arrow_schema import shown_rows
from omnigraph.core.errors import EntityNotFound
from omnigraph.core.values import is_text
from omnigraph.history.branches import trimmed_name
from omnigraph.history.identity import branch_name
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import Target, pin_table, read_target
from omnigraph.operations.reclaimed import at_head, reading_of


def entity_at(
    graph: OpenGraph, type_name: str, entity_id: str, target: Target, *, actor: str | None = None
) -> dict[str, Any]:
    """Return the properties of an entity, with its id and the ends of an edge, as a target shows it.

    Raises:
        BadRequest: the target has no such type.
        EntityNotFound: it has no such entity.
        PolicyDenied: the actor may not read the target's branch.
        HistoricalVersionReclaimed: the table's version was cleaned up.
    """
    shown = read_target(graph, target, actor)
    store = graph.parts.store

    def read(snapshot: Snapshot) -> list[dict[str, Any]]:
        if not is_text(entity_id):
            return []
        pinned = pin_table(graph, snapshot, type_name)
        rows = store.rows_by_id(pinned.open(store), [entity_id])
        return shown_rows(rows, graph.catalog_of(snapshot).type_of(pinned.table_key)).to_pylist()

    branch = branch_name(shown.branch)
    if isinstance(target, str) and trimmed_name(target) == branch:
        found = at_head(graph, lambda: graph.newest(branch), lambda state: read(state.snapshot()))
    else:
        with reading_of(graph, shown):
            found = read(shown)
    if not found:
        raise EntityNotFound(type_name, entity_id)
    return dict(found[0])
