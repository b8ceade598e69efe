"""The one way from a prepared change to its outcome: gates, one more look, forks, the commit section.

W1  Nothing durable except unreferenced files exists before the commit section.
W2  Under the gates the branch must still exist, every table that the write depends on must be at its pin, and
    none that it moves ahead of it. Tables that are only read are held too: inside a process nothing of this
    can change before the publish, and a write never has to be undone because a neighbour was faster. The
    processes of one host take turns for the same reason (`table_locks.py`).
W3  What an attempt made goes to the commit section, and is the attempt's again only if that ended without
    effect. A signal waits until the section has ended, and every block around it that may remove things.
W4  A write that moves no HEAD, because it only repoints or renames tables, needs no sidecar: it is one
    publish.
W5  The last look at a table that moves is at HEAD, then at the sidecars, then at the pin: a sidecar is
    durable before HEAD moves and is deleted only after the pin has moved, so one of the last two looks always
    sees a live writer.

The first write of a branch to a table that it only inherits works on a fork of its own:

F1  Every attempt mints its own ref: a leftover never blocks a write, and two first writers never meet before
    the publisher lets one of them win.
F2  A fork starts from the pin that the branch shows, whoever owns it.
F3  An attempt drops its forks while they are its own. Once they are handed over to a commit, only recovery
    and cleanup drop them, unless the commit proves that it had no effect.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import assert_never

from omnigraph.commit.changes import Expectation, LineageIntent, PinChange, published_version
from omnigraph.commit.outcome import Landed, Made, NoEffect, Pending
from omnigraph.commit.parts import Parts
from omnigraph.commit.publish import ManifestPublisher, PublishOutcome
from omnigraph.commit.reclaim import drop_made_tables, drop_refs, reclaim_orphaned_forks
from omnigraph.commit.recovery.classify import is_layout_only
from omnigraph.commit.recovery.ending import require_going_on
from omnigraph.commit.recovery.pending import list_pending
from omnigraph.commit.schema_change import SchemaChange
from omnigraph.commit.section import (
    FailpointNames,
    LayoutRules,
    TableCommit,
    WriteIntent,
    run_commit_section,
)
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.table_locks import turn_of_tables
from omnigraph.core.cancellation import begin_effects, take_back_effects
from omnigraph.core.errors import (
    ConflictError,
    DriftNeedsRepair,
    ExpectedVersionMismatch,
    InvariantViolation,
    OmnigraphError,
    ReadSetChanged,
    RecoveryRequired,
)
from omnigraph.core.failpoint import hit
from omnigraph.core.shield import delivering_behind, remark, shielded
from omnigraph.core.together import both
from omnigraph.history.branches import mint_ref
from omnigraph.history.commits import MAINTENANCE_ACTOR, CommitOperation
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity, TableIdentity
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.storage.tables.staged import StagedWrite

_ROLLBACK = "a pending recovery sidecar requires rollback — reopen the graph read-write"


def owns(branch: BranchIdentity, entry: TableEntry) -> bool:
    """Return whether a branch writes a table where it is pinned; otherwise it only inherits it."""
    return branch.is_main or (entry.pin.ref is not None and entry.pin.branch == branch.name)


@dataclass(slots=True)
class Forks:
    """The tables of one attempt by name, as its branch writes them; among them the forks it made (F3)."""

    _parts: Parts
    tables: dict[str, TableEntry] = field(default_factory=dict)
    _made: list[TableEntry] = field(default_factory=list)
    _is_owned: bool = True

    def hand_over(self) -> None:
        """Hand the forks over to a commit."""
        self._is_owned = False

    def take_back(self, _end: NoEffect, /) -> None:
        """Take the forks back after a commit that had no effect."""
        self._is_owned = True

    def keep(self, used: Collection[str]) -> None:
        """Drop the forks that turned out not to be needed, before anything is handed over."""
        assert self._is_owned, "a fork that was handed over must not be dropped"
        unused = [fork for fork in self._made if fork.table_key not in used]
        self._made = [fork for fork in self._made if fork.table_key in used]
        _drop(self._parts, unused)

    def _add(self, branch: str, entry: TableEntry) -> None:
        reclaim_orphaned_forks(self._parts, entry)
        hit("fork.before_create")
        ref = mint_ref(branch, self._parts.new_id())
        fork = replace(entry, pin=replace(entry.pin, ref=ref))
        self._made.append(fork)  # first: one that is made and not noted would never be dropped
        self._parts.refs.create(self._parts.address(entry), entry.version, ref)
        self.tables[entry.table_key] = fork
        hit("fork.post_create_pre_stage")

    def _end(self) -> None:
        if self._is_owned:
            _drop(self._parts, self._made)


@contextmanager
def forked(parts: Parts, branch: BranchIdentity, entries: Iterable[TableEntry]) -> Iterator[Forks]:
    """Yield tables as this branch writes them: its own as they are, others on fresh forks.

    What is still the attempt's own at the end is dropped; signals
    that a commit inside the block held back are delivered after it.

    Raises:
        StorageError: a fork could not be made; those made before are dropped.
    """
    forks = Forks(parts)
    with delivering_behind():
        try:
            for entry in entries:
                if owns(branch, entry):
                    forks.tables[entry.table_key] = entry
                else:
                    forks._add(branch.name, entry)
            yield forks
        finally:
            forks._end()


def fork_files(parts: Parts, entry: TableEntry) -> tuple[str, ...]:
    """Return the files of a fork that was just made, for syncing."""
    return parts.refs.files(parts.address(entry), entry.version)


def _drop(parts: Parts, forks: Iterable[TableEntry]) -> None:
    """Drop forks that nothing was committed on; what cannot be dropped is left for cleanup."""
    drop_refs(parts, (parts.address(fork) for fork in forks))


@dataclass(slots=True)
class NewTables:
    """The tables that one attempt makes; what is still its own at the end is removed."""

    _parts: Parts
    _made: list[tuple[str, str | None]] = field(default_factory=list)
    _is_owned: bool = True

    def add(self, entry: TableEntry, write: StagedWrite) -> StagedWrite:
        """Take the commit that makes a table, and return it."""
        self._made.append((entry.location, write.transaction_uuid))
        return write

    def hand_over(self) -> None:
        """Hand the tables over to a commit."""
        self._is_owned = False

    def take_back(self, _end: NoEffect, /) -> None:
        """Take the tables back after a commit that had no effect."""
        self._is_owned = True

    def _end(self) -> None:
        if self._is_owned:
            drop_made_tables(self._parts, self._made)


@contextmanager
def new_tables(parts: Parts) -> Iterator[NewTables]:
    """Yield the tables that an attempt is about to make; no branch knows any of them yet."""
    made = NewTables(parts)
    with delivering_behind():
        try:
            yield made
        finally:
            made._end()


@dataclass(frozen=True, slots=True)
class MergedCommit:
    """The second parent of a merge, and what a merge records of its history."""

    commit_id: str
    history: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Change:
    """A write: who makes it, what it was prepared on, which tables it moves and which it only depends on.

    `requires` checks the newest state of the branch once more, and may raise. `pointers` are new pins of
    tables whose HEAD does not move. `created` are tables that the write makes, at version 0. `has_swept` is
    false for a writer that heals nothing at its entry. `layout` is for
    maintenance of several tables, each for itself.
    """

    kind: WriterKind
    snapshot: Snapshot
    moved: frozenset[str]
    names: FailpointNames
    read: frozenset[str] = frozenset()
    actor: str | None = None
    message: str | None = None
    operations: tuple[CommitOperation, ...] = ()
    merged: MergedCommit | None = None
    pointers: tuple[PinChange, ...] = ()
    requires: Callable[[ManifestState], None] | None = None
    has_swept: bool = True
    created: tuple[TableEntry, ...] = ()
    schema: SchemaChange | None = None
    layout: LayoutRules | None = None

    @property
    def branch(self) -> BranchIdentity:
        """The branch that is written."""
        return self.snapshot.branch_identity

    @property
    def author(self) -> str | None:
        """The author of the commit: for one that changes no row it is the engine, whoever asked for it."""
        return MAINTENANCE_ACTOR if is_layout_only(self.kind) else self.actor

    @property
    def rests_on(self) -> list[TableEntry]:
        """The tables that must be where they were, by name."""
        return [self.snapshot.entry(table_key) for table_key in sorted(self.moved | self.read)]


class Attempt:
    """One attempt to make a change visible; its holder holds the queues of its tables."""

    def __init__(self, parts: Parts, publisher: ManifestPublisher, change: Change) -> None:
        """Take what is to change."""
        self._parts, self._publisher, self._change = parts, publisher, change

    def look_again(self, moved: Iterable[TableEntry], state: ManifestState | None = None) -> None:
        """Compare the branch with what the change depends on, and HEAD with the pin of tables (W2).

        A caller that has read the state under the queues passes it in.

        Raises:
            BranchNotFound: the branch is gone, or was created again.
            ExpectedVersionMismatch: a table that is written moved, or is moving.
            ReadSetChanged: a table that is only read moved.
            RecoveryRequired, DriftNeedsRepair: a table is ahead of its pin.
        """
        change, parts, moved = self._change, self._parts, list(moved)
        newest, heads = both(
            lambda: self._newest() if state is None else state,
            lambda: parts.store.latest_versions([parts.address(entry) for entry in moved]),
            at_once=parts.local_root is None,
        )
        if change.requires is not None:
            change.requires(newest)
        for entry in change.rests_on:
            if Expectation.of(entry).is_met(newest.tables, entry.identity):
                continue
            actual = published_version(newest.tables, entry.identity)
            if entry.table_key in change.moved:
                raise ExpectedVersionMismatch(
                    table_key=entry.table_key, expected=entry.version, actual=actual
                )
            raise ReadSetChanged(member=entry.table_key, expected=entry.version, actual=actual)
        for entry, head in zip(moved, heads, strict=True):
            refuse_drift(parts, entry, head, change.branch, has_swept=change.has_swept)

    def _newest(self) -> ManifestState:
        _, newest = both(
            self._confirm_branch,
            lambda: self._parts.coordinator.state(self._change.branch),
            at_once=self._parts.local_root is None and not self._change.branch.is_main,
        )
        return newest

    def _confirm_branch(self) -> None:
        if self._parts.local_root is None:
            require_going_on(self._parts, self._change.branch)
        else:
            self._parts.branches.confirm(self._change.branch)

    def narrowed(self, moved: Iterable[str]) -> "Attempt":
        """Return an attempt that moves only some of the tables, and does not depend on the others."""
        return Attempt(self._parts, self._publisher, replace(self._change, moved=frozenset(moved)))

    def forked(self, entries: Iterable[TableEntry]) -> AbstractContextManager[Forks]:
        """Yield tables as the branch writes them: what is staged for a fork goes to the fork's own folder."""
        return forked(self._parts, self._change.branch, entries)

    def is_first_touch(self, entry: TableEntry) -> bool:
        """Return whether a table is written on a fork that the branch does not show yet."""
        return entry.pin.ref != self._change.snapshot.entry(entry.table_key).pin.ref

    def new_files(self, entry: TableEntry) -> tuple[str, ...]:
        """Return the files of a table that is written on a fork of this attempt."""
        return fork_files(self._parts, entry) if self.is_first_touch(entry) else ()

    def staged(self, entry: TableEntry, write: StagedWrite) -> TableCommit:
        """Return the commit of a staged write."""
        return TableCommit(
            entry,
            write.transaction_uuid,
            (*write.files, *self.new_files(entry)),
            lambda operation_id: self._parts.stager.commit_staged(
                write, operation_id=operation_id, writer_kind=self._change.kind.value
            ),
            is_first_touch=self.is_first_touch(entry),
            others_files=write.others_files,
        )

    def creation(self, entry: TableEntry, write: StagedWrite) -> TableCommit:
        """Return the commit that makes a table, or begins one on a fork; nobody knows it yet."""
        is_fork = entry.pin.ref is not None
        begun = self._parts.refs.files(write.address, write.read_version) if is_fork else ()
        return TableCommit(
            entry,
            write.transaction_uuid,
            (*write.files, *begun),
            lambda operation_id: self._parts.stager.commit_staged(
                write, operation_id=operation_id, writer_kind=self._change.kind.value
            ),
            is_first_touch=True,
        )

    def commit(self, commits: Sequence[TableCommit], made: Sequence[Made] = ()) -> PublishOutcome:
        """Make the change visible; `made` is what the attempt has made for it (W3).

        Raises:
            ConflictError: another writer was first; `recovery_operation_id` names effects that wait.
            RecoveryRequired: the outcome is unknown or unfinished.
            StorageError: nothing of this write landed.
        """
        parts, change = self._parts, self._change
        begin_effects()
        lineage = LineageIntent(
            parts.new_id(),
            change.author,
            parts.clock(),
            merged_parent_commit_id=None if change.merged is None else change.merged.commit_id,
            message=change.message,
            operations=change.operations,
            merged_history=None if change.merged is None else change.merged.history,
        )
        expected = {entry.identity: Expectation.of(entry) for entry in (*change.rests_on, *change.created)}
        if not commits:
            return self._repoint(lineage, expected)
        intent = WriteIntent(
            change.kind,
            change.branch,
            lineage,
            change.actor,
            expected,
            change.names,
            change.pointers,
            change.schema,
            change.layout,
        )
        return _through_the_section(parts, self._publisher, intent, commits, made)

    def _repoint(
        self, lineage: LineageIntent, expected: Mapping[TableIdentity, Expectation]
    ) -> PublishOutcome:
        """Publish other versions of tables that stay where they are, or a schema that moves none (W4)."""
        change = self._change
        schema = change.schema.manifest_changes if change.schema else ()
        self._parts.check_writer()
        return self._publisher.publish(change.branch, [*change.pointers, *schema], expected, lineage)


