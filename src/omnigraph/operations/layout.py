"""The best layout of one table: what is to be done for it, and doing it.

Optimize does this for the tables of a branch, the background thread of a process for the tables it writes.

Y1  No row changes. Every commit made here is one that recovery takes for layout: a compaction or an index of
    the library, or a transaction that names the operation.
Y2  What is left is left alone: planned again right after it, a table has no work.
Y3  Indexes are merged before files are folded, because fragments under different segments never fold
    together.
Y4  Rows stay in the order in which they were written. In any other order the row ids of a fragment would not
    rise, and every lookup by an index would look through all of them.
Y5  Damage is not copied: files are compared before they are written anew (N1 of `commit/rewritten.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from omnigraph.catalog.model import Catalog
from omnigraph.commit.parts import Parts
from omnigraph.commit.rewritten import compare_before_rewrite
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.errors import CommitConflict, RowLevelCasContention, StaleCommit
from omnigraph.core.failpoint import hit
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity
from omnigraph.operations.ensure_indices import PendingIndex
from omnigraph.operations.index_status import declared_indexes, index_states
from omnigraph.storage.files.added_files import files_between
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.index import IndexRequest
from omnigraph.storage.tables.layout import (
    COMPACTION_TARGET_ROWS,
    StoredLayout,
    layout_for_maintenance,
    names_in_full,
)
from omnigraph.storage.tables.residual import InlineCommitResidual
from omnigraph.storage.tables.staged import CommittedTable, StagedWrite

COMPACTION_RETRY_BUDGET = (
    5  # rounds of looking again after a conflict; upkeep of others takes a tenth of a second
)
PASSES_MAX = 8  # a pass leaves remainders that the next one may fold: three in practice


@dataclass(frozen=True, slots=True)
class LayoutWork:
    """What is to be done for one table."""

    entry: TableEntry
    layout: StoredLayout
    declared: tuple[IndexRequest, ...]
    missing: tuple[str, ...]  # properties whose index can be built
    pending: tuple[PendingIndex, ...]

    @property
    def is_none(self) -> bool:
        """Whether the table is as it should be."""
        layout = self.layout
        return layout.is_compact and layout.is_folded and not self.missing and not layout.auto_cleanup


def plan_table(parts: Parts, catalog: Catalog, entry: TableEntry) -> LayoutWork:
    """Look what is to be done for a table at its pin; no row is read.

    Raises:
        StorageError: the store failed.
    """
    handle = parts.open(entry)
    states = index_states(parts.store, handle, catalog, entry.table_key)
    return LayoutWork(
        entry,
        layout_for_maintenance(handle),
        tuple(declared_indexes(catalog, entry.table_key)),
        tuple(state.property for state in states if state.coverage == "missing"),
        tuple(
            PendingIndex(entry.table_key, state.property, state.reason or "")
            for state in states
            if state.coverage == "pending" and handle.row_count
        ),
    )


def compare_work(parts: Parts, branch: BranchIdentity, work: LayoutWork) -> None:
    """Compare the files that the work on a table writes anew with what is recorded about them (Y5).

    Raises:
        GraphDamaged: some are not what their commits wrote.
        StorageError: something cannot be read.
    """
    chosen = partial(names_in_full, builds=bool(work.missing))
    compare_before_rewrite(parts, branch, work.entry, chosen)


def lay_out(parts: Parts, work: LayoutWork, operation_id: str) -> CommittedTable | None:
    """Bring a table into its best layout, on its HEAD; return where that left it, or None if nothing moved.

    A conflict with another writer starts over from what is there then.

    Raises:
        CommitConflict: others come in between again and again.
        StorageError: the store failed; what landed is unknown.
    """
    steps = _Steps(parts, work, operation_id)
    for attempt in range(COMPACTION_RETRY_BUDGET + 1):
        try:
            steps.run()
            break
        except (CommitConflict, RowLevelCasContention) as conflict:
            if attempt == COMPACTION_RETRY_BUDGET:
                raise CommitConflict(f"{work.entry.table_key} moves too often: {conflict}") from conflict
    address, pinned = parts.address(work.entry), work.entry.version
    head = parts.store.open_head(address)
    if head.version == pinned:
        return None
    files = files_between(parts.store, address, older=pinned, newer=head.version)
    return CommittedTable(address, head.version, head.row_count, str(head.transaction_uuid), files)


class _Steps:
    """The steps of one table, each on the HEAD that it finds."""

    def __init__(self, parts: Parts, work: LayoutWork, operation_id: str) -> None:
        self._parts, self._work, self._operation_id = parts, work, operation_id
        self._address = parts.address(work.entry)
        self._inline = InlineCommitResidual(parts.store)

    def run(self) -> None:
        """Take all steps; those that find nothing to do make no commit."""
        self._commit(self._unset_auto_cleanup)
        self._parts.check_writer()
        self._inline.optimize_indices(self._address, merge_segments=True)  # Y3
        self._compact()
        hit("optimize.post_compact_pre_reindex")
        hit("optimize.inject_reindex_conflict")
        self._parts.check_writer()
        self._inline.optimize_indices(self._address, merge_segments=True)
        self._commit(self._missing_indexes)

    def _commit(self, stage: Callable[[SnapshotHandle], StagedWrite | None]) -> None:
        """Stage something on HEAD and commit it; landing above another's commit is told by the pins later."""
        staged = stage(self._parts.store.open_head(self._address))
        if staged is None:
            return
        self._parts.check_writer()
        try:
            self._parts.stager.commit_staged(
                staged, operation_id=self._operation_id, writer_kind=WriterKind.OPTIMIZE.value
            )
        except StaleCommit:
            return

    def _unset_auto_cleanup(self, head: SnapshotHandle) -> StagedWrite | None:
        keys = layout_for_maintenance(head).auto_cleanup
        return self._parts.stager.stage_unset(head, keys) if keys else None

    def _compact(self) -> None:
        """Fold until nothing is left to fold (Y2)."""
        for _ in range(PASSES_MAX):
            self._parts.check_writer()
            done = self._inline.compact_files(
                self._address, target_rows=COMPACTION_TARGET_ROWS, rewrite_deletions=True
            )
            if not done.fragments_removed:
                return

    def _missing_indexes(self, head: SnapshotHandle) -> StagedWrite | None:
        return self._parts.stager.stage_create_indices(head, self._work.declared)[0]
