"""The document of one node or edge."""

from typing import TYPE_CHECKING

from omnigraph.core.values import Json
from omnigraph.graph.encode import json_rows

if TYPE_CHECKING:
    from omnigraph.operations.changes.entity_at import FoundEntity


def entity_document(found: "FoundEntity") -> Json:
    """Return a node or an edge as a query returns a whole one, and the commit that shows it."""
    blobs = {name for name, item in found.type.properties.items() if item.is_blob}
    shown = found.row.select([name for name in found.row.column_names if name not in blobs])
    (values,) = json_rows(shown)
    return {
        "table_key": found.type.table_key,
        "graph_commit_id": found.commit_id,
        "entity": dict(zip(shown.column_names, values, strict=True)),
    }
