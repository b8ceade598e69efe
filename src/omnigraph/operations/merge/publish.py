"""Publishing a merge: the target's tables, one more look, then phases A to D.

G1  Nothing is written before the target is known to be where it was captured; every table of the target is
    held until the merge has landed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog
from omnigraph.commit.changes import UpdateTable
from omnigraph.commit.multi_step import Steps, table_commit
from omnigraph.commit.publish import PublishOutcome
from omnigraph.commit.section import FailpointNames, TableCommit
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import Attempt, Change, MergedCommit, entered, owns
from omnigraph.core.errors import ReadSetChanged
from omnigraph.history.commits import GraphCommit
from omnigraph.history.fold import TableEntry
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.history.state import ManifestState
from omnigraph.merge.plan import tables_read
from omnigraph.merge.rows import as_texts
from omnigraph.merge.three_way import TableDelta
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
    """Who merges what into what."""

    source: str
    target: str
    actor: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does to the target: rows of some tables, another version of others.

    `looked_at` are all tables on which the decision depends, written or not.
    """

    looked_at: tuple[str, ...]
    deltas: tuple[TableDelta, ...]
    repointed: tuple[TableEntry, ...]  # as the source has them
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
    """Write what the target takes, and make it visible with a commit that has two parents.

    Raises:
        ReadSetChanged: the target moved since it was captured.
        BranchNotFound: the target is gone, or was created again.
        ConflictError: another writer was first; with `recovery_operation_id` where effects wait for recovery.
        RecoveryRequired: the outcome is unknown or unfinished.
    """
    parts, branch = graph.parts, captured.branch
    snapshot = captured.snapshot()
    entries = snapshot.entries
    written = [entries[delta.table_key] for delta in plan.deltas]
    pointed = [entries[entry.table_key] for entry in plan.repointed]
    moved = frozenset(entry.table_key for entry in (*written, *pointed))
    change = Change(
        WriterKind.BRANCH_MERGE,
        snapshot,
        moved,
        _FAILPOINTS,
        read=_looked_at(graph.catalog_of(snapshot), plan) - moved,
        actor=request.actor,
        message=request.message,
        merged=MergedCommit(source_head.graph_commit_id, source_history),
        pointers=tuple(_pointer(entry, branch.name) for entry in plan.repointed),
        requires=lambda state: _refuse_other_head(captured, state),
    )
    owned = [entry for entry in (*written, *pointed) if owns(branch, entry)]
    with (
        entered(parts, graph.publisher, change, moved=owned, held=entries) as attempt,
        attempt.forked(written) as forks,
    ):
        commits = [_commit(graph, attempt, delta, forks.tables[delta.table_key]) for delta in plan.deltas]
        return attempt.commit(commits, [forks])


def _refuse_other_head(captured: ManifestState, now: ManifestState) -> None:
    """Refuse a target that is not where it was captured, before the first effect (G1)."""
    if now.head != captured.head:
        raise ReadSetChanged(
            member=f"branch '{captured.branch.name}'",
            expected=captured.head.graph_commit_id,
            actual=now.head.graph_commit_id,
        )


def _looked_at(catalog: Catalog, plan: MergePlan) -> frozenset[str]:
    """Return the tables on which the decision depends."""
    losing = {delta.table_key for delta in plan.deltas if len(delta.deleted)}
    losing |= {entry.table_key for entry in plan.repointed}  # their rows were not necessarily looked at
    return frozenset(plan.looked_at) | frozenset(tables_read(catalog, plan.looked_at, losing))


def _pointer(entry: TableEntry, branch: str) -> UpdateTable:
    pin = PublishedPin(
        entry.version,
        entry.pin.ref,
        entry.row_count,
        entry.pin.transaction_uuid,
        branch,
        upkeep_version=entry.pin.upkeep_version,
    )
    return UpdateTable(entry.identity, entry.table_key, pin)


def _commit(graph: OpenGraph, attempt: Attempt, delta: TableDelta, written: TableEntry) -> TableCommit:
    steps = Steps(
        written,
        delta.inserted.replacing_chunks if len(delta.inserted) else None,
        delta.changed.replacing_chunks if len(delta.changed) else None,
        as_texts(delta.deleted),
    )
    return table_commit(
        graph.parts,
        steps,
        new_files=attempt.new_files(written),
        is_first_touch=attempt.is_first_touch(written),
    )
