"""Spark jobs of one operation: reported while they run, cancelled together, their errors translated.

B1  An interrupt cancels every job of the operation before it is passed on.
B2  An error of our own types that occurs inside a task comes back as that very error.
B3  An executor process that does not match the driver refuses its first task, whenever it joined.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.bulk.connect.admission import Probe, admit
from omnigraph.bulk.connect.progress import ProgressCallback, ProgressEvent, Stage, silent
from omnigraph.bulk.connect.session import is_remote, log_path
from omnigraph.core.clock import boot_clock
from omnigraph.core.errors import OmnigraphError, SparkUnavailable

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

POLL_S = 0.25  # a bar that moves four times a second looks alive
TASKS_PER_CORE = 4  # work is cut this fine: one slow piece does not keep the others waiting
TASKS_PER_CORE_MAX = 16  # beyond this, a task takes several items: starting it would cost more than its work
REMOTE_ROWS = 100_000  # more than a cluster has cores: every piece gets some
Item = TypeVar("Item")
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """An error of ours on its way from a task to the driver; most of them cannot be pickled directly."""

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
    probe: Probe | None = None

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        if is_remote(self.spark):
            return _remote_parallelism(self.spark)
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def is_local(self) -> bool:
        """Whether the tasks run on this machine."""
        return not is_remote(self.spark) and (self.spark.sparkContext.master or "").startswith("local")

    def over(
        self, items: Sequence[Item], batches: Callable[[Item], Iterator[pa.RecordBatch]], schema: str
    ) -> "DataFrame":
        """Return the frame of what a function yields for each item; only the items are sent, no rows (B3).

        Raises:
            SparkUnavailable: Spark refused the plan.
        """
        probe = self.probe

        def admitted(item: Item) -> Iterator[pa.RecordBatch]:
            admit(probe)
            yield from batches(item)

        return self._frame(items, admitted, schema)

    def _frame(
        self, items: Sequence[Item], batches: Callable[[Item], Iterator[pa.RecordBatch]], schema: str
    ) -> "DataFrame":
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

    def each(
        self,
        items: Sequence[Item],
        work: Callable[[Item], Reply],
        *,
        undo: Callable[[Sequence[Reply]], None] | None = None,
    ) -> list[Reply]:
        """Return what a function makes of each item in its task, in the order of the items (B2, B3).

        If a task fails, `undo` gets what the others made before the error is raised.

        Raises:
            OmnigraphError: the first one that a task met, in the order of the items.
            SparkUnavailable: the job failed.
        """
        import pickle

        probe = self.probe

        def batches(item: tuple[int, Item]) -> Iterator[pa.RecordBatch]:
            number, inner = item
            try:
                admit(probe)  # here and not in `over`: an error that is an answer is not tried elsewhere
                made: object = work(inner)
            except OmnigraphError as error:
                made = TaskFailure.of(error)
            yield pa.RecordBatch.from_pydict(
                {
                    "number": pa.array([number], pa.int64()),
                    "made": pa.array([pickle.dumps(made)], pa.binary()),
                }
            )

        found = self.collect(self._frame(list(enumerate(items)), batches, "number long, made binary"))
        rows: list[Any] = found.to_pylist()
        answers: dict[int, Any] = {
            row["number"]: pickle.loads(row["made"])  # noqa: S301 - from our own tasks
            for row in rows
        }
        in_order = [answers[number] for number in range(len(items))]
        failures = [answer for answer in in_order if isinstance(answer, TaskFailure)]
        if failures:
            if undo is not None:
                undo([answer for answer in in_order if not isinstance(answer, TaskFailure)])
            raise failures[0].error()
        return in_order

    def run(self, action: Callable[[], Reply]) -> Reply:
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
            if _interrupt_behind(error):
                self.cancel()
                raise KeyboardInterrupt from error
            raise _translated(error) from error

    def cancel(self) -> None:
        """Stop what is running for this operation."""
        if is_remote(self.spark):
            self.spark.interruptTag(self.operation_id)
        else:
            self.spark.sparkContext.cancelJobGroup(self.operation_id)

    @contextmanager
    def stage(self, *stages: Stage, bytes_total: int = 0) -> Iterator["StageReport"]:
        """Report the start, progress and end of a stage; several may be worked on together."""
        begun = boot_clock()
        is_watched = self.progress is not silent and not is_remote(self.spark)
        report = StageReport(tally=self._tally() if is_watched else None)
        for stage in stages:
            self.progress(ProgressEvent(stage, bytes_total=bytes_total))
        stop = threading.Event()
        watcher = None
        if is_watched:
            known = self._job_ids()
            watch = _Watch(stages, bytes_total, known, begun, report)
            watcher = threading.Thread(target=self._follow, args=(watch, stop), daemon=True)
            watcher.start()
        try:
            yield report
        finally:
            stop.set()
            if watcher is not None:
                watcher.join()
        elapsed = boot_clock() - begun
        for stage in stages:
            self.progress(
                ProgressEvent(
                    stage,
                    rows=report.rows,
                    bytes_done=report.bytes or bytes_total,
                    bytes_total=bytes_total,
                    is_done=True,
                    seconds=elapsed * report.share_of(stage, stages),
                )
            )

    def _follow(self, watch: "_Watch", stop: threading.Event) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        tally = watch.report.tally
        assert tally is not None, "what is watched is counted"
        while not stop.wait(POLL_S):
            done = total = 0
            for job in self._job_ids() - watch.known:
                info = tracker.getJobInfo(job)
                stages = [tracker.getStageInfo(number) for number in (info.stageIds if info else ())]
                done += sum(item.numCompletedTasks for item in stages if item is not None)
                total += sum(item.numTasks for item in stages if item is not None)
            if total:
                moved = min(tally.bytes.value or watch.bytes_total * done // total, watch.bytes_total)
                elapsed = boot_clock() - watch.begun
                for stage in watch.stages:
                    self.progress(
                        ProgressEvent(
                            stage, done, total, tally.rows.value, moved, watch.bytes_total, seconds=elapsed
                        )
                    )

    def _tally(self) -> "Tally":
        context = self.spark.sparkContext
        return Tally(context.accumulator(0), context.accumulator(0))

    def _job_ids(self) -> frozenset[int]:
        return frozenset(self.spark.sparkContext.statusTracker().getJobIdsForGroup(self.operation_id))

    def _tag(self) -> None:
        if is_remote(self.spark):
            self.spark.addTag(self.operation_id)
        else:
            context = self.spark.sparkContext
            context.setJobGroup(self.operation_id, "omnigraph", interruptOnCancel=True)


@dataclass(frozen=True, slots=True)
class Tally:
    """What the tasks of a stage have done so far; a task that runs again counts again: for display only."""

    rows: "Accumulator[int]"
    bytes: "Accumulator[int]"

    def add(self, *, rows: int, size: int) -> None:
        """Count rows and bytes, inside a task."""
        self.rows.add(rows)
        self.bytes.add(size)


@dataclass(slots=True)
class StageReport:
    """What a stage did, for its last event; `tally` goes to the tasks, if progress is watched.

    `seconds` has the time of tasks by stage, where they worked for several.
    """

    rows: int = 0
    bytes: int = 0
    seconds: Mapping[Stage, float] = field(default_factory=dict)
    tally: Tally | None = None

    def share_of(self, stage: Stage, among: Sequence[Stage]) -> float:
        """Return a stage's share of the time of several; the whole where it was not measured."""
        total = sum(self.seconds.get(other, 0.0) for other in among)
        return self.seconds.get(stage, 0.0) / total if total else 1.0


