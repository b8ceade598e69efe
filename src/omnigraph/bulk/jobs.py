"""Spark jobs of one operation: told about while they run, cancelled together, their errors translated.

B1  An interrupt cancels every job of the operation before it goes on.
B2  What goes wrong inside of a task and has a type of ours comes back as that very error.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.bulk.progress import ProgressCallback, ProgressEvent, Stage, silent
from omnigraph.bulk.session import is_remote, log_path
from omnigraph.core.errors import OmnigraphError, SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POLL_S = 0.25  # a bar that moves four times a second looks alive
TASKS_PER_CORE = 4  # what is cut for tasks is cut this fine: one slow piece does not keep the others waiting
TASKS_PER_CORE_MAX = 16  # beyond, one task takes several items: starting it would cost more than its work
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """An error of ours on its way from a task to the driver; most of them cannot be pickled as they are."""

    kind: type[OmnigraphError]
    args: tuple[Any, ...]
    state: dict[str, Any]

    @classmethod
    def of(cls, error: OmnigraphError) -> "TaskFailure":
        """Take an error apart."""
        return cls(type(error), error.args, dict(error.__dict__))

    def error(self) -> OmnigraphError:
        """Put it together again."""
        made = self.kind.__new__(self.kind, *self.args)
        made.args = self.args
        made.__dict__.update(self.state)
        return made


@dataclass(frozen=True, slots=True)
class Jobs:
    """Runs the jobs of one operation on one session."""

    spark: "SparkSession"
    operation_id: str
    progress: ProgressCallback = silent

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        if is_remote(self.spark):
            return int(self.spark.conf.get("spark.sql.shuffle.partitions", "8") or 8)
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def is_local(self) -> bool:
        """Whether the tasks run on this machine."""
        return not is_remote(self.spark) and (self.spark.sparkContext.master or "").startswith("local")

    def over(
        self, items: Sequence[Item], batches: Callable[[Item], Iterator[pa.RecordBatch]], schema: str
    ) -> "DataFrame":
        """Return the frame of what a function yields for each item; the items travel, and no rows.

        Raises:
            SparkUnavailable: Spark refused the plan.
        """
        count = len(items)
        carried = tuple(items)

        def task(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in pieces:
                numbers: list[Any] = batch.column(0).to_pylist()
                for number in numbers:
                    yield from batches(carried[number])

        partitions = max(1, min(count, self.parallelism * TASKS_PER_CORE_MAX))
        return self.spark.range(0, count, 1, partitions).mapInArrow(task, schema)

    def collect(self, frame: "DataFrame") -> pa.Table:
        """Return the rows of a frame that is known to be small.

        Raises:
            SparkUnavailable: the job failed.
        """
        return self.run(frame.toArrow)

    def each(self, items: Sequence[Item], work: Callable[[Item], Result]) -> list[Result]:
        """Return what a function makes of each item in its task, in the order of the items (B2).

        Raises:
            OmnigraphError: the first one that a task met, in the order of the items.
            SparkUnavailable: the job failed.
        """
        import pickle

        def batches(item: tuple[int, Item]) -> Iterator[pa.RecordBatch]:
            number, inner = item
            try:
                made: object = work(inner)
            except OmnigraphError as error:
                made = TaskFailure.of(error)
            yield pa.RecordBatch.from_pydict(
                {
                    "number": pa.array([number], pa.int64()),
                    "made": pa.array([pickle.dumps(made)], pa.binary()),
                }
            )

        found = self.collect(self.over(list(enumerate(items)), batches, "number long, made binary"))
        rows: list[Any] = found.to_pylist()
        answers: dict[int, Any] = {
            row["number"]: pickle.loads(row["made"])  # noqa: S301 - from our own tasks
            for row in rows
        }
        in_order = [answers[number] for number in range(len(items))]
        for answer in in_order:
            if isinstance(answer, TaskFailure):
                raise answer.error()
        return in_order

    def run(self, action: Callable[[], Result]) -> Result:
        """Run something that starts jobs (B1).

        Raises:
            SparkUnavailable: a job failed.
        """
        self._tag()
        try:
            return action()
        except (KeyboardInterrupt, SystemExit):
            self.cancel()
            raise
        except OmnigraphError:
            raise
        except Exception as error:
            raise _translated(error) from error

    def cancel(self) -> None:
        """Stop what runs for this operation."""
        if is_remote(self.spark):
            self.spark.interruptTag(self.operation_id)
        else:
            self.spark.sparkContext.cancelJobGroup(self.operation_id)

    @contextmanager
    def stage(self, stage: Stage, *, bytes_total: int = 0) -> Iterator["StageReport"]:
        """Tell that a stage begins, how far it is, and that it has ended."""
        report = StageReport()
        self.progress(ProgressEvent(stage, bytes_total=bytes_total))
        stop = threading.Event()
        watcher = None
        if self.progress is not silent and not is_remote(self.spark):
            known = self._job_ids()
            watcher = threading.Thread(
                target=self._watch, args=(stage, bytes_total, known, stop), daemon=True
            )
            watcher.start()
        try:
            yield report
        finally:
            stop.set()
            if watcher is not None:
                watcher.join()
        self.progress(
            ProgressEvent(stage, 0, 0, report.rows, report.bytes or bytes_total, bytes_total, is_done=True)
        )

    def _watch(self, stage: Stage, bytes_total: int, known: frozenset[int], stop: threading.Event) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        while not stop.wait(POLL_S):
            done = total = 0
            for job in self._job_ids() - known:
                info = tracker.getJobInfo(job)
                stages = [tracker.getStageInfo(number) for number in (info.stageIds if info else ())]
                done += sum(item.numCompletedTasks for item in stages if item is not None)
                total += sum(item.numTasks for item in stages if item is not None)
            if total:
                moved = bytes_total * done // total
                self.progress(ProgressEvent(stage, done, total, 0, moved, bytes_total))

    def _job_ids(self) -> frozenset[int]:
        return frozenset(self.spark.sparkContext.statusTracker().getJobIdsForGroup(self.operation_id))

    def _tag(self) -> None:
        if is_remote(self.spark):
            self.spark.addTag(self.operation_id)
        else:
            context = self.spark.sparkContext
            context.setJobGroup(self.operation_id, "omnigraph", interruptOnCancel=True)


@dataclass(slots=True)
class StageReport:
    """What a stage did, for its last event."""

    rows: int = 0
    bytes: int = 0


def _translated(error: Exception) -> SparkUnavailable:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # The last line of a Python traceback in a task says what went wrong; the first is about the JVM.
    told = [line for line in lines if "Error:" in line or "Exception:" in line]
    reason = (told or lines or [type(error).__name__])[-1 if told else 0]
    return SparkUnavailable(f"a Spark job failed ({reason}); its log is {log_path()}")
