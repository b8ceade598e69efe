"""`optimize`: the tables of a branch in their best layout, as one commit by the engine; then its manifest.

Z1  No row changes and no version goes: what a commit showed before, it shows afterwards.
Z2  One sidecar names all tables with work, one publish shows what became of them. If nothing is to be done,
    there is neither: a second run changes nothing.
Z3  It runs on a graph in which every write has ended. A table that is ahead of its pin for no known reason is
    skipped: what is there is not ours to show.
Z4  A table below which another writer is not done is left out of the publish, and goes forward by itself once
    that writer has ended (X9 of `commit/section.py`).
Z5  Writers of other processes are in the middle of nothing while a table is laid out, and wait only for the
    table at hand.
Z6  On a branch it is for the tables that the branch owns. Those that it inherits stay where they are: a fork
    would keep a second copy of what is folded, and be a change of the branch that nobody asked for.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from omnigraph.commit.publish import PublishOutcome
from omnigraph.commit.recovery.pending import list_pending
from omnigraph.commit.recovery.quiet import refuse_pending
from omnigraph.commit.schema_lock import living_holder
from omnigraph.commit.section import FailpointNames, LayoutRules, TableCommit
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.table_locks import turn_of_tables
from omnigraph.commit.write import Attempt, Change, owns
from omnigraph.core.errors import RowLevelCasContention, SchemaApplyInProgress, StorageError
from omnigraph.core.failpoint import hit
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import MAIN, BranchIdentity
from omnigraph.history.manifest_rows import MANIFEST_DIR
from omnigraph.history.state import ManifestState
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.ensure_indices import PendingIndex
from omnigraph.operations.layout import COMPACTION_RETRY_BUDGET, LayoutWork, compare_work, lay_out, plan_table
from omnigraph.operations.progress import TableProgressCallback, Tables, unseen
from omnigraph.operations.settings import optimize_concurrency
from omnigraph.policy.request import Action
from omnigraph.storage.files.dataset_file import remove_transactions
from omnigraph.storage.tables.layout import StoredLayout, layout_for_maintenance
from omnigraph.storage.tables.staged import CommittedTable

FAILPOINTS = FailpointNames(
    post_sidecar="optimize.post_sidecar_pre_compact",
    post_table="optimize.post_table",
    pre_publish="optimize.post_phase_b_pre_manifest_commit",
    post_publish="optimize.post_publish_pre_sidecar_delete",
)


@dataclass(frozen=True, slots=True)
class OptimizedTable:
    """What became of one table, or of the manifest.

    `committed` is whether the commit shows a new layout of it. The two versions are the published one and the
    newest one; they differ where the table was skipped or left out.
    """

    table_key: str
    manifest_version: int
    lance_head_version: int
    committed: bool = False
    fragments_removed: int = 0
    fragments_added: int = 0
    skipped: Literal["drift_needs_repair"] | None = None
    pending_indexes: tuple[PendingIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """What became of every table of the branch's own, its manifest last.

    Without a commit there was nothing to do.
    """

    tables: tuple[OptimizedTable, ...]
    commit: GraphCommit | None


def optimize(
    graph: OpenGraph,
    *,
    branch: str | None = None,
    actor: str | None = None,
    progress: TableProgressCallback = unseen,
) -> OptimizeResult:
    """Compact the tables of a branch, merge and build their indexes, and fold its manifest.

    Raises:
        BadRequest: the handle is read-only.
        BranchNotFound: there is no such branch, or it was deleted meanwhile.
        PendingRecovery: an unfinished write waits for recovery (Z3).
        GraphDamaged: files that would be written anew are not what their commits wrote; nothing is changed.
        ConflictError: others came in between again and again; what moved goes forward by itself.
        RecoveryRequired: it failed half-way; the next write or open finishes it, and no row has changed.
    """
    name = graph.enter(actor, Action.ADMIN, branch)
    graph.require_writable()
    graph.require_branch(name)
    refuse_pending(graph.parts, "optimize")
    hit("optimize.post_recovery_check_pre_gates")
    with _all_of(graph, name):
        refuse_pending(graph.parts, "optimize")
        if living_holder(graph.parts) is not None:
            raise SchemaApplyInProgress("optimize is unavailable while a schema change is in progress")
        state, planned = plan_optimize(graph, name)
        reports, commit = _carry_out(graph, state, planned, progress)
    hit("optimize.before_manifest_compaction")
    return OptimizeResult((*reports, _fold_manifest(graph, state.branch)), commit)


@contextmanager
def _all_of(graph: OpenGraph, branch: str) -> Iterator[None]:
    """Hold the gates and all tables of a branch: no writer of this process is between two of its steps."""
    queues = graph.parts.queues
    with queues.schema_gate, queues.branch_gates([branch]):
        keys = [(entry.table_key, branch) for entry in graph.state(branch).tables.entries()]
        with queues.acquire_many(keys):
            yield


def plan_optimize(
    graph: OpenGraph, branch: str = MAIN
) -> tuple[ManifestState, list[LayoutWork | OptimizedTable]]:
    """Say for every table of a branch's own (Z6) what is to be done, or that it is skipped (Z3).

    Nothing is written.

    A sidecar is durable before a HEAD moves and goes only after the pin has moved: looked at in this order, a
    table that no sidecar names and that is ahead of its pin was moved by nobody who is at work.
    """
    parts = graph.parts
    entries = _owned(graph.state(branch))
    heads = parts.store.latest_versions([parts.address(entry) for entry in entries])
    pending = [found.sidecar for found in list_pending(parts)]
    state = graph.state(branch)
    catalog = graph.catalog_of(state)
    planned: list[LayoutWork | OptimizedTable] = []
    seen = dict(zip(((entry.identity, entry.pin.ref) for entry in entries), heads, strict=True))
    for entry in _owned(state):
        # Unknown are tables that another process has just added or forked.
        head = seen.get((entry.identity, entry.pin.ref), entry.version)
        is_at_work = any(sidecar.names(entry.identity, entry.pin.ref) for sidecar in pending)
        if head > entry.version and not is_at_work:
            skipped = OptimizedTable(entry.table_key, entry.version, head, skipped="drift_needs_repair")
            planned.append(skipped)
        else:
            planned.append(plan_table(parts, catalog, entry))
    return state, planned


def _owned(state: ManifestState) -> list[TableEntry]:
    """Return the tables that the branch of a state writes where they are pinned (Z6)."""
    return [entry for entry in state.tables.entries() if owns(state.branch, entry)]


def _carry_out(
    graph: OpenGraph,
    state: ManifestState,
    planned: Sequence[LayoutWork | OptimizedTable],
    progress: TableProgressCallback,
) -> tuple[list[OptimizedTable], GraphCommit | None]:
    works = [plan for plan in planned if isinstance(plan, LayoutWork) and not plan.is_none]
    for work in works:
        compare_work(graph.parts, state.branch, work)
    outcome = _commit(graph, state, works, progress) if works else None
    done = {work.entry.table_key for work in works}
    reports = [
        plan
        if isinstance(plan, OptimizedTable)
        else _report(graph, plan, outcome if plan.entry.table_key in done else None)
        for plan in planned
    ]
    return reports, None if outcome is None else outcome.commit


def _commit(
    graph: OpenGraph, state: ManifestState, works: Sequence[LayoutWork], progress: TableProgressCallback
) -> PublishOutcome:
    """Do the work of all tables under one sidecar, and publish it (Z2, Z4)."""
    parts = graph.parts
    tables = Tables("optimize", {work.entry.table_key: work.entry.row_count for work in works}, progress)

    def run(work: LayoutWork, operation_id: str) -> CommittedTable | None:
        key = work.entry.table_key
        with tables.at(key), turn_of_tables(parts, state.branch.name, moved=[key]):  # Z5
            return lay_out(parts, work, operation_id)

    rules = LayoutRules(
        optimize_concurrency(is_local=parts.local_root is not None), COMPACTION_RETRY_BUDGET + 1
    )
    moved = frozenset(work.entry.table_key for work in works)
    change = Change(WriterKind.OPTIMIZE, state.snapshot(), moved, FAILPOINTS, layout=rules)
    attempt = Attempt(parts, graph.publisher, change)
    attempt.narrowed(()).look_again(())  # at the branch alone: other processes may move tables (Z4)
    outcome = attempt.commit([TableCommit(work.entry, None, (), partial(run, work)) for work in works])
    _remove_copies(graph, works)
    return outcome


def _remove_copies(graph: OpenGraph, works: Sequence[LayoutWork]) -> None:
    """Remove the copies of old transactions, which nobody reads; that it failed is a warning."""
    try:
        for work in works:
            remove_transactions(graph.parts.open(work.entry), below=work.entry.version)
    except StorageError as error:
        graph.parts.warn(f"copies of transactions stay until the next round: {error}")


def _report(graph: OpenGraph, work: LayoutWork, outcome: PublishOutcome | None) -> OptimizedTable:
    """Say what became of a table: its new layout is shown if its pin has moved."""
    entry = work.entry
    now = entry if outcome is None else outcome.state.snapshot().entry(entry.table_key)
    is_moved = now.version != entry.version
    after = _layout(graph, now).fragments if is_moved else work.layout.fragments
    return OptimizedTable(
        entry.table_key,
        now.version,
        now.version if outcome is None else graph.parts.store.latest_version(graph.parts.address(now)),
        is_moved,
        len(work.layout.fragments - after),
        len(after - work.layout.fragments),
        pending_indexes=work.pending,
    )


def _layout(graph: OpenGraph, entry: TableEntry) -> StoredLayout:
    return layout_for_maintenance(graph.parts.open(entry))


def _fold_manifest(graph: OpenGraph, branch: BranchIdentity) -> OptimizedTable:
    """Fold the manifest of a branch; no commit of the graph, because its rows stay (section 6.5)."""
    for attempt in range(COMPACTION_RETRY_BUDGET + 1):
        graph.parts.branches.confirm(branch)  # what is folded of a deleted one is seen by nobody
        try:
            before, after = graph.publisher.compact(branch)
            break
        except RowLevelCasContention:
            if attempt == COMPACTION_RETRY_BUDGET:
                raise
    version = graph.parts.coordinator.state(branch).version
    removed, added = len(before - after), len(after - before)
    return OptimizedTable(MANIFEST_DIR, version, version, bool(added), removed, added)
