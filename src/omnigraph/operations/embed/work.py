"""Where the work of `embed` is done: in this process, or on Spark executors. Both run the same tasks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from omnigraph.bulk.connect.jobs import TASKS_PER_CORE, Jobs
from omnigraph.bulk.connect.probe import probed
from omnigraph.bulk.connect.progress import ProgressCallback, Stage, told
from omnigraph.bulk.embed import (
    DeleteTask,
    Filling,
    FillReport,
    FillTask,
    cut,
    delete_on_executors,
    delete_rows,
    fill,
    fill_on_executors,
    for_executors,
)
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.provider import Provider
from omnigraph.history.fold import TableEntry
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import start_spark
from omnigraph.staging.fragments import Replaced
from omnigraph.storage.tables.pinned import Piece

TASK_ROWS_MIN = 1_000  # below, starting a task costs more than its few requests


@dataclass(frozen=True, slots=True)
class EmbedWork:
    """What to fill in one table, and the fragments with rows to fill."""

    entry: TableEntry
    filling: Filling
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """How many rows get vectors."""
        return sum(piece.rows for piece in self.pieces)

    def tasks(self, rows_max: int, config: EmbeddingConfig) -> list[FillTask]:
        """Return tasks of at most this many rows each."""
        filling = replace(self.filling, config=config)
        shares = cut(((piece.number, piece.rows) for piece in self.pieces), rows_max)
        return [FillTask(number, filling, found) for number, found in enumerate(shares)]

    def deletions(self) -> list[DeleteTask]:
        """Return one task per fragment with rows to replace; it needs neither a provider nor a key."""
        filling = replace(self.filling, config=EmbeddingConfig())
        return [DeleteTask(filling, piece.number, piece.rows) for piece in self.pieces]


class Workers(Protocol):
    """Fill and delete rows, for all tables of a run."""

    def fill(self, work: Sequence[EmbedWork]) -> list[FillReport]:
        """Return what was written; what failed is in the reports."""
        ...

    def delete(self, work: Sequence[EmbedWork]) -> list[tuple[str, Replaced]]:
        """Return what was deleted, by table key."""
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """This process: one table after another, stopping at the first that fails."""

    provider: Provider
    config: EmbeddingConfig
    progress: ProgressCallback

    def fill(self, work: Sequence[EmbedWork]) -> list[FillReport]:
        """Return what was written."""
        reports: list[FillReport] = []
        with told(self.progress, Stage.EMBED):
            for item in work:
                reports += [fill(task, self.provider) for task in item.tasks(item.rows, self.config)]
                if any(report.failure for report in reports):
                    break
        return reports

    def delete(self, work: Sequence[EmbedWork]) -> list[tuple[str, Replaced]]:
        """Return what was deleted, by table key.

        Raises:
            StorageError: the store failed.
        """
        with told(self.progress, Stage.STAGE):
            return _by_table(work, lambda tasks: [delete_rows(task) for task in tasks])


@dataclass(frozen=True, slots=True)
class Executors:
    """The executors of a Spark session that were found to match this process."""

    jobs: Jobs
    config: EmbeddingConfig

    def fill(self, work: Sequence[EmbedWork]) -> list[FillReport]:
        """Return what was written.

        Raises:
            EmbeddingError: an executor has no key for the provider.
            SparkUnavailable: a job failed.
        """
        rows = sum(item.rows for item in work)
        wanted = -(-rows // (self.jobs.parallelism * TASKS_PER_CORE))
        rows_max = max(TASK_ROWS_MIN, min(MAX_FRAGMENT_ROWS, wanted))
        with self.jobs.stage(Stage.EMBED) as stage:
            tasks = [task for item in work for task in item.tasks(rows_max, self.config)]
            reports = fill_on_executors(self.jobs, tasks)
            stage.rows = rows
        return reports

    def delete(self, work: Sequence[EmbedWork]) -> list[tuple[str, Replaced]]:
        """Return what was deleted, by table key.

        Raises:
            SparkUnavailable: a job failed.
        """
        with self.jobs.stage(Stage.STAGE):
            return _by_table(work, lambda tasks: delete_on_executors(self.jobs, tasks))


@contextmanager
def executors(
    graph: OpenGraph, master: str | None, config: EmbeddingConfig, progress: ProgressCallback
) -> Iterator[Executors]:
    """Yield the executors of the session, each of which sees the graph.

    Raises:
        SparkUnavailable: there is no Spark, or an executor does not match the driver.
    """
    with ExitStack() as held:
        with told(progress, Stage.START):
            started = start_spark(graph, master, progress)
            jobs = held.enter_context(probed(started, graph.parts.root, graph.parts.adapter))
        yield Executors(jobs, for_executors(config, jobs))


def _by_table(
    work: Sequence[EmbedWork], run: Callable[[Sequence[DeleteTask]], Sequence[Replaced]]
) -> list[tuple[str, Replaced]]:
    tasks = [task for item in work for task in item.deletions()]
    return [(task.filling.table_key, found) for task, found in zip(tasks, run(tasks), strict=True)]
