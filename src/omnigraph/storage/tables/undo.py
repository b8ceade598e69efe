"""What recovery does to a table: bring back older content, or move HEAD so that no other writer can move it.

Only recovery, and a publish that takes itself back, may import this: the import contract says so.
"""

from typing import Literal, final

from lance import LanceOperation

from omnigraph.storage.files.transactions import ROLLBACK
from omnigraph.storage.tables import shapes
from omnigraph.storage.tables.stage import OPERATION_ID_PROPERTY, TableStager, staged_on
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.storage.tables.table import SnapshotHandle, TableStore

FENCE_PROPERTY = "omnigraph.fence"  # the writer that set a fence

# Commits that the strict inverse undoes: they change rows and nothing else.
_INVERTIBLE = frozenset({"append", "update", "delete", "merge", "reserve"})


@final
class TableUndo:
    """Rolls tables back, and fences them."""

    def __init__(self, store: TableStore) -> None:
        """Take the store that opens the tables."""
        self._store = store

    def stage_rollback(
        self, head: SnapshotHandle, pinned: SnapshotHandle
    ) -> tuple[StagedWrite, Literal["inverse", "restore"]]:
        """Prepare a commit that brings back the content of an older version.

        The inverse is refused when another writer moved HEAD. A restore never conflicts and silently hides
        what others commit in the meantime: its caller makes sure that there are no others.
        """
        removed_rows = max(head.row_count - pinned.row_count, 0)
        added_rows = max(pinned.row_count - head.row_count, 0)
        operation = self._inverse(head, pinned)
        form: Literal["inverse", "restore"] = "inverse"
        if operation is None:
            operation, form = LanceOperation.Restore(pinned.version), "restore"
        staged = staged_on(head, "rollback", operation, (), added=added_rows, removed=removed_rows)
        return staged, form

    def commit_fence(self, handle: SnapshotHandle, *, operation_id: str, healer: str) -> None:
        """Move HEAD by a version that changes nothing: what others staged on the handle's version is refused.

        A commit of indexes alone is not: it fits after anything, and changes no row.

        Raises:
            CommitConflict, StaleCommit: another writer came first.
            StorageError, RecoveryRequired: the store failed.
        """
        staged = staged_on(handle, "fence", shapes.addition(handle._dataset, []), ())
        properties = {OPERATION_ID_PROPERTY: operation_id, FENCE_PROPERTY: healer}
        TableStager(self._store)._make_next(staged, operation_id, properties)

    def _inverse(self, head: SnapshotHandle, pinned: SnapshotHandle) -> LanceOperation.BaseOperation | None:
        """Return the operation that undoes everything since a version, or `None` if no operation does."""
        before = {fragment.fragment_id: fragment.metadata for fragment in pinned._dataset.get_fragments()}
        now = {fragment.fragment_id for fragment in head._dataset.get_fragments()}
        if not now or not before.keys() <= now or not head.schema.equals(pinned.schema, check_metadata=True):
            return None
        between = range(pinned.version + 1, head.version + 1)
        if any(made.operation not in _INVERTIBLE for made in self._store.transactions(head.address, between)):
            return None
        return LanceOperation.Delete(list(before.values()), sorted(now - before.keys()), ROLLBACK)
