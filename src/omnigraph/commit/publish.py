"""The publisher: every change to the graph becomes visible here, and only here.

P1  A write is visible when one update of `__manifest` has landed, and not before: pins and commit together.
P2  A publish that loses the race leaves nothing visible and says who won.
P3  The id and time of a commit are minted once; its parent is the head of the state it is committed against.
P4  Three outcomes stay three: it landed (a value), it did not (an error), it is unknown (`PublishUnknown`).
    Every attempt first looks for its own commit: an answer may have been lost.
P5  A publish whose files could not be synced is taken back before anything can build on it: on a local disk
    no process publishes, branches or merges from a branch without its publish lock.
P6  In full durability nothing is built on a manifest version that is not on the disk: the base is synced
    first, and the commit records it as `synced_version`. So a whole version proves all versions below it.
P7  A publish reads only what others have published: its own rows, and the place of the head row that it
    replaces, are known.
P8  The first attempt builds on what the last publish of this process made, without opening it again, unless
    there is a newer version: in an object store that was seen, and otherwise the update is refused; on a disk
    it is looked for under the publish lock. Every other attempt opens the newest one.
P9  In an object store a branch is looked for behind the publish: on what is left of a deleted one an update
    lands, and nobody can read it. It is looked for before as well, but in an attempt that builds on what this
    process published last: the fence that ends a branch refuses that one, and the next attempt looks.
P10 A branch of an earlier format is migrated before it is published on, under its publish lock.
"""

import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pyarrow as pa

from omnigraph import INTERNAL_SCHEMA_VERSION
from omnigraph.commit.changes import (
    Expectation,
    LineageIntent,
    ManifestChange,
    ManifestSums,
    change_rows,
    check_expectations,
    check_schema,
)
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import (
    ConflictError,
    OmnigraphError,
    PublishRetriesExhausted,
    RowLevelCasContention,
    StaleCommit,
    StorageError,
)
from omnigraph.core.failpoint import hit
from omnigraph.core.recent import Recent
from omnigraph.history.commits import MAINTENANCE_ACTOR, OPERATIONS, GraphCommit
from omnigraph.history.coordinator import Coordinator
from omnigraph.history.identity import BranchIdentity, TableIdentity
from omnigraph.history.lineage import MERGED_HISTORY
from omnigraph.history.manifest_rows import commit_row, head_row, rows_table
from omnigraph.history.stamp import supported_stamp
from omnigraph.history.state import ManifestState
from omnigraph.storage.control.durability import Syncer, SyncFailed
from omnigraph.storage.control.locks import PUBLISH_LOCK_WAIT_S, PublishLock
from omnigraph.storage.files.added_files import manifest_files
from omnigraph.storage.files.sums import NO_SUMS, Summer
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle
from omnigraph.storage.tables.stage import OPERATION_ID_PROPERTY, TableStager
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.tables.undo import TableUndo

PUBLISHER_RETRY_BUDGET = 5  # at about 50 ms per try, a quarter second of contention before we report it
STORE_RETRY_BUDGET = 20  # where no lock makes processes take turns, most lose their first attempts
PAUSE_S_MAX = 0.05  # the longest pause after the first lost attempt; it grows with the attempts
UPKEEP_INTERVAL = 64  # commits of a table between two rounds of upkeep
# The manifest is folded with the tables, after a publish of upkeep: so every round of 64 commits costs the
# same. If no table falls due for a long time, it is folded by itself.
FRAGMENTS_WORTH_FOLDING = UPKEEP_INTERVAL // 2
FRAGMENTS_MAX = UPKEEP_INTERVAL + 16
MADE_MAX = 64  # branches that are published on without opening their manifests again: each is a handle
LOCKS_DIR = "__locks"
_UNDONE = "unsynced-publish"  # how the commit that takes a publish back marks itself
HORIZON_S = 24 * 3600.0  # how long replaced versions of the manifest stay, unless a setting says otherwise
HORIZON_S_MIN = 3600.0  # the shortest that can be set: no process trims what was replaced since

