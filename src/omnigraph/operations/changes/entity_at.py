"""`entity_at`: one node or edge as it was, from one table."""

from typing import Any

from omnigraph.catalog.arrow_schema import with_moments
from omnigraph.core.errors import EntityNotFound
from omnigraph.core.values import is_text
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.pin import Target, pin_table, read_target


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
    snapshot = read_target(graph, target, actor)
    store = graph.parts.store
    handle = pin_table(graph, snapshot, type_name).open(store)
    rows = store.rows_by_id(handle, [entity_id]) if is_text(entity_id) else None
    found = [] if rows is None else with_moments(rows).to_pylist()
    if not found:
        raise EntityNotFound(type_name, entity_id)
    return dict(found[0])
