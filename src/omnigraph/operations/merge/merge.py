"""`merge`: bring what one branch did since the two diverged into another, entity by entity.

B1  Both heads are captured once, the source's under its publish lock and on the disk: what is merged is never
    taken back. What the source does later is not part of this merge; if the target moves before the first
    effect, nothing is done.
B2  All conflicts are found before any is reported, and if there is one, nothing is written.
B3  A fast-forward needs no check of its rows: the target comes to show what the source shows, and that was
    checked when it was written.
B4  The source is deleted once the merge stands, and only if it is still as it was merged: what was added
    since would be lost. Failing to delete it does not fail the merge.
B5  What both sides did is determined against the commits in which they meet, wherever those were made. If
    they are unknown or cannot be read, nothing is merged.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.core.errors import (
    BadRequest,
    BranchInUse,
    BranchMoved,
    HistoricalVersionReclaimed,
    MergeConflicts,
    OmnigraphError,
    PolicyDenied,
    StorageError,
)
from omnigraph.core.failpoint import hit
from omnigraph.core.merge_conflict import MergeConflict
from omnigraph.exec.mutation import CommittedTables
from omnigraph.history.ancestry import Ancestor, Ancestry, Meeting
from omnigraph.history.branches import trimmed_name
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.merge.base import Base
from omnigraph.merge.plan import can_repoint, tables_to_merge
from omnigraph.merge.rows import RowReader
from omnigraph.merge.three_way import TableDelta, new_table_delta, table_delta
from omnigraph.merge.validation import CountedView, broken_rules, shaped_view
from omnigraph.operations.context import OpenGraph, check_message
from omnigraph.operations.merge.base import MergeBase
from omnigraph.operations.merge.publish import MergePlan, MergeRequest, publish_merge
from omnigraph.operations.merge.schemas import merge_schema
from omnigraph.operations.progress import TableProgressCallback, Tables, unseen
from omnigraph.operations.retry import Begun, RetryTime, retry_begun
from omnigraph.operations.schema.apply import follow_schema
from omnigraph.operations.upkeep import after_write
from omnigraph.policy.request import Action


class MergeOutcome(StrEnum):
    """How two histories were related."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