@contextmanager
def entered(
    parts: Parts,
    publisher: ManifestPublisher,
    change: Change,
    *,
    moved: Iterable[TableEntry],
    held: Iterable[str] | None = None,
) -> Iterator[Attempt]:
    """Hold the queues of every table of a change, and look once more (W2).

    `moved` are the branch's own tables that are written; more tables may be held than it depends on.

    Raises:
        ConflictError, RecoveryRequired, BranchNotFound, DriftNeedsRepair: as `Attempt.look_again`.
    """
    keys = frozenset(change.moved | change.read if held is None else held)
    moved, branch = list(moved), change.branch.name
    with parts.queues.acquire_many((table_key, branch) for table_key in keys):
        attempt = Attempt(parts, publisher, change)
        with turn_of_tables(
            parts,
            branch,
            moved=change.moved,
            read=keys - change.moved,
            meanwhile=lambda: attempt.look_again(moved),
        ):
            attempt.look_again(moved)
            yield attempt


def _through_the_section(
    parts: Parts,
    publisher: ManifestPublisher,
    intent: WriteIntent,
    commits: Sequence[TableCommit],
    made: Sequence[Made],
) -> PublishOutcome:
    """Run the commit section, and decide by its outcome what the attempt may remove (W3)."""
    with shielded():
        for item in made:
            item.hand_over()
        outcome = run_commit_section(parts, publisher, intent, commits)
        match outcome:
            case Landed(published):
                remark(f"the write had already landed, as commit {published.commit.graph_commit_id}")
                return published
            case NoEffect(_, error):
                for item in made:
                    item.take_back(outcome)
                take_back_effects()
                raise error
            case Pending(operation_id, error):
                remark(f"the write is unfinished: the next write or open settles operation {operation_id}")
                raise error
            case _:
                assert_never(outcome)


