"""From validated rows to uncommitted Lance transactions: durable and invisible."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.staging.write_set import TableWork
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.stage import TableStager
from omnigraph.storage.tables.staged import StagedWrite


def stage_all(
    work: Sequence[TableWork],
    stager: TableStager,
    open_table: Callable[[TableWork], SnapshotHandle],
    *,
    concurrency: int = 1,
) -> list[tuple[TableWork, StagedWrite]]:
    """Stage every table at its captured pin; a table that turns out to need nothing is left out."""

    def stage(item: TableWork) -> StagedWrite | None:
        return _stage(item, stager, open_table(item))

    if concurrency == 1 or len(work) == 1:
        staged = [stage(item) for item in work]
    else:
        with ThreadPoolExecutor(max_workers=concurrency) as pool:
            staged = list(pool.map(stage, work))
    return [(item, write) for item, write in zip(work, staged, strict=True) if write is not None]


def _stage(item: TableWork, stager: TableStager, handle: SnapshotHandle) -> StagedWrite | None:
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
