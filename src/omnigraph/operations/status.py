"""`status`: one look at a graph: its head, unfinished writes, indexes, sizes, and what maintenance would do.

U1  Nothing is written and nothing is healed, whatever the handle was opened for.
U2  What maintenance would do is asked of maintenance itself: `optimize` and `cleanup` plan it.
U3  A look that maintenance refuses is part of the answer, with its reason: it does not hide the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from omnigraph.commit.recovery.pending import PendingSidecar, list_pending
from omnigraph.core.errors import OmnigraphError
from omnigraph.core.temporal import moment_of_micros
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import stored_name
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.operations.cleanup.cleanup import preview
from omnigraph.operations.context import OpenGraph, named_branch
from omnigraph.operations.index_status import IndexState, index_states
from omnigraph.operations.layout import LayoutWork
from omnigraph.operations.optimize import plan_optimize
from omnigraph.policy.request import Action
from omnigraph.storage.control.stored_files import StoredFile, stored_files
from omnigraph.storage.files.version_file import VERSIONS_DIR, version_of_file_name

KEEP = 10  # versions that the previewed cleanup keeps: what is recommended, and more than a rollback wants


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write that has begun and not ended: its writer is at work, or died.

    `is_alive` is None where a reader cannot tell, which is on an object store.
    """

    operation_id: str
    writer_kind: str
    branch: str | None
    actor_id: str | None
    started_at_micros: int
    is_alive: bool | None
    tables: tuple[str, ...]

    @property
    def started_at(self) -> datetime:
        """When it began, in UTC."""
        return moment_of_micros(self.started_at_micros)


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of the branch.

    `bytes` and `versions` are those of all its files, whichever branch or commit they belong to; `rows`,
    `fragments` and `indexes` are what the branch shows.
    """

    table_key: str
    version: int
    rows: int
    fragments: int
    bytes: int
    versions: int
    indexes: tuple[IndexState, ...]


@dataclass(frozen=True, slots=True)
class ManifestStatus:
    """The files of the manifests of all branches."""

    bytes: int
    versions: int


@dataclass(frozen=True, slots=True)
class OptimizeWork:
    """What `optimize` would do for a table of the branch; `skipped` says why it would leave it alone."""

    table_key: str
    fragments_to_fold: int = 0
    indexes_to_fold: tuple[str, ...] = ()
    indexes_to_build: tuple[str, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class CleanupWork:
    """What `cleanup` would remove if it kept so many versions; `obstacle` says why that is unknown."""

    keep: int
    versions: int = 0
    bytes: int = 0
    obstacle: str | None = None


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """A graph as one branch shows it; maintenance is that of the whole graph."""

    uri: str
    branch: str | None
    stamp: int
    head: GraphCommit
    branches: int
    pending: tuple[PendingWrite, ...]
    tables: tuple[TableStatus, ...]
    manifest: ManifestStatus
    bytes: int
    optimize: tuple[OptimizeWork, ...]
    cleanup: CleanupWork

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(table.rows for table in self.tables)


def status(graph: OpenGraph, *, branch: str | None = None, actor: str | None = None) -> GraphStatus:
    """Look at a graph (U1).

    Raises:
        BranchNotFound: there is no such branch.
        SidecarCorrupt, SidecarTooNew: an unfinished write cannot be understood.
        StorageError: the store failed.
    """
    graph.enter_whole(actor, Action.READ)  # it tells of unfinished writes and sizes of all branches
    name = named_branch(branch)
    parts = graph.parts
    state = graph.state(name)
    catalog = graph.catalog_of(state)
    snapshot = state.snapshot()
    pending = tuple(_pending(found) for found in list_pending(parts))
    files = stored_files(parts.root)
    extents = _extents(files)

    def table(entry: TableEntry) -> TableStatus:
        handle = parts.open(entry)
        size, versions = extents.get(entry.location, (0, 0))
        indexes = index_states(parts.store, handle, catalog, entry.table_key)
        return TableStatus(
            entry.table_key, entry.version, entry.row_count, handle.fragment_count, size, versions, indexes
        )

    return GraphStatus(
        parts.root.uri,
        stored_name(name),
        snapshot.stamp,
        snapshot.head,
        len(parts.branches.live()),
        pending,
        tuple(table(entry) for entry in state.tables.entries()),
        ManifestStatus(*extents.get(MANIFEST_DIR, (0, 0))),
        sum(file.size for file in files.values()),
        _optimize(graph, name),
        _cleanup(graph, pending),
    )


def _pending(found: PendingSidecar) -> PendingWrite:
    sidecar = found.sidecar
    return PendingWrite(
        sidecar.operation_id,
        sidecar.writer_kind.wire,
        stored_name(sidecar.branch.name),
        sidecar.actor_id,
        sidecar.started_at,
        None if found.lock_path is None and found.writer is None else found.is_alive,
        tuple(table.table_key for table in sidecar.tables),
    )


def _extents(files: Mapping[str, StoredFile]) -> dict[str, tuple[int, int]]:
    """Return, by dataset of the graph, the bytes of its files and how many versions it and its forks have."""
    found: dict[str, tuple[int, int]] = {}
    for path, file in files.items():
        folder = path.split("/")
        dataset = MANIFEST_DIR if folder[0] == MANIFEST_DIR else "/".join(folder[:2])
        size, versions = found.get(dataset, (0, 0))
        found[dataset] = size + file.size, versions + _is_version(folder)
    return found


def _is_version(path: Sequence[str]) -> bool:
    return VERSIONS_DIR in path[-2:-1] and version_of_file_name(path[-1]) is not None


def _optimize(graph: OpenGraph, branch: str) -> tuple[OptimizeWork, ...]:
    """Return the tables of a branch for which there is work, or that are skipped (U2)."""
    _, planned = plan_optimize(graph, branch)
    found = []
    for plan in planned:
        if not isinstance(plan, LayoutWork):
            found.append(OptimizeWork(plan.table_key, skipped=plan.skipped))
        elif not plan.is_none:
            columns = {request.name: request.column for request in plan.declared}
            merged = tuple(columns.get(name, name) for name in plan.layout.to_merge)
            work = OptimizeWork(plan.entry.table_key, plan.layout.to_rewrite, merged, plan.missing)
            found.append(work)
    return tuple(found)


def _cleanup(graph: OpenGraph, pending: tuple[PendingWrite, ...]) -> CleanupWork:
    """Return what a cleanup would remove (U2), or why that is unknown (U3): it waits for no writer here."""
    if pending:
        return CleanupWork(KEEP, obstacle="a write has begun and not ended")
    try:
        found = preview(graph, keep=KEEP)
    except OmnigraphError as error:
        return CleanupWork(KEEP, obstacle=str(error))
    failed = "; ".join(f"{row.table_key}: {row.error}" for row in found.failed)
    return CleanupWork(KEEP, found.old_versions_removed, found.bytes_removed, failed or None)
