"""From a validated write to a published one: stage, gates, one more look, the commit section.

Q1  Nothing durable but unreferenced files exists before the commit section.
Q2  Under the gates every table that was touched or read must still be at its pin, and none may be ahead of
    it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.commit.changes import Expectation, LineageIntent, published_version
from omnigraph.commit.drift import refuse_drift
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher, PublishOutcome
from omnigraph.commit.section import FailpointNames, TableCommit, WriteIntent, run_commit_section
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.errors import ExpectedVersionMismatch, PreconditionFailed, ReadSetChanged
from omnigraph.core.failpoint import hit
from omnigraph.history.coordinator import MAIN
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.staging.stage import stage_all
from omnigraph.staging.write_set import WriteSet, work_of
from omnigraph.storage.staged import StagedWrite
from omnigraph.validate.columns import Rows

WRITE_FAILPOINTS = FailpointNames(
    post_sidecar="mutation.post_sidecar_pre_commit",
    post_table="mutation.post_table_commit",
    pre_publish="mutation.post_finalize_pre_publisher",
    post_publish="mutation.post_publish_pre_sidecar_delete",
)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Who asks for a write, on what it was prepared, and what it requires."""

    kind: WriterKind
    snapshot: Snapshot
    branch_ref: str | None
    actor: str | None
    message: str | None = None
    if_commit: str | None = None


def finalize(
    parts: Parts,
    publisher: ManifestPublisher,
    request: WriteRequest,
    write_set: WriteSet,
    rows: Mapping[str, Rows],
    *,
    concurrency: int = 1,
) -> PublishOutcome:
    """Stage a validated write and publish it.

    Raises:
        ExpectedVersionMismatch: a table moved since it was read.
        ReadSetChanged: a table that was only read moved.
        PreconditionFailed: the branch is not at the commit that the caller requires.
        RecoveryRequired: an unfinished write is in the way, or this one ended unfinished.
    """
    work = list(work_of(write_set, rows, request.snapshot.entries))
    staged = stage_all(
        work, parts.store, parts.stager, lambda item: parts.address(item.entry), concurrency=concurrency
    )
    return finalize_staged(
        parts, publisher, request, write_set, [(item.entry, write) for item, write in staged]
    )


def finalize_staged(
    parts: Parts,
    publisher: ManifestPublisher,
    request: WriteRequest,
    write_set: WriteSet,
    staged: Sequence[tuple[TableEntry, StagedWrite]],
) -> PublishOutcome:
    """Publish a write that is staged already, whoever wrote its files; of the set only its tables are used.

    Raises:
        ExpectedVersionMismatch, ReadSetChanged, PreconditionFailed, RecoveryRequired: as `finalize`.
    """
    snapshot = request.snapshot
    hit("mutation.post_stage_pre_gate")
    # Tables that are only read are held, too: inside a process nothing of Q2 can change before the publish,
    # and a write never has to be undone because a neighbour was faster.
    looked_at = sorted(write_set.touched | write_set.read)
    with parts.queues.acquire_many((table_key, snapshot.branch) for table_key in looked_at):
        _check_again(parts, request, write_set, [entry for entry, _ in staged])
        hit("mutation.post_gate_pre_sidecar")
        lineage = LineageIntent(
            parts.new_id(), snapshot.branch, request.actor, parts.clock(), message=request.message
        )
        expected = _expectations(snapshot, write_set)
        intent = WriteIntent(
            request.kind,
            snapshot.branch,
            request.branch_ref,
            lineage,
            request.actor,
            expected,
            WRITE_FAILPOINTS,
        )
        commits = [_table_commit(parts, entry, write, request.kind) for entry, write in staged]
        return run_commit_section(parts, publisher, intent, commits)


def check_if_commit(state: ManifestState, if_commit: str | None) -> None:
    """Compare the head with the commit that a caller requires, up to maintenance commits.

    Raises:
        PreconditionFailed: the head shows other rows than that commit.
    """
    if if_commit is None:
        return
    required = state.commits.find(if_commit)
    head = state.head
    effective = state.commits.effective
    if required is None or effective(required) != effective(head):
        branch = state.branch or MAIN
        raise PreconditionFailed(branch=branch, expected=if_commit, actual=head.graph_commit_id)


def _check_again(
    parts: Parts, request: WriteRequest, write_set: WriteSet, entries: Sequence[TableEntry]
) -> None:
    """Look once more, under the gates and before the first effect (Q2)."""
    snapshot = request.snapshot
    state = parts.coordinator.state(snapshot.branch, request.branch_ref)
    check_if_commit(state, request.if_commit)
    for table_key in sorted(write_set.touched | write_set.read):
        entry = snapshot.entry(table_key)
        actual = published_version(state.tables, entry.identity)
        if actual == entry.version:
            continue
        if table_key in write_set.touched:
            raise ExpectedVersionMismatch(table_key=table_key, expected=entry.version, actual=actual)
        raise ReadSetChanged(member=table_key, expected=entry.version, actual=actual)
    refuse_drift(parts, entries, snapshot.branch, request.branch_ref)


def _expectations(snapshot: Snapshot, write_set: WriteSet) -> dict[TableIdentity, Expectation]:
    entries = [snapshot.entry(table_key) for table_key in write_set.touched | write_set.read]
    return {entry.identity: Expectation(entry.table_key, entry.version) for entry in entries}


def _table_commit(parts: Parts, entry: TableEntry, staged: StagedWrite, kind: WriterKind) -> TableCommit:
    return TableCommit(
        entry,
        staged.transaction_uuid,
        staged.files,
        lambda operation_id: parts.stager.commit_staged(
            staged, operation_id=operation_id, writer_kind=kind.value
        ),
    )