Secure = Callable[[str | None, int, int], None]  # ref, version before a commit, version after it
Migrate = Callable[[BranchIdentity, Secure], ManifestHandle]


class PublishUnknown(StorageError):
    """It is unknown whether the publish landed: the store failed, and cannot be asked."""


class PublishLockHeld(ConflictError):
    """Another process holds the publish lock of a branch; retrying is safe."""

    def __init__(self, branch: str) -> None:
        """Take the name of the branch."""
        self.branch = branch
        super().__init__(
            f"another process holds the publish lock of branch '{self.branch}' and is not releasing it:"
            " try again, or end that process"
        )


@dataclass(frozen=True, slots=True)
class PublishOutcome:
    """A publish that landed: the state it made, and its commit."""

    state: ManifestState
    commit: GraphCommit
    attempts: int


@dataclass(frozen=True, slots=True)
class _PublishBatch:
    """What one publish makes visible, the same in every attempt (P3)."""

    branch: BranchIdentity
    changes: tuple[ManifestChange, ...]
    expected: Mapping[TableIdentity, Expectation]
    lineage: LineageIntent


def publish_lock_file(branch: str) -> str:
    """Return the graph-relative name of the file on which the publishers of a branch take turns."""
    return f"{LOCKS_DIR}/publish-{quote(branch, safe='')}.lock"


