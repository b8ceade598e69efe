"""A load on Spark: slices go to executors, fragments and verdicts come back, and the driver publishes once.

    count lines -> read, check values, write fragments -> keys -> endpoints -> cardinality -> stage -> commit

H1  The driver holds descriptions, counts and the first violations, and never rows, except for an upsert below
    the configured size.
H2  Nothing of a load is visible before its one publish; until then it is files that nothing refers to. When
    the load ends, however it ends, those that it does not need are removed: tasks note what they write, and a
    driver that is still alive reads the notes.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from omnigraph.bulk.connect.jobs import TASKS_PER_CORE, Jobs
from omnigraph.bulk.connect.leftovers import remove_leftovers
from omnigraph.bulk.connect.probe import probed
from omnigraph.bulk.connect.progress import Stage, told
from omnigraph.bulk.load.spool import Spool
from omnigraph.bulk.load.tasks import TaskWork, grouped
from omnigraph.bulk.sources.sources import WHOLE, SourceInput, needs_survey, place, plan_slices, survey
from omnigraph.commit.finalize import WriteRequest, finalize_staged
from omnigraph.commit.sidecar import WriterKind
from omnigraph.commit.write import forked, owns
from omnigraph.core.shield import delivering_behind
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import ManifestState, Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import start_spark
from omnigraph.operations.load.model import (
    FrameInput,
    LoadInput,
    LoadOptions,
    LoadResult,
    RecordInput,
    TableInput,
)
from omnigraph.operations.load.spark_run import BulkRun
from omnigraph.operations.settings import read_limits
from omnigraph.operations.turns import Claim

SLICE_BYTES_MAX = 64 * 1024 * 1024  # what one task reads: enough to fill fragments, cheap enough to repeat
SLICE_BYTES_MIN = 1024 * 1024  # below this, starting a task costs more than its work


class BulkLoad:
    """One load on Spark."""

    def __init__(
        self,
        graph: OpenGraph,
        inputs: Sequence[LoadInput],
        options: LoadOptions,
        *,
        branch: str,
        actor: str | None,
        message: str | None,
    ) -> None:
        """Take what to load; nothing starts before the first attempt."""
        self._graph, self._inputs, self._options = graph, inputs, options
        self._branch, self._actor, self._message = branch, actor, message

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do and nothing to report: a load without inputs."""
        return not self._inputs

    @property
    def claim(self) -> Claim | None:
        """None: all writers of the handle would wait for it, perhaps for hours."""
        return None

    def prepare(self) -> None:
        """Nothing: an attempt begins with Spark."""

    def attempt(self, _state: ManifestState) -> tuple[LoadResult, Snapshot]:
        """Read, validate against the snapshot that is the newest once Spark runs, write, and publish.

        Raises:
            ValidationError, KeyConflict: nothing is visible, and nothing is left (H2).
            ConflictError: another writer was first.
            SparkUnavailable: there is no Spark, or an executor does not match the driver.
        """
        parts, options = self._graph.parts, self._options
        with delivering_behind(), ExitStack() as held:
            with told(options.progress, Stage.START):
                started = start_spark(self._graph, options.master, options.progress)
                state = self._graph.state(self._branch)
                snapshot = state.snapshot()
                for name, error in remove_leftovers(parts.root, now_micros=parts.clock()).items():
                    parts.warn(f"'{name}' of a dead load could not be removed: {error}")
                jobs = held.enter_context(probed(started, parts.root, parts.adapter))
            spool = held.enter_context(Spool(jobs, parts.root))
            work = self._work(jobs, spool)
            # Before any task: what tasks write for a fork goes to the fork's own folder.
            forks = held.enter_context(forked(parts, state.branch, self._first_touched(snapshot, spool)))
            run = BulkRun(self._graph, options, jobs, snapshot.showing(forks.tables), work, spool)
            held.callback(run.discard_files)
            result = replace(run.validated(), branch=snapshot.branch)
            forks.keep(run.rows)
            if options.is_dry_run or not run.has_work:
                return result, snapshot
            staged = run.staged()
            result = replace(result, vectors=run.vectors)
            request = WriteRequest(WriterKind.LOAD, snapshot, self._actor, self._message)
            with jobs.stage(Stage.COMMIT):
                outcome = finalize_staged(
                    parts, self._graph.publisher, request, run.write_set, staged, made=[forks, run]
                )
            return replace(result, commit=outcome.commit), snapshot

    def _first_touched(self, snapshot: Snapshot, spool: Spool) -> list[TableEntry]:
        """Return the tables that the branch only inherits and that the load may write."""
        if self._options.is_dry_run:
            return []
        named = {source.table_key for source in spool.sources}
        return [
            entry
            for key, entry in snapshot.entries.items()
            if (None in named or key in named) and not owns(snapshot.branch_identity, entry)
        ]

    def _work(self, jobs: Jobs, spool: Spool) -> tuple[TaskWork, ...]:
        """Return what tasks read: the slices of all inputs with exact lines."""
        for file, item in enumerate(self._inputs):
            match item:
                case SourceInput():
                    spool.take_source(file, item)
                case RecordInput(data, name):
                    spool.take_records(file, name, data)
                case TableInput(table_key, table, name):
                    spool.take_table(file, name, table_key, table)
                case FrameInput(table_key, frame, name):
                    spool.take_frame(file, name, table_key, frame)
        limits = read_limits()
        size = sum(slice_.size for slice_ in plan_slices(spool.sources, target_bytes=WHOLE, limits=limits))
        wanted = size // (jobs.parallelism * TASKS_PER_CORE)
        target = max(SLICE_BYTES_MIN, min(SLICE_BYTES_MAX, wanted))
        slices = plan_slices(spool.sources, target_bytes=target, limits=limits)
        counted = needs_survey(slices)
        if counted:
            with jobs.stage(Stage.SURVEY, bytes_total=sum(slice_.size for slice_ in counted)):
                surveys = jobs.each(counted, survey)
        return grouped(spool.in_order(place(slices, surveys if counted else ())), target)