@dataclass(frozen=True, slots=True)
class _Watch:
    """What is watched while stages run: their jobs are those not known before."""

    stages: tuple[Stage, ...]
    bytes_total: int
    known: frozenset[int]
    begun: float
    report: StageReport


@lru_cache(maxsize=1)
def _remote_parallelism(spark: "SparkSession") -> int:
    """Return into how many pieces a Connect server cuts a frame by default."""
    from pyspark.sql.functions import spark_partition_id

    found = spark.range(0, REMOTE_ROWS).select(spark_partition_id().alias("piece")).distinct().toArrow()
    return max(1, int(found.num_rows))


def _interrupt_behind(error: BaseException) -> bool:
    """Return whether an interrupt came first: as it propagates, Spark reports jobs that were cancelled."""
    before = error.__context__
    return before is not None and (isinstance(before, KeyboardInterrupt) or _interrupt_behind(before))


def _translated(error: Exception) -> SparkUnavailable:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    refused = next((line for line in lines if f"{SparkUnavailable.__name__}: " in line), None)
    if refused is not None:
        return SparkUnavailable(refused.partition(f"{SparkUnavailable.__name__}: ")[2])
    # The last line of a Python traceback in a task says what went wrong; the first is about the JVM.
    told = [line for line in lines if "Error:" in line or "Exception:" in line]
    reason = (told or lines or [type(error).__name__])[-1 if told else 0]
    return SparkUnavailable(f"a Spark job failed ({reason}); its log is {log_path()}")
