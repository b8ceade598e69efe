"""`ensure_indices`: build the declared indexes that are missing, as one commit by the engine.

L1  If there is nothing to build, there is no sidecar and no commit. A vector index without a vector to train
    on is pending, not an error.
L2  An index that exists is left alone, unless it is asked for anew: those of one property, or, after a change
    that wrote the rows of a table to new files, those that no longer cover every row. The old one goes in the
    commit that brings the new one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog
from omnigraph.commit.section import FailpointNames
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import Change, entered, owns
from omnigraph.core.errors import BadRequest, HistoricalVersionReclaimed, OmnigraphError
from omnigraph.core.failpoint import hit
from omnigraph.core.values import shown
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.index_building import ANYWHERE, DueOnTable, IndexPlacing, build_indexes
from omnigraph.operations.index_status import declared_indexes
from omnigraph.operations.pin import pin_table
from omnigraph.operations.progress import TableProgressCallback, Tables, unseen
from omnigraph.policy.request import Action
from omnigraph.storage.tables.index import IndexRequest, index_extents
from omnigraph.storage.tables.index_build import due_indexes
from omnigraph.storage.tables.staged import StagedWrite

_FAILPOINTS = FailpointNames(
    post_sidecar="ensure_indices.post_sidecar_pre_commit",
    post_table="ensure_indices.post_table_commit",
    pre_publish="ensure_indices.post_phase_b_pre_manifest_commit",
    post_publish="ensure_indices.post_publish_pre_sidecar_delete",
)


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """A declared index that is not built, and why."""

    table_key: str
    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The commit that built indexes, if any were built, and what is still pending."""

    commit: GraphCommit | None
    pending: tuple[PendingIndex, ...]


@dataclass(frozen=True, slots=True)
class IndexWork:
    """Which indexes to look at: of some tables or all, of one property or all; and where to build them.

    Those of a single property are built anew, and so are those of `written` tables that do not cover all rows
    (L2).
    """

    tables: frozenset[str] | None = None
    column: str | None = None
    written: frozenset[str] = frozenset()
    placing: IndexPlacing = ANYWHERE

    def requests(self, catalog: Catalog, table_key: str) -> list[IndexRequest]:
        """Return the declared indexes that are meant."""
        declared = declared_indexes(catalog, table_key)
        return [request for request in declared if self.column in {None, request.column}]

    def anew(self, graph: OpenGraph, catalog: Catalog, entry: TableEntry) -> frozenset[str]:
        """Return the names of indexes that are built although they exist."""
        if self.column is not None:
            return frozenset(request.name for request in self.requests(catalog, entry.table_key))
        if entry.table_key not in self.written:
            return frozenset()
        extents = index_extents(graph.parts.open(entry))
        return frozenset(name for name, extent in extents.items() if not extent.is_whole)


def ensure_indices(
    graph: OpenGraph,
    *,
    branch: str | None = None,
    actor: str | None = None,
    tables: Iterable[str] | None = None,
    progress: TableProgressCallback = unseen,
    placing: IndexPlacing = ANYWHERE,
) -> IndexResult:
    """Build what is missing on a branch, or on some of its tables.

    Raises:
        SparkUnavailable: executors were asked for, and there are none, or a job failed.
        DriftNeedsRepair, RecoveryRequired: a table is ahead of its pin; nothing is healed here.
        ConflictError: another writer was first.
    """
    name = graph.enter(actor, Action.ADMIN, branch)
    graph.require_writable()
    work = IndexWork(None if tables is None else frozenset(tables), placing=placing)
    return build_missing_indices(graph, name, work, progress)


def rebuild_index(
    graph: OpenGraph,
    type_name: str,
    property_name: str,
    *,
    branch: str | None = None,
    actor: str | None = None,
    progress: TableProgressCallback = unseen,
    placing: IndexPlacing = ANYWHERE,
) -> IndexResult:
    """Build the indexes of one property anew, over all rows, whatever is there (L2).

    Raises:
        BadRequest: the branch has no such type, or the property no index.
        DriftNeedsRepair, RecoveryRequired: the table is ahead of its pin; nothing is healed here.
        ConflictError: another writer was first.
    """
    name = graph.enter(actor, Action.ADMIN, branch)
    graph.require_writable()
    state = graph.state(name)
    table_key = pin_table(graph, state.snapshot(), type_name).table_key
    declared = [request.column for request in declared_indexes(graph.catalog_of(state), table_key)]
    if property_name not in declared:
        known = ", ".join(dict.fromkeys(declared))
        raise BadRequest(f"{table_key} has no index of {shown(property_name)}, only of {known}")
    work = IndexWork(frozenset({table_key}), property_name, placing=placing)
    return build_missing_indices(graph, name, work, progress)