class ManifestPublisher:
    """Publishes on the branches of one graph."""

    def __init__(
        self,
        coordinator: Coordinator,
        store: TableStore,
        syncer: Syncer,
        *,
        local_root: Path | None,
        warn: Callable[[str], None],
        check_branch: Callable[[BranchIdentity], object] = lambda _branch: None,
        migrate: Migrate | None = None,
        boot_clock: Callable[[], float] = boot_clock,
        horizon_s: float = HORIZON_S_MIN,  # of whoever trims: the settings of others are not known
        lock_wait_s: float = PUBLISH_LOCK_WAIT_S,
        summer: Summer = NO_SUMS,
        retries: int = PUBLISHER_RETRY_BUDGET,
    ) -> None:
        """Take the manifest's reader and writer; the clock must count sleep.

        `check_branch` raises for a branch that no longer exists; main always does. `migrate` brings the
        manifest of a branch to the newest format.
        """
        self._coordinator = coordinator
        self._manifest = coordinator.manifest
        self._store = store
        self._syncer = syncer
        self._local_root = local_root
        self._warn = warn
        self._check_branch = check_branch
        self._migrate = migrate
        self._boot_clock = boot_clock
        self._horizon_s = horizon_s
        self._lock_wait_s = lock_wait_s
        self._retries = retries
        self._own_sums = ManifestSums(store, summer, warn)
        self._synced: dict[str | None, int] = {}  # by ref, the newest manifest version synced here
        self._made: Recent[str | None, ManifestHandle] = Recent(MADE_MAX)  # by ref, what we published last
        self._turns: dict[str, threading.Lock] = {}
        self._random = random.Random()  # noqa: S311 - pauses, not secrets
        self._pause = threading.Event()

    def publish(
        self,
        branch: BranchIdentity,
        changes: Iterable[ManifestChange],
        expected: Mapping[TableIdentity, Expectation],
        lineage: LineageIntent,
    ) -> PublishOutcome:
        """Make changes visible, with one commit, if every expected table is where it should be.

        Raises:
            ExpectedVersionMismatch: a table is at another version; final.
            SchemaChanged: a change of the schema was planned on another one; final.
            BranchNotFound: the branch is gone, or was replaced by another of the same name.
            PublishRetriesExhausted: every attempt lost its race.
            PublishLockHeld: another process on this host does not release the publish lock.
            StorageError: the store failed and the commit did not land.
            PublishUnknown: the store failed and cannot be asked.
        """
        batch = _PublishBatch(branch, tuple(changes), expected, lineage)
        for attempt in range(1, self._retries + 2):
            try:
                outcome = self._attempt(batch, attempt)
            except RowLevelCasContention:
                self._pause.wait(self._random.uniform(0, PAUSE_S_MAX * attempt))
                continue
            except PublishLockHeld as held:
                raise self._landed_all_the_same(batch, held) from held
            self._compact_if_due(branch, outcome)
            return outcome
        raise self._landed_all_the_same(batch, PublishRetriesExhausted(self._retries + 1))

    def _landed_all_the_same(self, batch: _PublishBatch, error: ConflictError) -> PublishUnknown:
        """Raise the error if nothing landed, else return another: an answer may have been lost (P4)."""
        self._settle(batch.branch, batch.lineage.graph_commit_id, error)
        return PublishUnknown(f"the publish landed and may not be on the disk: {error}", kind="unknown")

    def _attempt(self, batch: _PublishBatch, attempt: int) -> PublishOutcome:
        branch, ref, lineage = batch.branch, batch.branch.ref, batch.lineage
        with self.turn(branch.name):
            handle = self._own_base(branch, attempt) if self._local_root is None else None  # P9
            if handle is None:
                if not branch.is_main:
                    self._check_branch(branch)  # a deletion takes this lock before its rows go
                self.supersede_unsynced(ref)
                handle = self._base(branch, attempt)
            if supported_stamp(handle.schema_metadata) < INTERNAL_SCHEMA_VERSION:
                handle = self.bring_up(branch)  # P10
            hit("publish.load_state_retryable_contention")
            state = self._coordinator.advance(branch, handle)
            landed = state.commits.find(lineage.graph_commit_id)
            if landed is not None:  # P4
                self._sync(ref, state.version)
                return PublishOutcome(state, landed, attempt)
            if state.version != handle.version:  # read by another thread since: places are of that version
                raise RowLevelCasContention("the manifest moved on while it was being read")
            check_expectations(state.tables, batch.expected)
            check_schema(state, batch.changes)
            synced = self.make_durable(ref, handle.version)
            at = handle.version + 1
            sums = (*lineage.sums, *self._own_sums.of_predecessor(handle, state.sequence))
            parent_id = state.head.graph_commit_id or None  # none in an empty history
            metadata = _commit_metadata(lineage, parent_id) | {"synced_version": synced}
            rows = [
                head_row(branch.name, lineage.graph_commit_id, parent_id),
                *change_rows(state.tables, batch.changes, at=at),
                commit_row(lineage.graph_commit_id, branch.name, metadata, at=at, sums=sums),
            ]
            replaced = state.replaced_places(rows)
            table = rows_table(rows)
            folded = state.with_rows(table, version=at, fragments=state.fragments)
            folded.snapshot()  # a batch that contradicts itself fails before it is written
            hit("publish.post_open_pre_update")
            if not self._is_young(handle.opened_at):
                raise RowLevelCasContention("the manifest handle grew too old to publish on")
            hit("publish.before_update")
            published, files = self._commit(handle, table, replaced, folded, lineage.graph_commit_id)
            if self._local_root is None and not branch.is_main:
                self._check_branch(branch)  # P9
            self._sync_or_take_back(ref, handle.version, published.version, files)
        commit = published.commits.find(lineage.graph_commit_id)
        assert commit is not None, "the commit is among the rows just folded"
        return PublishOutcome(self._coordinator.adopt(published), commit, attempt)

    def bring_up(self, branch: BranchIdentity) -> ManifestHandle:
        """Migrate a branch to the newest format, and return its manifest; the caller holds its publish lock.

        Raises:
            RowLevelCasContention: others kept changing it; trying again is safe.
            FormatVersionError: this build does not read its format.
            StorageError: something cannot be read, written or synced.
        """
        assert self._migrate is not None, "a publisher of a graph knows how"
        self.make_durable(branch.ref, self._manifest.latest_version(self._coordinator.address(branch.ref)))
        return self._migrate(branch, self._secure)

    def _base(self, branch: BranchIdentity, attempt: int) -> ManifestHandle:
        """Return a manifest to publish on (P8)."""
        made = self._own_base(branch, attempt)
        if made is not None:
            return made
        opened_at = self._boot_clock()
        return replace(self._manifest.open_fresh(self._coordinator.address(branch.ref)), opened_at=opened_at)

    def _own_base(self, branch: BranchIdentity, attempt: int) -> ManifestHandle | None:
        """Return what the last publish of this process made, where an attempt may build on it (P8)."""
        made = self._made.get(branch.ref) if attempt == 1 else None
        is_usable = made is not None and self._is_young(made.opened_at) and self._is_newest(branch, made)
        return made if is_usable else None

    def _is_newest(self, branch: BranchIdentity, made: ManifestHandle) -> bool:
        """Return whether no newer version was seen, or on a disk, whether there is none (P8)."""
        warm = self._coordinator.warm(branch)
        if warm is None or warm.version != made.version:
            return False
        return self._local_root is None or self._manifest.is_newest(made)

    def _is_young(self, opened_at: float) -> bool:
        return self._boot_clock() - opened_at <= self._horizon_s / 2

    def _commit(
        self,
        handle: ManifestHandle,
        rows: pa.Table,
        replaced: Sequence[int],
        folded: ManifestState,
        commit_id: str,
    ) -> tuple[ManifestState, tuple[str, ...]]:
        """Write the rows that were folded; return the state that came out, and the files if they are known.

        An error that is not a conflict is settled by looking for the commit (P4).
        """
        try:
            made = self._manifest.publish(handle, rows, commit_id=commit_id, replaced=replaced)
            hit("publish.after_update_ack_lost")
        except RowLevelCasContention:
            raise
        except StaleCommit as stale:  # it shows, beside another commit that continues the same one
            raise PublishUnknown(f"the publish of {commit_id}: {stale}", kind="unknown") from stale
        except Exception as error:  # noqa: BLE001 - whatever failed, the question is whether it landed
            return self._settle(folded.branch, commit_id, error), ()
        if made.version > handle.version + 1:  # above a stamp, perhaps of a newer format
            return self._coordinator.advance(folded.branch, made), ()
        self._made.put(folded.branch.ref, made)
        self._own_sums.remember(handle, made)
        return folded.landed(handle, made), made.files

    def _settle(self, branch: BranchIdentity, commit_id: str, error: Exception) -> ManifestState:
        try:
            state = self._coordinator.state(branch)
        except OmnigraphError as unreadable:
            message = f"the publish of {commit_id} was not answered, and the manifest cannot be read"
            raise PublishUnknown(message, kind="unknown") from unreadable
        if state.commits.find(commit_id) is not None:
            return state
        if isinstance(error, OmnigraphError):
            raise error
        raise StorageError(f"the publish of {commit_id} failed: {error}", kind="unknown") from error

    def make_durable(self, ref: str | None, version: int) -> int | None:
        """Sync a version that will be built on, unless it is known to be on the disk (P5).

        Returns the version, for the record; None if durability asks for no syncs.

        Raises:
            StorageError: it could not be synced: nothing may be built on it.
        """
        if not self._syncer.is_active:
            return None
        if self._is_synced(ref, version):
            self._synced[ref] = max(self._synced.get(ref, 0), version)
        else:
            self._sync(ref, version)
        return version

    def _is_synced(self, ref: str | None, version: int) -> bool:
        noted = self._manifest.synced_version
        return self._synced.get(ref, 0) >= version or noted(self._coordinator.address(ref)) >= version

    def supersede_unsynced(self, ref: str | None) -> None:
        """Make a version to build on if the newest one takes something back and may not be on the disk (P5).

        A second sync of its files would prove nothing. The new one shows the same with its own files. The
        caller holds the publish lock.

        Raises:
            StorageError: nothing can be synced: nothing may be built.
        """
        if not self._syncer.is_active:
            return
        address = self._coordinator.address(ref)
        newest = self._manifest.latest_version(address)
        if self._is_synced(ref, newest):
            return
        made = self._store.transaction_info(address, newest)
        if made.properties.get(OPERATION_ID_PROPERTY) == _UNDONE:
            staged, _ = self._staged_undo(ref, newest, newest)
            self._commit_undo(ref, staged)

    def _sync(self, ref: str | None, version: int, files: tuple[str, ...] = ()) -> None:
        """Make the new manifest version durable, with all that others have published since our last sync.

        A writer that published in between may have died before its own sync, and this version builds on that.
        Where nobody has, the files of our own publish are all.
        """
        address = self._coordinator.address(ref)
        if not self._syncer.is_active:
            self._note(address, version)
            return
        if not files or self._synced.get(ref) != version - 1:
            files = manifest_files(self._store, address, synced=self._synced.get(ref), newest=version)
        self._syncer.sync(files, stage="manifest")
        self._synced[ref] = version
        self._note(address, version)

    def _note(self, address: TableAddress, version: int) -> None:
        """Note what was just synced; a failure takes nothing back, and is a warning."""
        try:
            sums = self._own_sums.of(address, version)
            self._manifest.note(address, version, is_synced=self._syncer.is_active, sums=sums)
        except StorageError as error:
            self._warn(f"the newest acknowledged version of the manifest could not be noted: {error}")

    def _sync_or_take_back(self, ref: str | None, before: int, version: int, files: tuple[str, ...]) -> None:
        try:
            self._sync(ref, version, files)
        except SyncFailed as failed:
            self._undo(ref, before, version, failed)
            raise

    def take_back(self, branch: BranchIdentity, commit_id: str) -> bool:
        """Undo the newest publish of a branch, which could not be synced and was not taken back then (P5).

        Returns false if others have built on it: then nothing was done.

        Raises:
            SyncFailed: the system fails again.
            PublishLockHeld: another process on this host does not release the publish lock.
        """
        with self.turn(branch.name):
            state = self._coordinator.state(branch)
            if state.head.graph_commit_id != commit_id or state.version != state.sequence:
                return False
            failed = SyncFailed(f"commit {commit_id} could not be synced", kind="permanent")
            self._undo(branch.ref, state.version - 1, state.version, failed)
            return True

    def _undo(self, ref: str | None, before: int, version: int, failed: SyncFailed) -> None:
        """Bring back the manifest as it was before a publish; refused if another writer came in between."""
        try:
            staged, form = self._staged_undo(ref, before, version)
            if version != before + 1 or form != "inverse":
                raise StorageError("others have published meanwhile", kind="permanent")
            self._commit_undo(ref, staged)
        except OmnigraphError as error:
            raise SyncFailed(
                f"{failed}; and the publish cannot be undone: {error}", kind="permanent"
            ) from error

    def _staged_undo(
        self, ref: str | None, before: int, version: int
    ) -> tuple[StagedWrite, Literal["inverse", "restore"]]:
        address = self._coordinator.address(ref)
        older = self._store.open_at(address, before)
        return TableUndo(self._store).stage_rollback(self._store.open_at(address, version), older)

    def _commit_undo(self, ref: str | None, staged: StagedWrite) -> None:
        stager = TableStager(self._store)
        undone = stager.commit_staged(staged, operation_id=_UNDONE, writer_kind=_UNDONE)
        # Only its own files: those that it takes back are not synced a second time, and nothing needs them.
        self._syncer.sync(undone.files, stage="manifest")
        self._synced[ref] = undone.version
        self._note(self._coordinator.address(ref), undone.version)

    @contextmanager
    def turn(self, branch: str) -> Iterator[None]:
        """Keep every other process on this host from publishing on a branch, and from building on it (P5).

        On an object store nothing that was published is taken back, and the compare-and-swap is enough.

        Raises:
            PublishLockHeld: another process does not release the lock.
        """
        with self.publish_lock(branch) as is_held:
            if not is_held and self._local_root is not None:
                raise PublishLockHeld(branch)
            yield

    @contextmanager
    def publish_lock(self, branch: str, wait_s: float | None = None) -> Iterator[bool]:
        """Take turns with other writers on this host.

        Yields whether the lock is held. On an object store only the threads of this process take turns:
        other processes are met by the compare-and-swap.
        """
        wait_s = self._lock_wait_s if wait_s is None else wait_s
        if self._local_root is None:
            turn = self._turns.setdefault(branch, threading.Lock())
            is_held = turn.acquire(timeout=wait_s)
            try:
                yield is_held
            finally:
                if is_held:
                    turn.release()
            return
        with PublishLock(self._local_root / publish_lock_file(branch), wait_s) as is_obtained:
            yield is_obtained

    def compact(self, branch: BranchIdentity) -> tuple[frozenset[int], frozenset[int]]:
        """Fold the manifest of a branch if that gains something; return its fragments before and after.

        Raises:
            PublishLockHeld: another process on this host does not release the publish lock.
            RowLevelCasContention: a publish came in between; nothing is folded.
            StorageError: the store failed, or the result could not be synced and was taken back.
        """
        address = self._coordinator.address(branch.ref)
        with self.turn(branch.name):
            self.supersede_unsynced(branch.ref)
            before = self._manifest.open_fresh(address)
            self._manifest.keep_versions(before)
            self._compact(branch.ref)
            after = self._manifest.open_fresh(address)
        return frozenset(before.fragment_ids), frozenset(after.fragment_ids)

    def _compact_if_due(self, branch: BranchIdentity, outcome: PublishOutcome) -> None:
        """Fold the manifest's fragments; a failure is a warning, and the next publish retries."""
        is_upkeep = outcome.commit.actor_id == MAINTENANCE_ACTOR
        if len(outcome.state.fragments) < (FRAGMENTS_WORTH_FOLDING if is_upkeep else FRAGMENTS_MAX):
            return
        try:
            hit("publish.before_auto_compaction")
            with self.publish_lock(branch.name, wait_s=0) as is_obtained:
                if is_obtained:
                    self._compact(branch.ref)
        except Exception as error:  # noqa: BLE001 - upkeep never makes the publish before it fail
            self._warn(f"the manifest could not be compacted: {error}")

    def _compact(self, ref: str | None) -> None:
        """Fold a manifest under its lock; if the result cannot be synced, it is taken back (P5)."""
        address = self._coordinator.address(ref)
        before = self._manifest.latest_version(address)
        self.make_durable(ref, before)
        self._secure(ref, before, self._manifest.compact(address))
        self._manifest.remove_transactions(address, below=before)

    def _secure(self, ref: str | None, before: int, version: int) -> None:
        """Sync what a fold or a migration has made under its lock, or take it back (P5)."""
        try:
            self._sync(ref, version)
        except SyncFailed:
            # By a restore: it hides no other publish, because the lock is held.
            staged, _ = self._staged_undo(ref, before, version)
            self._commit_undo(ref, staged)
            raise


def _commit_metadata(lineage: LineageIntent, parent_id: str | None) -> dict[str, object]:
    operations = {OPERATIONS: [asdict(item) for item in lineage.operations]} if lineage.operations else {}
    return operations | {
        "parent_commit_id": parent_id,
        "merged_parent_commit_id": lineage.merged_parent_commit_id,
        MERGED_HISTORY: lineage.merged_history,
        "actor_id": lineage.actor_id,
        "created_at": lineage.created_at,
        "message": lineage.message,
    }
