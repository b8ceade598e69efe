"""From a validated write to a published one: stage, gates, one more look, the commit section.

Q1  Nothing durable but unreferenced files exists before the commit section.
Q2  Under the gates every table that was touched or read must still be at its pin, and none may be ahead of
    it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from omnigraph.commit.changes import Expectation, LineageIntent, published_version
from omnigraph.commit.drift import refuse_drift
from omnigraph.commit.forks import fork_files, forked, owns
from omnigraph.commit.outcome import Made
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher, PublishOutcome
from omnigraph.commit.section import FailpointNames, TableCommit, WriteIntent
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import commit_write
from omnigraph.core.errors import ExpectedVersionMismatch, PreconditionFailed, ReadSetChanged
from omnigraph.core.failpoint import hit
from omnigraph.history.coordinator import MAIN
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.staging.stage import stage_all
from omnigraph.staging.write_set import TableWork, WriteSet, work_of
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
    branch = request.snapshot.branch
    work = list(work_of(write_set, rows, request.snapshot.entries))
    owned = [item for item in work if owns(branch, item.entry)]
    inherited = [item for item in work if not owns(branch, item.entry)]
    staged = _stage(parts, owned, concurrency)
    with (
        _gates(parts, request, write_set, [entry for entry, _ in staged]),
        # What is staged for a fork lies in the fork's own place, so the fork comes first.
        forked(parts, branch, [item.entry for item in inherited]) as forks,
    ):
        first = [replace(item, entry=forks.tables[item.entry.table_key]) for item in inherited]
        staged += _stage(parts, first, concurrency)
        return _commit(parts, publisher, request, write_set, staged, made=[forks])


def finalize_staged(
    parts: Parts,
    publisher: ManifestPublisher,
    request: WriteRequest,
    write_set: WriteSet,
    staged: Sequence[tuple[TableEntry, StagedWrite]],
    *,
    made: Sequence[Made],
) -> PublishOutcome:
    """Publish a write that is staged already, whoever wrote its files; of the set only its tables are used.

    An entry whose owner is not that of the snapshot lies on a fork that the caller has made. `made` is all
    that the caller removes by itself where no commit comes of it.

    Raises:
        ExpectedVersionMismatch, ReadSetChanged, PreconditionFailed, RecoveryRequired: as `finalize`.
    """
    owned = [entry for entry, _ in staged if not _is_first_touch(request, entry)]
    with _gates(parts, request, write_set, owned):
        return _commit(parts, publisher, request, write_set, staged, made=made)


@contextmanager
def _gates(
    parts: Parts, request: WriteRequest, write_set: WriteSet, owned: Sequence[TableEntry]
) -> Iterator[None]:
    """Hold the queues of every table of a write, and look once more (Q2).

    Tables that are only read are held, too: inside a process nothing of Q2 can change before the publish, and
    a write never has to be undone because a neighbour was faster.
    """
    hit("mutation.post_stage_pre_gate")
    looked_at = sorted(write_set.touched | write_set.read)
    with parts.queues.acquire_many((table_key, request.snapshot.branch) for table_key in looked_at):
        _check_again(parts, request, write_set, owned)
        hit("mutation.post_gate_pre_sidecar")
        yield


def _stage(parts: Parts, work: Sequence[TableWork], concurrency: int) -> list[tuple[TableEntry, StagedWrite]]:
    staged = stage_all(
        work, parts.store, parts.stager, lambda item: parts.address(item.entry), concurrency=concurrency
    )
    return [(item.entry, write) for item, write in staged]


def _commit(
    parts: Parts,
    publisher: ManifestPublisher,
    request: WriteRequest,
    write_set: WriteSet,
    staged: Sequence[tuple[TableEntry, StagedWrite]],
    *,
    made: Sequence[Made],
) -> PublishOutcome:
    snapshot = request.snapshot
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
    commits = [_table_commit(parts, request, entry, write) for entry, write in staged]
    return commit_write(parts, publisher, intent, commits, made)


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
    if snapshot.branch is not None:
        parts.branches.require(snapshot.branch, request.branch_ref)
    state = parts.coordinator.state(snapshot.branch, request.branch_ref)
    check_if_commit(state, request.if_commit)
    for table_key in sorted(write_set.touched | write_set.read):
        entry = snapshot.entry(table_key)
        if Expectation.of(entry).is_met(state.tables, entry.identity):
            continue
        actual = published_version(state.tables, entry.identity)
        if table_key in write_set.touched:
            raise ExpectedVersionMismatch(table_key=table_key, expected=entry.version, actual=actual)
        raise ReadSetChanged(member=table_key, expected=entry.version, actual=actual)
    refuse_drift(parts, entries, snapshot.branch, request.branch_ref)


def _expectations(snapshot: Snapshot, write_set: WriteSet) -> dict[TableIdentity, Expectation]:
    entries = [snapshot.entry(table_key) for table_key in write_set.touched | write_set.read]
    return {entry.identity: Expectation.of(entry) for entry in entries}


def _is_first_touch(request: WriteRequest, entry: TableEntry) -> bool:
    """Return whether a table is written on a fork that the branch does not show yet."""
    return entry.owner != request.snapshot.entry(entry.table_key).owner


def _table_commit(parts: Parts, request: WriteRequest, entry: TableEntry, staged: StagedWrite) -> TableCommit:
    is_first = _is_first_touch(request, entry)
    return TableCommit(
        entry,
        staged.transaction_uuid,
        (*staged.files, *fork_files(parts, entry)) if is_first else staged.files,
        lambda operation_id: parts.stager.commit_staged(
            staged, operation_id=operation_id, writer_kind=request.kind.value
        ),
        is_first_touch=is_first,
    )
