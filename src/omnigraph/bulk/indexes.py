"""Indexes built on executors: parts by one task each, put together by others; no row is sent.

N1  A task is told fragments of one version, and an index that is due over them. It writes and syncs files
    that nothing names, and returns their description.
N2  A whole index is one task as long as there are as many indexes as tasks that run at once: putting parts
    together reads all of them again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.storage.control.durability import Durability, Syncer
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.storage.tables.staged import index_files

if TYPE_CHECKING:
    from omnigraph.storage.tables.index_build import DueIndex, IndexPart, StagedIndex

PART_ROWS_MIN = 500_000  # a task begins in a fifth of a second, in which a process indexes as many ids


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """The version of a table that indexes are built for, and what a task needs to know to write there."""

    pinned: PinnedTable
    root: str
    durability: Durability

    def sync(self, built: "StagedIndex") -> None:
        """Make the files of an index, or of a part, durable (N1).

        Raises:
            StorageError: the system failed.
        """
        is_local = self.pinned.address.local_path is not None
        syncer = Syncer(self.durability, is_local, self.root if is_local else None)
        syncer.sync(list(index_files(self.pinned.address, [built])), stage="staged")


@dataclass(frozen=True, slots=True)
class DueTable:
    """The indexes that are due on one version of a table."""

    place: IndexPlace
    handle: SnapshotHandle
    due: "tuple[DueIndex, ...]"


@dataclass(frozen=True, slots=True)
class BuiltTables:
    """The indexes by table, in the order in which they were due, and parts that are of no use any more."""

    indexes: "list[list[StagedIndex]]"
    used: "list[tuple[PinnedTable, StagedIndex]]"


@dataclass(frozen=True, slots=True)
class _PartTask:
    place: IndexPlace
    part: "IndexPart"
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _WholeTask:
    place: IndexPlace
    due: "DueIndex"
    parts: "tuple[StagedIndex, ...]"


def parts_wanted(rows: int, *, indexes: int, at_once: int) -> int:
    """Return into how many parts an index of so many rows is cut (N2)."""
    return max(1, min(ceil(at_once / indexes), rows // PART_ROWS_MIN))


def build_on_executors(jobs: Jobs, tables: Sequence[DueTable]) -> BuiltTables:
    """Let executors build all indexes of some tables.

    Raises:
        OmnigraphError: the first one that a task met; what others built is of no use.
        SparkUnavailable: a job failed.
    """
    from omnigraph.storage.tables.index_build import cut

    at_once, count = jobs.parallelism, sum(len(table.due) for table in tables)
    cuts = [
        (table, due, cut(table.handle, due, parts_wanted(due.rows, indexes=count, at_once=at_once)))
        for table in tables
        for due in table.due
    ]
    tasks = [_PartTask(table.place, part, len(parts) == 1) for table, _, parts in cuts for part in parts]
    made = iter(_largest_first(jobs, tasks))
    parts = [tuple(next(made) for _ in parts) for _, _, parts in cuts]
    apart = [
        _WholeTask(table.place, due, built)
        for (table, due, _), built in zip(cuts, parts, strict=True)
        if len(built) > 1
    ]
    whole = iter(jobs.each(apart, _put_together) if apart else [])
    by_index = iter([built[0] if len(built) == 1 else next(whole) for built in parts])
    used = [(task.place.pinned, part) for task in apart for part in task.parts]
    return BuiltTables([[next(by_index) for _ in table.due] for table in tables], used)


def _largest_first(jobs: Jobs, tasks: Sequence[_PartTask]) -> "list[StagedIndex]":
    """Return what tasks build, in their order; one that is large and begins last would delay all."""
    order = sorted(range(len(tasks)), key=lambda number: -_rows(tasks[number]))
    made = dict(zip(order, jobs.each([tasks[number] for number in order], _build), strict=True))
    return [made[number] for number in range(len(tasks))]


def _rows(task: _PartTask) -> int:
    due = task.part.due
    return due.rows * len(task.part.fragments) // len(due.fragments)


def _build(task: _PartTask) -> "StagedIndex":
    from omnigraph.storage.tables.index_build import build_part, build_whole

    handle = task.place.pinned.open()
    built = build_whole(handle, task.part.due) if task.is_whole else build_part(handle, task.part)
    task.place.sync(built)
    return built


def _put_together(task: _WholeTask) -> "StagedIndex":
    from omnigraph.storage.tables.index_build import put_together

    built = put_together(task.place.pinned.open(), task.due, task.parts)
    task.place.sync(built)
    return built
