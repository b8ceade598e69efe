"""Columns that a change of schema writes, on executors: one task a fragment, in which no row is sent.

N1  A task is told a fragment of one version and what its columns come from. It writes the files and syncs
    them, and returns their description: what it writes is what the driver would have written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.bulk.connect.jobs import Jobs

if TYPE_CHECKING:
    from omnigraph.storage.tables.column_work import ColumnWork
    from omnigraph.storage.tables.fragments import TaskTable, WrittenColumns


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """The columns of one fragment."""

    table: "TaskTable"
    work: "ColumnWork"
    fragment: int


def write_on_executors(jobs: Jobs, tasks: Sequence[ColumnTask]) -> "list[WrittenColumns]":
    """Let executors write the columns of all tasks, in the order of the tasks (N1).

    Raises:
        OmnigraphError: the first one that a task met.
        SparkUnavailable: a job failed.
    """
    return jobs.each(tasks, write)


def write(task: ColumnTask) -> "WrittenColumns":
    """Write the columns of one fragment, in a task.

    Raises:
        StorageError: the store failed.
    """
    from omnigraph.storage.tables.fragments import write_columns

    return write_columns(task.table, task.work, task.fragment)
