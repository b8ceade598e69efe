"""Publishing a merge: the target's tables, one more look, then phases A to D.

G1  Nothing is written before the target is known to stand where it was captured; every table of the target is
    held until the merge has landed.
G2  A merge in which no HEAD moves, because tables are only repointed or stay as they are, has no sidecar: it
    is one publish.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.commit.changes import Expectation, LineageIntent, UpdateTable
from omnigraph.commit.drift import refuse_drift
from omnigraph.commit.forks import fork_files, forked, owns
from omnigraph.commit.multi_step import Steps, table_commit
from omnigraph.commit.publish import PublishOutcome
from omnigraph.commit.section import FailpointNames, TableCommit, WriteIntent
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import commit_write
from omnigraph.core.errors import ReadSetChanged
from omnigraph.history.commits import GraphCommit
from omnigraph.history.coordinator import MAIN
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity
from omnigraph.history.manifest_rows import Pin
from omnigraph.history.state import ManifestState
from omnigraph.merge.plan import tables_read
from omnigraph.merge.rows import as_texts
from omnigraph.merge.three_way import Points, TableDelta
from omnigraph.operations.context import OpenGraph

_FAILPOINTS = FailpointNames(
    post_sidecar="branch_merge.post_sidecar_pre_commit",
    post_table="branch_merge.post_table",
    pre_confirm="branch_merge.post_phase_b_pre_confirm",
    pre_publish="branch_merge.post_phase_b_pre_manifest_commit",
    post_publish="branch_merge.post_publish_pre_sidecar_delete",
)


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Who merges what into what; none is main."""

    source: str | None
    target: str | None
    actor: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does to the target: rows of some tables, another version of others.

    `looked_at` are all tables that the decision rests on, written or not.
    """

    looked_at: tuple[str, ...]
    deltas: tuple[TableDelta, ...]
    repointed: tuple[Points, ...]
    rows_read: int


def publish_merge(
    graph: OpenGraph,
    request: MergeRequest,
    plan: MergePlan,
    *,
    source_head: GraphCommit,
    source_history: Mapping[str, object],
    captured: ManifestState,
) -> PublishOutcome:
    """Write what the target takes, and make it visible with a commit of two parents.

    Raises:
        ReadSetChanged: the target moved since it was captured.
        BranchNotFound: the target is gone, or was made again.
        ConflictError: somebody else was first; with `recovery_operation_id` where effects wait for recovery.
        RecoveryRequired: the outcome is unknown or unfinished.
    """
    parts, branch = graph.parts, request.target
    entries = captured.snapshot().entries
    written = [entries[delta.table_key] for delta in plan.deltas]
    pointed = [entries[points.table_key] for points in plan.repointed]
    with parts.queues.acquire_many((table_key, branch) for table_key in entries):
        _check_again(graph, captured)
        owned = [entry for entry in (*written, *pointed) if owns(branch, entry)]
        refuse_drift(parts, owned, branch, captured.ref)
        with forked(parts, branch, written) as forks:
            intent = WriteIntent(
                WriterKind.BRANCH_MERGE,
                branch,
                captured.ref,
                LineageIntent(
                    parts.new_id(),
                    branch,
                    request.actor,
                    parts.clock(),
                    merged_parent_commit_id=source_head.graph_commit_id,
                    message=request.message,
                    merged_history=source_history,
                ),
                request.actor,
                _expectations(graph, plan, entries),
                _FAILPOINTS,
                tuple(_pointer(points, branch) for points in plan.repointed),
            )
            commits = [
                _commit(graph, delta, entries[delta.table_key], forks.tables[delta.table_key])
                for delta in plan.deltas
            ]
            if commits:
                return commit_write(parts, graph.publisher, intent, commits, [forks])
            parts.check_lease()
            return graph.publisher.publish(
                branch, captured.ref, intent.pointers, intent.expected, intent.lineage
            )


def _check_again(graph: OpenGraph, captured: ManifestState) -> None:
    """Look at the target once more, before the first effect (G1)."""
    if captured.branch is not None:
        graph.parts.branches.require(captured.branch, captured.ref)
    head = graph.parts.coordinator.state(captured.branch, captured.ref).head
    if head != captured.head:
        raise ReadSetChanged(
            member=f"branch '{captured.branch or MAIN}'",
            expected=captured.head.graph_commit_id,
            actual=head.graph_commit_id,
        )


def _expectations(
    graph: OpenGraph, plan: MergePlan, entries: Mapping[str, TableEntry]
) -> dict[TableIdentity, Expectation]:
    losing = {delta.table_key for delta in plan.deltas if len(delta.deleted)}
    losing |= {points.table_key for points in plan.repointed}  # their rows were not necessarily looked at
    keys = {*plan.looked_at, *tables_read(graph.catalog, plan.looked_at, losing)}
    return {entries[key].identity: Expectation.of(entries[key]) for key in sorted(keys)}


def _pointer(points: Points, branch: str | None) -> UpdateTable:
    entry = points.source.entry
    pin = Pin(
        entry.version,
        entry.owner,
        entry.row_count,
        entry.pin.transaction_uuid,
        branch,
        upkeep_version=entry.pin.upkeep_version,
    )
    return UpdateTable(entry.identity, points.table_key, pin)


def _commit(graph: OpenGraph, delta: TableDelta, shown: TableEntry, written: TableEntry) -> TableCommit:
    is_first_touch = written.owner != shown.owner
    steps = Steps(
        written,
        delta.inserted.replacing_chunks if len(delta.inserted) else None,
        delta.changed.replacing_chunks if len(delta.changed) else None,
        as_texts(delta.deleted),
    )
    files = fork_files(graph.parts, written) if is_first_touch else ()
    return table_commit(graph.parts, steps, new_files=files, is_first_touch=is_first_touch)
