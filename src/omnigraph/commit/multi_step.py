"""Several commits of one table in one write: other columns, new rows, changed ones, then removals.

M1  Each step is staged on the HEAD that the previous one made; a step with nothing to do is left out.
M2  Rows are written in chunks: what is in memory at a time is bounded, however large a step is.
M3  Between the first step and the last the table shows a part of the write. That is never published: only a
    confirmed version is, and an unconfirmed one is undone.
M4  Where every table takes one step, all are staged before the sidecar, which names their transactions: a
    table shows all of its share or nothing, and nothing is left to confirm.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.commit.parts import Parts
from omnigraph.commit.section import TableCommit
from omnigraph.commit.sidecar import WriterKind
from omnigraph.core.failpoint import hit
from omnigraph.core.limits import MAX_FRAGMENT_ROWS, MERGE_CHUNK_BYTES
from omnigraph.core.runs import runs
from omnigraph.history.fold import TableEntry
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.rows import ReplacedRows
from omnigraph.storage.tables.staged import CommittedTable, StagedWrite

Chunk = tuple[pa.Table, ReplacedRows | None]  # with the rows that it replaces, where they are known
Chunks = Callable[[], Iterable[Chunk]]
_FAILPOINTS = {
    "reshape": "branch_merge.after_reshape_pre_append",
    "append": "branch_merge.after_append_pre_upsert",
    "upsert": "branch_merge.after_upsert_pre_delete",
    "delete": "branch_merge.after_delete_pre_confirm",
}


@dataclass(frozen=True, slots=True)
class Steps:
    """What happens to one table: other columns, new rows, changed rows, removed ids.

    A step that is None, or has no ids, is left out. `entry` is the table where it is written.
    """

    entry: TableEntry
    appended: Chunks | None
    upserted: Chunks | None
    deleted: Sequence[str]
    reshaped: Callable[[SnapshotHandle], StagedWrite] | None = None

    @property
    def is_one(self) -> bool:
        """Whether there is one step, which makes one commit (M4)."""
        taken = (self.appended is not None, self.upserted is not None, self.reshaped is not None)
        return sum([*taken, len(self.deleted) > 0]) == 1


def table_commit(
    parts: Parts, steps: Steps, *, new_files: tuple[str, ...] = (), is_first_touch: bool = False
) -> TableCommit:
    """Return the steps as one table's share of a merge; the files are synced before the first of them."""
    return TableCommit(
        steps.entry,
        None,
        new_files,
        lambda operation_id: _run(parts, steps, operation_id),
        is_first_touch=is_first_touch,
    )


def staged_alone(parts: Parts, steps: Steps) -> StagedWrite:
    """Stage the one step of a table on its pin (M4)."""
    ((_, stage),) = _staging(parts, steps)
    staged = stage(parts.store.open_at(parts.address(steps.entry), steps.entry.version))
    assert staged is not None, f"{steps.entry.table_key} is pinned for a write that does nothing"
    return staged


def new_table_commit(parts: Parts, entry: TableEntry, schema: pa.Schema, chunks: Chunks) -> TableCommit:
    """Return the rows of a table that its branch does not know, as its share of a merge.

    The branch that added the type has made the table, and writes to forks of it. What its own place holds
    is replaced as a whole: nobody has published it, and a merge that failed may have left rows there.
    """

    def run(operation_id: str) -> CommittedTable:
        handle = parts.store.open_head(parts.address(entry))
        rows = (rows for rows, _ in _gathered(chunks()))
        staged = parts.stager.stage_overwrite_chunks(handle, schema, rows)
        parts.syncer.sync(staged.files, stage="staged")
        parts.check_writer()
        committed = parts.stager.commit_staged(
            staged, operation_id=operation_id, writer_kind=WriterKind.BRANCH_MERGE.value
        )
        return replace(committed, sums=tuple(parts.summer.sum(staged.files)))

    return TableCommit(entry, None, (), run, is_first_touch=True)


def _run(parts: Parts, steps: Steps, operation_id: str) -> CommittedTable:
    address = parts.address(steps.entry)
    committed: CommittedTable | None = None
    files: list[str] = []
    sums: list[FileSum] = []
    for name, stage in _staging(parts, steps):
        version = steps.entry.version if committed is None else committed.version
        staged = stage(parts.store.open_at(address, version))
        if staged is None:
            continue
        parts.syncer.sync(staged.files, stage="staged")
        parts.check_writer()
        committed = parts.stager.commit_staged(
            staged, operation_id=operation_id, writer_kind=WriterKind.BRANCH_MERGE.value
        )
        files += committed.files
        sums += parts.summer.sum(staged.files)
        hit(_FAILPOINTS[name])
    assert committed is not None, f"{steps.entry.table_key} is pinned for a write that does nothing"
    return CommittedTable(
        address, committed.version, committed.row_count, committed.transaction_uuid, tuple(files), tuple(sums)
    )


def _staging(
    parts: Parts, steps: Steps
) -> Iterator[tuple[str, Callable[[SnapshotHandle], StagedWrite | None]]]:
    """Yield the steps that have something to do, in order (M1)."""
    appended, upserted = steps.appended, steps.upserted
    if steps.reshaped is not None:
        yield "reshape", steps.reshaped
    if appended is not None:
        yield (
            "append",
            lambda handle: parts.stager.stage_append_chunks(
                handle, (rows for rows, _ in _gathered(appended()))
            ),
        )
    if upserted is not None:
        yield "upsert", lambda handle: parts.stager.stage_upsert_chunks(handle, _gathered(upserted()))
    if steps.deleted:
        yield "delete", lambda handle: parts.stager.stage_delete(handle, steps.deleted)


def _gathered(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield rows in chunks of the size that is written at a time: a fragment, or the memory bound (M2)."""

    def coming() -> Iterator[Chunk]:
        for number, chunk in enumerate(chunks):
            if number:
                hit("branch_merge.between_chunks")
            yield chunk

    rows_max = (lambda chunk: chunk[0].num_rows, MAX_FRAGMENT_ROWS)
    bytes_max = (lambda chunk: chunk[0].nbytes, MERGE_CHUNK_BYTES)
    return map(_joined, runs(coming(), rows_max, bytes_max))


def _joined(chunks: Sequence[Chunk]) -> Chunk:
    known = [replaced for _, replaced in chunks if replaced is not None]
    tables = pa.concat_tables([table for table, _ in chunks])
    return tables, ReplacedRows.concat(known) if len(known) == len(chunks) else None
