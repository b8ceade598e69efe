"""`index status`: which declared indexes are built, and how much of their tables they cover."""

from dataclasses import dataclass

from omnigraph.catalog.index_kind import IndexKind, IndexSpec, index_specs
from omnigraph.catalog.model import Catalog
from omnigraph.history.fold import TableEntry
from omnigraph.operations.context import OpenGraph
from omnigraph.storage.tables.filter import IsNull, Not
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.index import IndexRequest


@dataclass(frozen=True, slots=True)
class IndexState:
    """One declared index: `indexed`, `degraded` (some rows are not covered), `missing` or `pending`.

    A pending one cannot be built yet; `reason` says why.
    """

    property: str
    kind: str
    coverage: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TableIndexes:
    """The declared indexes of one table."""

    table_key: str
    indexes: tuple[IndexState, ...]


def index_status(
    graph: OpenGraph, *, branch: str | None = None, actor: str | None = None
) -> tuple[TableIndexes, ...]:
    """Return the state of every declared index of a branch, by table."""
    branch = graph.enter(actor, "read", branch)
    state = graph.state(branch)
    catalog = graph.catalog_of(state)
    return tuple(_table(graph, catalog, entry) for entry in state.tables.entries())


def _table(graph: OpenGraph, catalog: Catalog, entry: TableEntry) -> TableIndexes:
    handle = graph.parts.open(entry)
    coverage = graph.parts.store.index_coverage(handle)

    def state(spec: IndexSpec) -> IndexState:
        found = coverage.get(IndexRequest(spec.column, spec.kind.value).name, "missing")
        reason = _obstacle(graph, handle, spec) if found == "missing" else None
        return IndexState(spec.column, spec.kind.value, found if reason is None else "pending", reason)

    specs = index_specs(catalog.type_of(entry.table_key))
    return TableIndexes(entry.table_key, tuple(state(spec) for spec in specs))


def _obstacle(graph: OpenGraph, handle: SnapshotHandle, spec: IndexSpec) -> str | None:
    """Return why an index cannot be built yet, or None if it can."""
    if handle.row_count == 0:
        return "no row to index"
    if spec.kind is not IndexKind.VECTOR or graph.parts.store.count_rows(handle, Not(IsNull(spec.column))):
        return None
    return "no vector to train on"
