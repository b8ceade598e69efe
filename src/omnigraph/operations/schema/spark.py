"""The columns of a change of schema, written by the tasks of Spark; the driver stages, and commits once.

K1  What tasks write is unreferenced until the one commit of its table. Files that did not become part of one
    are found through the notes of the tasks and removed when the change ends, however it ends.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from omnigraph.bulk.columns import ColumnTask, write_on_executors
from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.connect.leftovers import remove_leftovers
from omnigraph.bulk.connect.probe import probed
from omnigraph.bulk.connect.progress import Stage
from omnigraph.bulk.load.spool import Spool
from omnigraph.catalog.reshape import EntityType
from omnigraph.commit.outcome import NoEffect
from omnigraph.core.shield import delivering_behind
from omnigraph.history.fold import TableEntry
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import discard_task_files, start_spark, task_table
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.reshape import Reshaping, stage_reshape_fragments
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.storage.tables.task_notes import TaskNotes


class ColumnExecutors:
    """The executors of a session that were found to match this process, and the files they have written."""

    def __init__(self, graph: OpenGraph, jobs: Jobs, notes: TaskNotes) -> None:
        """Take the jobs, and where their tasks leave notes."""
        self._graph, self._jobs, self._notes = graph, jobs, notes
        self._files: set[str] = set()
        self._handed: frozenset[str] = frozenset()

    def stage(
        self, entry: TableEntry, handle: SnapshotHandle, type_: EntityType, planned: Reshaping
    ) -> StagedWrite:
        """Let tasks write the columns of a table, one fragment each, and prepare its commit.

        Raises:
            SparkUnavailable: a job failed.
            StorageError: a task could not read or write.
        """
        assert planned.work is not None, "there is something to write"
        table = task_table(self._graph, type_, entry, "append", self._notes)
        tasks = [ColumnTask(table, planned.work, number) for number in planned.fragments]
        with self._jobs.stage(Stage.WRITE) as stage:
            written = write_on_executors(self._jobs, tasks)
            stage.rows = planned.rows
        self._files |= {path for part in written for path in part.files}
        sums = [item for part in written for item in part.sums]
        return stage_reshape_fragments(
            handle, planned, {part.fragment: part.description for part in written}, sums
        )

    def hand_over(self) -> None:
        """Hand what was written over to a commit."""
        self._handed = frozenset(self._files)

    def take_back(self, _end: NoEffect, /) -> None:
        """Take the files back after a commit that had no effect."""
        self._handed = frozenset()

    def discard(self) -> None:
        """Remove the files that nothing refers to; best effort (K1)."""
        discard_task_files(self._graph.parts, self._notes, known=self._files, handed=self._handed)


@contextmanager
def column_executors(graph: OpenGraph, master: str | None) -> Iterator[ColumnExecutors]:
    """Yield the executors of the session; what they wrote and no commit has is gone at the end (K1).

    Raises:
        SparkUnavailable: there is no Spark, or an executor does not match the driver.
    """
    parts = graph.parts
    with delivering_behind(), ExitStack() as held:
        started = start_spark(graph, master)
        for name, error in remove_leftovers(parts.root, now_micros=parts.clock()).items():
            parts.warn(f"'{name}' of a dead load could not be removed: {error}")
        jobs = held.enter_context(probed(started, parts.root, parts.adapter))
        spool = held.enter_context(Spool(jobs, parts.root))
        executors = ColumnExecutors(graph, jobs, spool.notes())
        held.callback(executors.discard)
        yield executors
