"""The commit section: phases A to D, the same for every writer.

A  writer lock taken, sidecar written and synced
B  one commit per table (or what the library commits in one call, or the steps of a merge), then their version
   files synced; a merge of several commits in a table then confirms the versions that came out in its sidecar
C  one publish
D  sidecar deleted, then the lock file

X1  Nothing moves a HEAD before A is done; what happens between the first commit and the publish is named in
    the sidecar.
X2  A failure in B that provably had no effect withdraws the sidecar; any doubt leaves it for recovery.
X3  The sidecar is deleted once the publish is known to have landed; failing to do so does not fail the write.
X4  A merge that makes several commits in a table publishes what it has confirmed: until then its tables may
    show a part of it, and go back.
X5  After a failed sync nothing is synced again and published: pages may be lost that a second sync does not
    report. The sidecar says that the write goes back, synced if possible.
X6  On an object store this process makes sure that it counts as a writer before every commit of a table and
    before the publish. One that was taken for dead removes nothing: a healer owns its sidecar. A sidecar is
    withdrawn by a compare-and-swap that binds every healer to go back, and one that stays is let go.
X7  A commit that a library call made on HEAD is published only if every version since the pin is a layout
    commit of ours: otherwise it would show the rows of a writer that is not done.
X8  In an object store tables with staged rows are committed at once: each waits only for its own requests.
    All of them have ended before anything else is done. Indexes, which land behind fences too, are not: one
    that is refused keeps the others from landing.
X9  Tables of a layout write of several settle one by one, before anything is judged. Each is then judged by
    the pin that is published now (X7): what others have published meanwhile may lie below. A table with rows
    of a writer that is not done is left out of the publish; the sidecar stays for it, and goes forward when
    that writer has ended. The publish waits for writers of other processes that only read the tables: they
    depend on the pins that it moves.
X10 Before A every staged file is there, to its end: the library does not report that its last write failed,
    and a cleanup may have taken what a writer slept on.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.commit.changes import Expectation, LineageIntent, PinChange, pinned_change
from omnigraph.commit.outcome import Landed, NoEffect, Pending, Proof, SectionOutcome
from omnigraph.commit.parts import Parts, boot_id, host_name, process_id
from omnigraph.commit.publish import ManifestPublisher, PublishOutcome
from omnigraph.commit.recovery.classify import is_layout_only
from omnigraph.commit.recovery.kinds import RecoveryKind
from omnigraph.commit.recovery.observe import ours
from omnigraph.commit.recovery.pending import bind_to_go_back, let_go, put_new, rewrite, running
from omnigraph.commit.schema_change import SchemaChange
from omnigraph.commit.sidecar import (
    RECOVERY_DIR,
    Outcome,
    PointerUpdate,
    ReadTable,
    RecoveryPlan,
    Sidecar,
    SidecarTable,
    WriterKind,
)
from omnigraph.commit.table_locks import turn_of_tables
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import (
    CommitConflict,
    ConflictError,
    ExpectedVersionMismatch,
    OmnigraphError,
    RecoveryRequired,
    StaleCommit,
    WriterEnded,
    WriterLeaseHeld,
)
from omnigraph.core.failpoint import hit
from omnigraph.core.together import each
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity, TableIdentity
from omnigraph.history.manifest_rows import PublishedPin
from omnigraph.storage.control.durability import SyncFailed
from omnigraph.storage.control.locks import WriterLock
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.whole import check_whole
from omnigraph.storage.tables.stage import CommittedTable

PUBLISH_PAUSE_S = 0.02  # for the publish of a writer that a layout lies above; it grows with the attempts


@dataclass(frozen=True, slots=True)
class TableCommit:
    """One table of a write: how its HEAD will move.

    `run` makes the commit (or commits) and returns the outcome, or None if there was nothing to do after all.
    The entry's ref is the one that is written on; on a first touch, a fork that only this write knows.
    `others_files` are those that other processes wrote and synced.
    """

    entry: TableEntry
    transaction_uuid: str | None
    staged_files: tuple[str, ...]
    run: Callable[[str], CommittedTable | None]
    is_first_touch: bool = False
    others_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailpointNames:
    """Where tests stop this writer."""

    post_sidecar: str
    post_table: str | None
    pre_publish: str
    post_publish: str
    pre_confirm: str | None = None
    pre_table: str | None = None


@dataclass(frozen=True, slots=True)
class LayoutRules:
    """How the tables of a layout write are done: how many at once, and how often they are judged (X9)."""

    tables_at_once: int = 1
    publishes_max: int = 1


@dataclass(frozen=True, slots=True)
class WriteIntent:
    """Who writes, where, and what must still hold when it becomes visible.

    `pointers` are new pins of tables whose HEAD does not move; `schema` is what else the publish says.
    """

    kind: WriterKind
    branch: BranchIdentity
    lineage: LineageIntent
    requested_by: str | None
    expected: Mapping[TableIdentity, Expectation]
    names: FailpointNames
    pointers: tuple[PinChange, ...] = ()
    schema: SchemaChange | None = None
    layout: LayoutRules | None = None


def run_commit_section(
    parts: Parts, publisher: ManifestPublisher, intent: WriteIntent, commits: Sequence[TableCommit]
) -> SectionOutcome:
    """Carry out phases A to D and say how they ended; called by `commit/write.py`, which shields it."""
    return _Section(parts, publisher, intent, commits).run()


class _Section:
    """One pass through the phases.

    `is_settled` is whether nothing is left for recovery, `has_effects` whether a table may have moved,
    `committed` the tables that are known to have moved, and `left_out` those that wait for others (X9).
    """

    def __init__(
        self, parts: Parts, publisher: ManifestPublisher, intent: WriteIntent, commits: Sequence[TableCommit]
    ) -> None:
        self.parts = parts
        self.publisher = publisher
        self.intent = intent
        self.commits = sorted(commits, key=lambda commit: commit.entry.table_key)
        self.is_settled = True
        self.has_effects = False
        self.committed: list[tuple[TableCommit, CommittedTable]] = []
        self.left_out: list[TableCommit] = []

    def run(self) -> SectionOutcome:
        folder = self.parts.local_root
        lock = None
        try:
            staged = [file for commit in self.commits for file in commit.staged_files]
            self.parts.syncer.sync(staged, stage="staged")
            check_whole(file for commit in self.commits for file in commit.others_files)  # X10
            if folder is not None:
                lock = WriterLock.acquire(folder / RECOVERY_DIR, self.parts.new_id)
        except Exception as error:  # noqa: BLE001 - the value carries it
            return NoEffect(Proof.NO_SIDECAR, error)
        operation_id = self.parts.new_id() if lock is None else lock.operation_id
        try:
            with running(operation_id):
                outcome = self.phases(operation_id)
        finally:
            if lock is not None:
                self.release(lock)
        if not self.is_settled:
            self.parts.doubts.leave(boot_clock())
            let_go(self.parts, operation_id)
        return outcome

    def phases(self, operation_id: str) -> SectionOutcome:
        sidecar = self.sidecar(operation_id)
        try:
            self.parts.check_writer()
            self.write(sidecar)
        except Exception as error:  # noqa: BLE001 - the value carries it
            return NoEffect(Proof.NO_SIDECAR, error) if self.is_settled else self.pending(sidecar, error)
        try:
            hit(self.intent.names.post_sidecar)
            self.commit_tables(sidecar)
            if self.intent.kind is WriterKind.BRANCH_MERGE and not sidecar.is_staged:
                sidecar = self.confirm(sidecar)
            hit(self.intent.names.pre_publish)
            self.parts.check_writer()
            outcome = self.publish() if self.intent.layout is None else self.publish_layouts(sidecar)
            hit(self.intent.names.post_publish)
        except (WriterEnded, WriterLeaseHeld) as ended:
            return self.pending(sidecar, ended)  # X6
        except ConflictError as conflict:
            proof = self.proof()
            if proof is not None and self.withdraw(sidecar):
                return NoEffect(proof, conflict)
            return self.pending(sidecar, conflict)
        except SyncFailed as failed:
            self.give_up(sidecar)
            return self.pending(sidecar, failed)
        except Exception as error:  # noqa: BLE001 - the value carries it
            return self.pending(sidecar, error)
        if not self.left_out:
            self.delete(sidecar)
        return Landed(outcome)

    def proof(self) -> Proof | None:
        """Return why a lost race had no effect, or None if that cannot be proved (X2)."""
        if not self.has_effects:
            return Proof.REFUSED
        return Proof.ON_FORKS if all(commit.is_first_touch for commit in self.commits) else None

    def pending(self, sidecar: Sidecar, error: Exception) -> Pending:
        """Leave the sidecar to recovery, and say so in the error."""
        operation_id = sidecar.operation_id
        if isinstance(error, ConflictError):
            error.recovery_operation_id = operation_id
            return Pending(operation_id, error)
        reason = "the write failed half-way; the next write or open finishes or undoes it"
        required = RecoveryRequired(operation_id, f"{reason} ({error})")
        required.__cause__ = error
        return Pending(operation_id, required)

    # Phase A

    def sidecar(self, operation_id: str) -> Sidecar:
        intent, writer = self.intent, self.parts.writer
        return Sidecar(
            operation_id=operation_id,
            writer_kind=intent.kind,
            started_at=self.parts.clock(),
            branch=intent.branch,
            actor_id=intent.requested_by,
            graph_commit_id=intent.lineage.graph_commit_id,
            recovery_commit_id=self.parts.new_id(),
            tables=tuple(SidecarTable.of(commit.entry, commit.transaction_uuid) for commit in self.commits),
            read_set=self.read_set(),
            host=host_name(),
            boot_id=boot_id() or "unknown",
            pid=process_id(),
            writer_id=None if writer is None else writer.writer_id,
            owner=None if writer is None else writer.writer_id,
            writer_epoch=None if writer is None or writer.lease is None else writer.lease.epoch,
            pointer_updates=tuple(_sidecar_pointer(pointer) for pointer in intent.pointers),
            merge_source_commit_id=intent.lineage.merged_parent_commit_id,
            schema_change=intent.schema,
        )

    def read_set(self) -> tuple[ReadTable, ...]:
        """Return what the publish expects besides the tables that move: recovery must expect it too."""
        moving = {commit.entry.identity for commit in self.commits}
        others = sorted(
            (e.table_key, i, e.version) for i, e in self.intent.expected.items() if i not in moving
        )
        return tuple(
            ReadTable(key, identity.stable_table_id, identity.table_incarnation_id, version)
            for key, identity, version in others
        )

    def write(self, sidecar: Sidecar) -> None:
        self.is_settled = False
        try:
            hit("recovery.sidecar_write")
            put_new(self.parts, sidecar)
        except Exception:
            # The file may exist all the same, if only its folder could not be synced.
            self.delete(sidecar)
            raise

    # Phase B

    def commit_tables(self, sidecar: Sidecar) -> None:
        """Commit the tables one after the other; those with staged rows on an object store at once (X8)."""
        are_rows = not is_layout_only(self.intent.kind)
        is_staged = are_rows and all(commit.transaction_uuid is not None for commit in self.commits)
        if self.intent.layout is not None:
            self.commit_layouts(sidecar, self.intent.layout)
        elif self.parts.local_root is None and is_staged and len(self.commits) > 1:
            self.commit_at_once(sidecar)
        else:
            for commit in self.commits:
                self.parts.check_writer()
                self.commit_one(commit, sidecar)
        files = [file for _, result in self.committed for file in result.files]
        self.parts.syncer.sync(files, stage="table")

    def commit_one(self, commit: TableCommit, sidecar: Sidecar) -> None:
        had_effects, self.has_effects = self.has_effects, True
        try:
            result = commit.run(sidecar.operation_id)
        except (CommitConflict, StaleCommit) as conflict:
            # A staged commit lands whole or not at all; a library call may have landed in part.
            if isinstance(conflict, CommitConflict) and commit.transaction_uuid is not None:
                self.has_effects = had_effects
            raise self.lost(commit) from conflict
        if result is None:
            self.has_effects = had_effects
            return
        if commit.transaction_uuid is None and is_layout_only(self.intent.kind):
            self.refuse_rows_of_others(sidecar, commit, result)
            self.parts.store.known_ids.advance(result.address, commit.entry.version, result.version)
        self.committed.append((commit, result))
        if self.intent.names.post_table is not None:
            hit(self.intent.names.post_table)

    def commit_at_once(self, sidecar: Sidecar) -> None:
        """Commit staged tables at once; without an effect only if every one of them was refused (X2)."""
        self.parts.check_writer()
        self.has_effects = True
        ends = each(lambda commit: self.ended(commit, sidecar), self.commits, at_once=True)
        self.has_effects = not all(isinstance(end, CommitConflict) for end in ends)
        for commit, end in zip(self.commits, ends, strict=True):
            if isinstance(end, CommittedTable):
                self.committed.append((commit, end))
        for commit, end in zip(self.commits, ends, strict=True):
            if isinstance(end, CommitConflict | StaleCommit):
                raise self.lost(commit) from end
            if isinstance(end, Exception):
                raise end

    def commit_layouts(self, sidecar: Sidecar, rules: LayoutRules) -> None:
        """Bring each table into its new layout, as far as others let us (X9)."""
        self.has_effects = True  # a library call that fails may have landed in part
        ends = each(
            lambda commit: self.ended(commit, sidecar), self.commits, at_once=True, most=rules.tables_at_once
        )
        for commit, end in zip(self.commits, ends, strict=True):
            if isinstance(end, CommittedTable):
                self.committed.append((commit, end))
            elif isinstance(end, CommitConflict | StaleCommit):
                self.left_out.append(commit)
            elif isinstance(end, Exception):
                raise end

    def ended(self, commit: TableCommit, sidecar: Sidecar) -> CommittedTable | Exception | None:
        """Return what became of one of the commits that are made at once."""
        try:
            if self.intent.names.pre_table is not None:
                hit(self.intent.names.pre_table)
            self.parts.check_writer()
            result = commit.run(sidecar.operation_id)
            if self.intent.names.post_table is not None:
                hit(self.intent.names.post_table)
        except Exception as error:  # noqa: BLE001 - the others go on
            return error
        return result

    def refuse_rows_of_others(self, sidecar: Sidecar, commit: TableCommit, result: CommittedTable) -> None:
        """Publish what the library made only if no other writer committed in between (X7)."""
        versions = range(commit.entry.version + 1, result.version + 1)
        if not all(ours(self.parts, result.address, sidecar.operation_id, versions)):
            raise self.lost(commit)

    def confirm(self, sidecar: Sidecar) -> Sidecar:
        """Say in the sidecar which versions are whole (X4), and return it."""
        if self.intent.names.pre_confirm is not None:
            hit(self.intent.names.pre_confirm)
        versions = {commit.entry.identity: result.version for commit, result in self.committed}
        confirmed = sidecar.with_confirmed(versions)
        hit("recovery.sidecar_confirm")
        rewrite(self.parts, sidecar, confirmed)
        return confirmed

    def withdraw(self, sidecar: Sidecar) -> bool:
        """Delete the sidecar of a write without effect; on an object store it is taken from all others first.

        Whoever has read it can no longer claim it, and whoever finds it before it is gone goes back (X6).
        """
        if self.parts.writer is not None:
            withdrawn = sidecar.with_plan(RecoveryPlan(RecoveryKind.ROLLED_BACK, ()))
            try:
                rewrite(self.parts, sidecar, withdrawn)
            except OmnigraphError as error:
                self.parts.warn(f"sidecar {sidecar.operation_id} could not be withdrawn: {error}")
                return False
        return self.delete(sidecar)

    def give_up(self, sidecar: Sidecar) -> None:
        """Say in the sidecar that the write goes back (X5)."""
        outcomes = [
            Outcome(commit.entry.table_key, result.version, commit.entry.version)
            for commit, result in self.committed
            if not commit.is_first_touch
        ]
        planned = sidecar.with_plan(RecoveryPlan(RecoveryKind.ROLLED_BACK, tuple(outcomes)))
        try:
            bind_to_go_back(self.parts, sidecar, planned)
        except Exception as error:  # noqa: BLE001 - the failed sync is what is reported to the caller
            self.parts.warn(f"the failed sync could not be noted in sidecar {sidecar.operation_id}: {error}")

    def lost(self, commit: TableCommit) -> ExpectedVersionMismatch:
        entry = commit.entry
        head = self.parts.store.latest_version(self.parts.address(entry))
        return ExpectedVersionMismatch(table_key=entry.table_key, expected=entry.version, actual=head)

    # Phase C

    def publish_layouts(self, sidecar: Sidecar) -> PublishOutcome:
        """Publish the tables that hold nothing of others, when nobody is about to build on them (X9)."""
        keys = [commit.entry.table_key for commit, _ in self.committed]
        with turn_of_tables(self.parts, self.intent.branch.name, moved=keys):
            return self.publish_judged(sidecar)

    def publish_judged(self, sidecar: Sidecar) -> PublishOutcome:
        """Publish what may be published; a table that moves meanwhile is judged anew."""
        assert self.intent.layout is not None
        moved, refused = tuple(self.committed), tuple(self.left_out)
        last = self.intent.layout.publishes_max
        for attempt in range(1, last + 1):
            expected = self.judge(sidecar, moved)
            if self.left_out and attempt < last:
                threading.Event().wait(PUBLISH_PAUSE_S * attempt)  # most writers are about to publish
                continue
            self.left_out += refused
            if self.left_out and not self.committed:
                raise self.lost(self.left_out[0])
            try:
                return self.publish(expected)
            except ExpectedVersionMismatch:
                if attempt == last:
                    raise
        raise AssertionError("unreachable: the loop returns or raises")

    def judge(
        self, sidecar: Sidecar, moved: Sequence[tuple[TableCommit, CommittedTable]]
    ) -> dict[TableIdentity, Expectation]:
        """Set apart what to publish and what to leave out; return where the pins of the former must be."""
        pins = self.parts.coordinator.state(self.intent.branch).tables.pins
        self.committed, self.left_out = [], []
        expected = {}
        for commit, result in moved:
            entry = commit.entry
            pinned = pins[entry.identity].version
            if pinned >= result.version:
                continue  # others have built on it, and published that
            if not all(
                ours(self.parts, result.address, sidecar.operation_id, range(pinned + 1, result.version + 1))
            ):
                self.left_out.append(commit)
                continue
            self.committed.append((commit, result))
            expected[entry.identity] = Expectation(entry.table_key, pinned)
        return expected

    def publish(self, expected: Mapping[TableIdentity, Expectation] | None = None) -> PublishOutcome:
        intent = self.intent
        is_upkeep = intent.kind is WriterKind.OPTIMIZE
        changes = [
            pinned_change(
                commit.entry,
                PublishedPin(
                    result.version,
                    result.address.ref,
                    result.row_count,
                    result.transaction_uuid,
                    intent.branch.name,
                    upkeep_version=result.version if is_upkeep else 0,
                ),
            )
            for commit, result in self.committed
        ]
        sums = self.sums()
        outcome = self.publisher.publish(
            intent.branch,
            [*changes, *intent.pointers, *(intent.schema.manifest_changes if intent.schema else ())],
            intent.expected if expected is None else expected,
            replace(intent.lineage, sums=sums),
        )
        for item in sums:
            self.parts.recorded.put(item.path, item)
        return outcome

    def sums(self) -> tuple[FileSum, ...]:
        """Return the lengths and checksums of the files that the tables got."""
        sum_ = self.parts.summer.sum
        return tuple(
            item
            for commit, result in self.committed
            for item in (*result.sums, *sum_([*commit.staged_files, *result.files]))
        )

    # Phase D

    def delete(self, sidecar: Sidecar) -> bool:
        """Delete the sidecar; if that fails, the next write finishes it, and no write fails (X3, X6)."""
        try:
            hit("recovery.sidecar_delete")
            self.parts.check_writer()
            self.parts.adapter.discard(sidecar.name)
        except Exception as error:  # noqa: BLE001 - only bookkeeping is left
            self.parts.warn(f"sidecar {sidecar.operation_id} could not be deleted: {error}")
            return False
        self.is_settled = True
        return True

    def release(self, lock: WriterLock) -> None:
        """Release the writer lock; a file that cannot be removed is litter, and fails no write (X3)."""
        try:
            lock.release(remove=self.is_settled)
        except Exception as error:  # noqa: BLE001 - as above
            self.parts.warn(f"the lock file of {lock.operation_id} could not be removed: {error}")


def _sidecar_pointer(pointer: PinChange) -> PointerUpdate:
    return PointerUpdate(
        table_key=pointer.table_key,
        stable_table_id=pointer.identity.stable_table_id,
        table_incarnation_id=pointer.identity.table_incarnation_id,
        version=pointer.pin.version,
        ref=pointer.pin.ref,
        row_count=pointer.pin.row_count,
    )
