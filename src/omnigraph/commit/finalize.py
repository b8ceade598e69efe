"""From validated rows to a published write: stage what the branch owns, enter, stage the rest, commit."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.commit.outcome import Made
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher, PublishOutcome
from omnigraph.commit.section import FailpointNames
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import Change, entered, owns
from omnigraph.core.errors import PreconditionFailed
from omnigraph.core.failpoint import hit
from omnigraph.core.together import REQUESTS_AT_ONCE
from omnigraph.history.commits import CommitOperation
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.staging.write_set import TableWork, WriteSet, work_of
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.validate.columns import TypedRows

WRITE_FAILPOINTS = FailpointNames(
    post_sidecar="write.post_sidecar_pre_commit",
    pre_table="write.pre_table_commit_at_once",
    post_table="write.post_table_commit",
    pre_publish="write.post_finalize_pre_publisher",
    post_publish="write.post_publish_pre_sidecar_delete",
)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Who asks for a write, what it was prepared on, and what it requires."""

    kind: WriterKind
    snapshot: Snapshot
    actor: str | None
    message: str | None = None
    if_commit: str | None = None
    operations: tuple[CommitOperation, ...] = ()

    def change(self, write_set: WriteSet) -> Change:
        """Return the change that a set of writes makes."""
        return Change(
            self.kind,
            self.snapshot,
            frozenset(write_set.touched),
            WRITE_FAILPOINTS,
            read=frozenset(write_set.read),
            actor=self.actor,
            message=self.message,
            operations=self.operations,
            requires=lambda state: check_if_commit(state, self.if_commit),
        )


def finalize(
    parts: Parts,
    publisher: ManifestPublisher,
    request: WriteRequest,
    write_set: WriteSet,
    rows: Mapping[str, TypedRows],
    *,
    concurrency: int = 1,
    made: Sequence[Made] = (),
) -> PublishOutcome:
    """Stage a validated write and publish it; `made` is told when the commit begins, before it does.

    Raises:
        ExpectedVersionMismatch: a table moved since it was read.
        ReadSetChanged: a table that was only read moved.
        PreconditionFailed: the branch is not at the commit that the caller requires.
        RecoveryRequired: another write is unfinished, or this one ended unfinished.
    """
    branch = request.snapshot.branch_identity
    work = list(work_of(write_set, rows, request.snapshot.entries))
    owned = [item for item in work if owns(branch, item.entry)]
    inherited = [item for item in work if not owns(branch, item.entry)]
    staged = _stage(parts, owned, concurrency)
    hit("write.post_stage_pre_gate")
    change = request.change(write_set)
    with entered(parts, publisher, change, moved=[entry for entry, _ in staged]) as attempt:
        hit("write.post_gate_pre_sidecar")
        with attempt.forked(item.entry for item in inherited) as forks:
            first = [replace(item, entry=forks.tables[item.entry.table_key]) for item in inherited]
            staged += _stage(parts, first, concurrency)
            return attempt.commit([attempt.staged(*write) for write in staged], [*made, forks])


def finalize_staged(
    parts: Parts,
    publisher: ManifestPublisher,
    request: WriteRequest,
    write_set: WriteSet,
    staged: Sequence[tuple[TableEntry, StagedWrite]],
    *,
    made: Sequence[Made],
) -> PublishOutcome:
    """Publish a write that is already staged, whoever wrote its files; of the set only its tables are used.

    An entry whose ref is not that of the snapshot is on a fork that the caller has made. `made` is
    everything that the caller itself removes if there is no commit.

    Raises:
        ExpectedVersionMismatch, ReadSetChanged, PreconditionFailed, RecoveryRequired: as `finalize`.
    """
    snapshot = request.snapshot
    owned = [entry for entry, _ in staged if owns(snapshot.branch_identity, snapshot.entry(entry.table_key))]
    hit("write.post_stage_pre_gate")
    with entered(parts, publisher, request.change(write_set), moved=owned) as attempt:
        hit("write.post_gate_pre_sidecar")
        return attempt.commit([attempt.staged(*write) for write in staged], made)


def check_if_commit(state: ManifestState, if_commit: str | None) -> None:
    """Compare the head with the commit that a caller requires, up to maintenance commits.

    Raises:
        PreconditionFailed: the head does not show the same rows as that commit.
    """
    if if_commit is None:
        return
    required = state.commits.find(if_commit)
    head = state.head
    effective = state.commits.effective
    if required is None or effective(required) != effective(head):
        raise PreconditionFailed(branch=state.branch.name, expected=if_commit, actual=head.graph_commit_id)


def _stage(parts: Parts, work: Sequence[TableWork], concurrency: int) -> list[tuple[TableEntry, StagedWrite]]:
    if parts.local_root is None:  # each table waits for the store, not for a processor
        concurrency = max(concurrency, REQUESTS_AT_ONCE)
    staged = stage_all(work, parts.stager, lambda item: parts.open(item.entry), concurrency=concurrency)
    return [(item.entry, write) for item, write in staged]


def stage_all(
    work: Sequence[TableWork],
    stager: TableStager,
    open_table: Callable[[TableWork], SnapshotHandle],
    *,
    concurrency: int = 1,
) -> list[tuple[TableWork, StagedWrite]]:
    """Stage every table at its captured pin; a table that turns out to need nothing is left out."""

    def stage(item: TableWork) -> StagedWrite | None:
        return _stage_one(item, stager, open_table(item))

    if concurrency == 1 or len(work) == 1:
        staged = [stage(item) for item in work]
    else:
        with ThreadPoolExecutor(max_workers=concurrency) as pool:
            staged = list(pool.map(stage, work))
    return [(item, write) for item, write in zip(work, staged, strict=True) if write is not None]


def _stage_one(item: TableWork, stager: TableStager, handle: SnapshotHandle) -> StagedWrite | None:
    rows = None if item.rows is None else item.rows.table
    match item.change.mode:
        case "delete":
            return stager.stage_delete(handle, item.change.removed_ids.to_pylist())
        case "overwrite":
            return stager.stage_overwrite(handle, arrow_schema(item.change.type), rows)
        case "append":
            assert rows is not None
            return stager.stage_append(handle, rows)
        case "merge":
            assert rows is not None
            return stager.stage_upsert(handle, rows)