class DeleteRefusal(StrEnum):
    """Why a source was merged and not deleted."""

    MOVED = "moved"  # it has commits that were not merged
    IN_USE = "in_use"
    FORBIDDEN = "forbidden"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did, or a dry run would do; only a dry run has conflicts, a merge raises them.

    `rows_read` counts the rows that were looked at to find and check what both sides changed.
    """

    source: str
    target: str
    outcome: MergeOutcome
    commit: GraphCommit | None
    conflicts: tuple[MergeConflict, ...] = ()
    branch_deleted: bool = False
    branch_delete_error: str | None = None
    branch_delete_refusal: DeleteRefusal | None = None
    rows_read: int = 0


@dataclass(frozen=True, slots=True)
class _Heads:
    """Both sides as captured, where they meet, and how they are related."""

    source: ManifestState
    target: ManifestState
    ancestry: Ancestry
    base: Base
    outcome: MergeOutcome


def merge(
    graph: OpenGraph,
    source: str,
    *,
    into: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    delete: Callable[[ManifestState], None] | None = None,
    dry_run: bool = False,
    progress: TableProgressCallback = unseen,
) -> MergeResult:
    """Heal, capture both heads, find what the source did, check it against the target, publish; then upkeep.

    `delete` removes the source afterwards, as it was merged. A dry run stops before the first effect, heals
    nothing, and returns the conflicts.

    Raises:
        BadRequest: a branch cannot be merged into itself.
        BranchNotFound: there is no such branch.
        MergeConflicts: the two sides disagree; nothing was written.
        AmbiguousMergeBase: what they have in common is unknown or cannot be read; nothing was written.
        ConflictError: the target moved meanwhile, or another process holds a publish lock; nothing of this
            merge is visible.
    """
    name = trimmed_name(source)
    target = graph.enter_target(actor, Action.BRANCH_MERGE, into, source=name)
    check_message(message)
    if name == target:
        raise BadRequest(f"branch '{name}' cannot be merged into itself")
    if not dry_run:
        graph.require_writable()
        graph.heal_if_due()
    request = MergeRequest(name, target, actor, message)

    def attempt(begun: Begun) -> tuple[MergeResult, _Heads]:  # both are looked at behind gates
        return _merge_once(graph, request, begun, progress, dry_run=dry_run)

    result, heads = retry_begun(graph, target, attempt, time=RetryTime(0.0))
    if result.commit is not None and graph.last_seen(heads.target.branch).schema != heads.target.schema:
        follow_schema(graph, heads.target.branch)
    if result.commit is not None:
        after_write(graph, heads.target.snapshot(), result.commit, rows=result.rows_read)
    if delete is not None and not dry_run:
        result = _delete_source(result, delete, heads.source)
    return result


def _merge_once(
    graph: OpenGraph, request: MergeRequest, begun: Begun, progress: TableProgressCallback, *, dry_run: bool
) -> tuple[MergeResult, _Heads]:
    """Merge from fresh heads; return the result, and what both sides showed before."""
    queues = graph.parts.queues
    with queues.schema_gate, queues.branch_gates([request.source, request.target]):
        heads = _capture(graph, request, dry_run=dry_run)
        begun.base = heads.target
        hit("branch_merge.post_capture")
        result = MergeResult(request.source, request.target, heads.outcome, None)
        if heads.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
            return result, heads
        plan, conflicts = _plan_of_live_branches(graph, heads, progress, dry_run=dry_run)
        result = replace(result, conflicts=conflicts, rows_read=plan.rows_read)
        if dry_run:
            return result, heads
        if conflicts:
            raise MergeConflicts(conflicts)
        published = publish_merge(
            graph,
            request,
            plan,
            source_head=heads.source.head,
            source_history=heads.ancestry.record(
                heads.source.head.graph_commit_id, graph.parts.branches.ref_of
            ),
            captured=heads.target,
            progress=progress,
        )
        return replace(result, commit=published.commit), heads


def _capture(graph: OpenGraph, request: MergeRequest, *, dry_run: bool) -> _Heads:
    """Look at both branches once, and find where they meet (B1, B5); a dry run builds nothing on them."""
    source = graph.state(request.source) if dry_run else _durable(graph, request.source)
    target = graph.state(request.target)
    base = MergeBase(graph, source, target)
    meeting = base.find()
    outcome = _outcome(base.ancestry, meeting, source.head, target.head)
    return _Heads(source, target, base.ancestry, base.read(meeting), outcome)


def _durable(graph: OpenGraph, branch: str) -> ManifestState:
    """Return the newest state of a branch once it can no longer be taken back (B1)."""
    ref = graph.require_branch(branch).ref  # before a lock file is made for its name
    with graph.publisher.turn(branch):
        graph.publisher.supersede_unsynced(ref)
        state = graph.state(branch)
        graph.publisher.make_durable(state.ref, state.version)
    return state


def _outcome(ancestry: Ancestry, meeting: Meeting, ours: GraphCommit, theirs: GraphCommit) -> MergeOutcome:
    """Return how two heads are related; equivalent commits count as one."""
    source, target = (ancestry.effective(head.graph_commit_id) for head in (ours, theirs))
    base = ancestry.effective(meeting.commit_id) if isinstance(meeting, Ancestor) else None
    if source in {base, target}:
        return MergeOutcome.ALREADY_UP_TO_DATE
    return MergeOutcome.FAST_FORWARD if target == base else MergeOutcome.MERGED


def _plan_of_live_branches(
    graph: OpenGraph, heads: _Heads, progress: TableProgressCallback, *, dry_run: bool
) -> tuple[MergePlan, tuple[MergeConflict, ...]]:
    """Plan the merge; if rows are missing because a branch was deleted meanwhile, the error says so."""
    try:
        return _plan(graph, heads, progress, dry_run=dry_run)
    except (StorageError, HistoricalVersionReclaimed):
        for state in (heads.source, heads.target):
            graph.parts.branches.confirm(state.branch)
        raise


def _plan(
    graph: OpenGraph, heads: _Heads, progress: TableProgressCallback, *, dry_run: bool
) -> tuple[MergePlan, tuple[MergeConflict, ...]]:
    """Return what the target takes from the source, and all conflicts (B2)."""
    parts, target = graph.parts, heads.target.snapshot()
    schemas = merge_schema(graph, heads.base, heads.source, heads.target, dry_run=dry_run)
    if schemas.conflicts:
        plan = MergePlan((), (), (), 0, schemas.catalog)
        return plan, tuple(sorted(schemas.conflicts, key=lambda conflict: conflict.sort_key))
    reader = RowReader(parts.store, schemas.shapes)
    committed = CommittedTables(target, parts.store, parts.pinned)
    view = CountedView(shaped_view(committed, graph.catalog_of(target), schemas.catalog))
    is_fast_forward = heads.outcome is MergeOutcome.FAST_FORWARD
    source = heads.source.snapshot()
    looked_at = list(tables_to_merge(heads.base, source, target, parts.pinned, schemas.names))
    pointed = {points.table_key for points in looked_at if can_repoint(points, heads.target.branch)}
    compared = [points for points in looked_at if not (is_fast_forward and points.table_key in pointed)]
    rows = {
        points.table_key: _of_name(source, schemas.names, points.table_key).row_count for points in compared
    }
    rows |= {key: entry.row_count for key, entry in schemas.added}
    tables = Tables("merge", rows, progress, stage="changes")
    deltas, new = list[TableDelta](), list[TableDelta]()
    for points in compared:
        with tables.at(points.table_key):
            deltas.append(table_delta(reader, points))
    for key, entry in schemas.added:
        with tables.at(key):
            new.append(new_table_delta(reader, key, parts.pinned(entry)))
    conflicts = [conflict for delta in deltas for conflict in delta.conflicts]
    if not is_fast_forward:  # B3
        conflicts += broken_rules([*deltas, *new], schemas.catalog, view)
    plan = MergePlan(
        looked_at=tuple(points.table_key for points in looked_at),
        deltas=tuple(_written(deltas, pointed)),
        repointed=tuple(_of_name(source, schemas.names, key) for key in sorted(pointed)),
        rows_read=reader.rows_read + view.rows_read,
        catalog=schemas.catalog,
        change=schemas.change,
        added=tuple((delta, entry) for delta, (_, entry) in zip(new, schemas.added, strict=True)),
    )
    return plan, tuple(sorted(conflicts, key=lambda conflict: conflict.sort_key))


def _written(deltas: Iterable[TableDelta], pointed: set[str]) -> Iterable[TableDelta]:
    """Return the deltas that are applied row by row; a table that stays the same is not written."""
    return (delta for delta in deltas if delta.table_key not in pointed and not delta.is_empty)


def _of_name(snapshot: Snapshot, names: Mapping[TableIdentity, str], table_key: str) -> TableEntry:
    """Return the table of a snapshot that will have a name."""
    return next(entry for entry in snapshot.entries.values() if names.get(entry.identity) == table_key)


def _delete_source(
    result: MergeResult, delete: Callable[[ManifestState], None], merged: ManifestState
) -> MergeResult:
    """Delete the source as it was merged; a refusal is reported, and changes nothing about the merge (B4)."""
    try:
        delete(merged)
    except OmnigraphError as error:
        return replace(result, branch_delete_error=str(error), branch_delete_refusal=_refusal(error))
    return replace(result, branch_deleted=True)


def _refusal(error: OmnigraphError) -> DeleteRefusal:
    match error:
        case BranchMoved():
            return DeleteRefusal.MOVED
        case BranchInUse():
            return DeleteRefusal.IN_USE
        case PolicyDenied():
            return DeleteRefusal.FORBIDDEN
        case _:
            return DeleteRefusal.FAILED