def refuse_drift(
    parts: Parts,
    entry: TableEntry,
    head: int,
    branch: BranchIdentity,
    *,
    has_swept: bool = True,
) -> None:
    """Compare HEAD with the pin of a table that is about to be written.

    `has_swept` says that the caller heals at its entry, and will do so again if told to retry.

    Raises:
        ExpectedVersionMismatch: a live writer is between its commit and its publish, or has just finished.
        RecoveryRequired: a dead writer's movement must be undone by a read-write open, or it is unknown
            whether the table's newest commit is on the disk.
        DriftNeedsRepair: it is unknown why the table moved.
        InvariantViolation: HEAD is behind the pin.
    """
    parts.doubts.refuse(entry)
    if head < entry.version:
        raise InvariantViolation(
            f"{entry.table_key} is at {head}, behind its published version {entry.version}"
        )
    if head > entry.version:
        _explain(parts, entry, head, branch, has_swept=has_swept)


def _explain(parts: Parts, entry: TableEntry, head: int, branch: BranchIdentity, *, has_swept: bool) -> None:
    try:
        pending = list_pending(parts)
    except OmnigraphError as error:
        found = f"{entry.table_key} is at {head}, published at {entry.version}"
        message = f"{found}: omnigraph repair or recovery could apply"
        raise ConflictError(f"{message}, but the pending sidecars cannot be listed ({error})") from error
    naming = [found for found in pending if found.sidecar.names(entry.identity, entry.pin.ref)]
    for sidecar in naming:
        if sidecar.is_alive:
            raise ExpectedVersionMismatch(
                table_key=entry.table_key,
                expected=entry.version,
                actual=head,
                in_flight_operation_id=sidecar.operation_id,
            )
    published = parts.coordinator.state(branch).tables.pins.get(entry.identity)
    if published is not None and published.version != entry.version:
        raise ExpectedVersionMismatch(
            table_key=entry.table_key, expected=entry.version, actual=published.version
        )
    for sidecar in naming:
        if sidecar.operation_id in parts.doubts.waiting or not has_swept:
            raise RecoveryRequired(sidecar.operation_id, _ROLLBACK)
    if naming:
        # Its writer, or one that shared its tables, has ended since the sweep: the next write heals it.
        raise ExpectedVersionMismatch(table_key=entry.table_key, expected=entry.version, actual=head)
    raise DriftNeedsRepair(table_key=entry.table_key, pin=entry.version, head=head, branch=branch.name)
