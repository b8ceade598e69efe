"""`index status`: which declared indexes are built, how much of a table they cover, and why not all of it.

One function looks at a table, for this report, for plans of reads and for optimize: they cannot differ.
"""

from dataclasses import dataclass
from typing import Literal

from omnigraph.catalog.index_kind import IndexKind, IndexSpec, index_specs
from omnigraph.catalog.model import Catalog
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.reclaimed import at_head
from omnigraph.policy.request import Action
from omnigraph.storage.tables.filter import IsNull, Not
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.index import IndexExtent, IndexRequest, index_extents
from omnigraph.storage.tables.table import TableStore

NO_ROW, NO_VECTOR = "no row to index", "no vector to train on"
NOT_BUILT = "not built yet"


@dataclass(frozen=True, slots=True)
class IndexState:
    """One declared index: `indexed`, `degraded` (some rows are not covered), `missing` or `pending`.

    A pending one cannot be built yet. Whatever is not `indexed` has a reason.
    """

    property: str
    kind: str
    coverage: Literal["indexed", "degraded", "missing", "pending"]
    reason: str | None = None
    rows_uncovered: int = 0


@dataclass(frozen=True, slots=True)
class TableIndexes:
    """The declared indexes of one table."""

    table_key: str
    indexes: tuple[IndexState, ...]


def index_status(
    graph: OpenGraph, *, branch: str | None = None, actor: str | None = None
) -> tuple[TableIndexes, ...]:
    """Return the state of every declared index of a branch, by table."""
    branch = graph.enter(actor, Action.READ, branch)
    parts = graph.parts

    def read(state: ManifestState) -> tuple[TableIndexes, ...]:
        catalog = graph.catalog_of(state)
        return tuple(
            TableIndexes(
                entry.table_key, index_states(parts.store, parts.open(entry), catalog, entry.table_key)
            )
            for entry in state.tables.entries()
        )

    return at_head(graph, lambda: graph.state(branch), read)


def index_states(
    store: TableStore, handle: SnapshotHandle, catalog: Catalog, table_key: str
) -> tuple[IndexState, ...]:
    """Return the state of the declared indexes of a table at one version."""
    extents = index_extents(handle)
    return tuple(
        _state(store, handle, spec, extents.get(request_for(spec).name))
        for spec in index_specs(catalog.type_of(table_key))
    )


def declared_indexes(catalog: Catalog, table_key: str) -> list[IndexRequest]:
    """Return the indexes that a table should have."""
    return [request_for(spec) for spec in index_specs(catalog.type_of(table_key))]


def request_for(spec: IndexSpec) -> IndexRequest:
    """Return the same index as tables know it."""
    return IndexRequest(spec.column, spec.kind.value)


def _state(
    store: TableStore, handle: SnapshotHandle, spec: IndexSpec, extent: IndexExtent | None
) -> IndexState:
    column, kind = spec.column, spec.kind.value
    if extent is None:
        obstacle = _obstacle(store, handle, spec)
        if obstacle is not None:
            return IndexState(column, kind, "pending", obstacle)
        return IndexState(column, kind, "missing", NOT_BUILT, handle.row_count)
    if extent.is_whole:
        return IndexState(column, kind, "indexed")
    uncovered = extent.rows_uncovered
    reason = f"{uncovered} of {handle.row_count} rows not covered: written since it was built"
    return IndexState(column, kind, "degraded", reason, uncovered)


def _obstacle(store: TableStore, handle: SnapshotHandle, spec: IndexSpec) -> str | None:
    """Return why an index cannot be built yet, or None if it can."""
    if handle.row_count == 0:
        return NO_ROW
    if spec.kind is not IndexKind.VECTOR or store.count_rows(handle, Not(IsNull(spec.column))):
        return None
    return NO_VECTOR