def build_missing_indices(
    graph: OpenGraph, branch: str, work: IndexWork, progress: TableProgressCallback = unseen
) -> IndexResult:
    """Build what is missing, for a caller that has already passed the entry checks."""
    state = graph.state(branch)
    entries = [
        entry
        for entry in state.tables.entries()
        if entry.row_count and (work.tables is None or entry.table_key in work.tables)
    ]
    owned = [entry for entry in entries if owns(state.branch, entry)]
    catalog = graph.catalog_of(state)
    inherited = [
        entry
        for entry in entries
        if not owns(state.branch, entry) and _lacks_some(graph, catalog, entry, work)
    ]
    tables = Tables("index", {entry.table_key: entry.row_count for entry in (*owned, *inherited)}, progress)
    try:
        staged, pending = _stage(graph, catalog, owned, work, tables)
    except HistoricalVersionReclaimed:
        graph.parts.branches.confirm(state.branch)  # its tables went with it
        raise
    hit("ensure_indices.post_stage_pre_commit")
    if not staged and not inherited:
        return IndexResult(None, tuple(pending))
    moved = [entry for entry, _ in staged]
    change = Change(
        WriterKind.ENSURE_INDICES,
        state.snapshot(),
        frozenset(entry.table_key for entry in (*moved, *inherited)),
        _FAILPOINTS,
        has_swept=False,
    )
    with (
        entered(graph.parts, graph.publisher, change, moved=moved) as attempt,
        attempt.forked(inherited) as forks,
    ):
        on_forks, pending_there = _stage(graph, catalog, forks.tables.values(), work, tables)
        forks.keep({entry.table_key for entry, _ in on_forks})
        pending += pending_there
        writes = [*staged, *on_forks]
        if not writes:
            return IndexResult(None, tuple(pending))
        # A table on which nothing could be built is left alone: others may write it meanwhile.
        building = attempt.narrowed(entry.table_key for entry, _ in writes)
        outcome = building.commit([building.staged(*write) for write in writes], [forks])
    return IndexResult(outcome.commit, tuple(pending))


def build_behind(
    graph: OpenGraph,
    branch: str,
    tables: Sequence[str],
    *,
    first: Callable[[], None] = lambda: hit("load.post_publish_pre_index"),
    written: Iterable[str] = (),
    placing: IndexPlacing = ANYWHERE,
) -> tuple[IndexResult, tuple[str, ...]]:
    """Build what tables lack after a write to them; a failure is a warning: the write has succeeded.

    `written` are those whose rows were written to new files without being changed (L2).
    """
    try:
        first()
        work = IndexWork(frozenset(tables), written=frozenset(written), placing=placing)
        return build_missing_indices(graph, branch, work), ()
    except Exception as error:  # noqa: BLE001 - a warning, never a failed write
        warning = f"indexes could not be built and are pending: {error}"
        graph.parts.warn(warning)
        return IndexResult(None, _missing(graph, branch, tables, str(error))), (warning,)


def _stage(
    graph: OpenGraph, catalog: Catalog, entries: Iterable[TableEntry], work: IndexWork, tables: Tables
) -> tuple[list[tuple[TableEntry, StagedWrite]], list[PendingIndex]]:
    """Build what tables lack, uncommitted; return the writes, and what cannot be built yet."""
    due: list[DueOnTable] = []
    pending: list[PendingIndex] = []
    for entry in entries:
        handle = graph.parts.open(entry)
        requests, anew = work.requests(catalog, entry.table_key), work.anew(graph, catalog, entry)
        indexes, missing = due_indexes(handle, requests, anew)
        pending += [PendingIndex(entry.table_key, column.column, column.reason) for column in missing]
        due.append(DueOnTable(entry, handle, indexes))
    stage = graph.parts.stager.stage_indexes
    built = build_indexes(graph, work.placing, due, tables)
    return [
        (table.entry, stage(table.handle, table.due, indexes))
        for table, indexes in zip(due, built, strict=True)
        if indexes
    ], pending


def _lacks_some(graph: OpenGraph, catalog: Catalog, entry: TableEntry, work: IndexWork) -> bool:
    """Return whether there is work on an inherited table: without any it stays inherited."""
    built = _built(graph, entry) - work.anew(graph, catalog, entry)
    return any(request.name not in built for request in work.requests(catalog, entry.table_key))


def _missing(graph: OpenGraph, branch: str, tables: Iterable[str], reason: str) -> tuple[PendingIndex, ...]:
    """Return what is not built on some tables after a failed build; where that cannot be read, everything."""
    try:
        state = graph.state(branch)
        catalog = graph.catalog_of(state)
        entries = {entry.table_key: entry for entry in state.tables.entries()}
        built = {key: _built(graph, entries[key]) for key in tables}
    except OmnigraphError:
        catalog = graph.catalog
        built = {key: frozenset() for key in tables if key in {type_.table_key for type_ in catalog.types}}
    pending = (
        PendingIndex(key, request.column, reason)
        for key, names in built.items()
        for request in declared_indexes(catalog, key)
        if request.name not in names
    )
    return tuple(dict.fromkeys(pending))


def _built(graph: OpenGraph, entry: TableEntry) -> frozenset[str]:
    return frozenset(index_extents(graph.parts.open(entry)))
