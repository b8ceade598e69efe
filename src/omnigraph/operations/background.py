"""Automatic maintenance: a thread of a long-lived process does what its writes would do, and heavier things.

B1  While it waits, the thread holds no queue, gate or lock; at work it holds the queue of one table.
B2  Nothing that goes wrong here reaches a caller: it is a warning, and the table waits for another interval.
B3  It ends with its handle. `close` and the end of the process wait for the step at hand; no other begins.
B4  Upkeep is due as for the writes that would have done it (K1 of `upkeep.py`), a little earlier. What is too
    heavy for a write follows a round where the layout asks for it, and the first look at a table.
"""

import atexit
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from omnigraph.commit.trim import trim_manifests
from omnigraph.commit.write import owns
from omnigraph.core.clock import boot_clock
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import BranchIdentity
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.layout import lay_out, plan_table
from omnigraph.operations.optimize import FAILPOINTS
from omnigraph.operations.upkeep import has_many_uncovered, is_due_on_a_thread, tend
from omnigraph.storage.tables.layout import names_in_full
from omnigraph.storage.tables.staged import CommittedTable

SEGMENTS_MAX = 8  # of an index: a lookup asks each of them
SMALL_FRAGMENTS_MAX = 64  # of a table, below the rows that a fragment may have: a scan opens each of them


@dataclass(frozen=True, slots=True)
class Job:
    """Something else that the thread does, by the clock."""

    name: str
    every_s: float
    run: Callable[[OpenGraph], object]


def _trim(graph: OpenGraph) -> None:
    trim_manifests(graph.parts, graph.publisher)


# What every thread does besides tending tables.
JOBS = (Job("trimming of old manifest versions", 3_600.0, _trim),)


class Maintenance:
    """The thread of one open graph."""

    def __init__(self, graph: OpenGraph, jobs: Sequence[Job] = JOBS) -> None:
        """Take the graph; nothing happens before `begin`."""
        self._graph = graph
        self._condition = threading.Condition()
        self._written: dict[BranchIdentity, int] = {}
        self._tried: dict[
            tuple[BranchIdentity, str], int
        ] = {}  # tables looked at; where a round was tried last
        self._is_ended = False
        self._jobs = {job: boot_clock() + job.every_s for job in jobs}
        self._thread = threading.Thread(target=self._run, name="omnigraph-maintenance", daemon=True)

    def begin(self) -> None:
        """Start the thread; the end of the process waits for its step at hand (B3)."""
        atexit.register(self.end)
        self._thread.start()

    def wrote(self, branch: BranchIdentity, rows: int) -> None:
        """Note that a write of so many rows has landed on a branch."""
        with self._condition:
            self._written[branch] = max(rows, self._written.get(branch, 0))
            self._condition.notify()

    def end(self) -> None:
        """Wait for the step at hand and end the thread; a second call does nothing (B3)."""
        with self._condition:
            self._is_ended = True
            self._condition.notify()
        atexit.unregister(self.end)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not (self._is_ended or self._written or self._due_jobs()):
                    self._condition.wait(self._pause_s())
                if self._is_ended:
                    return
                written, self._written = self._written, {}
            for branch, rows in written.items():
                self._guarded(f"maintenance of branch '{branch.name}'", self._tend, branch, rows)
            for job in self._due_jobs():
                self._jobs[job] = boot_clock() + job.every_s
                self._guarded(job.name, job.run, self._graph)

    def _due_jobs(self) -> list[Job]:
        now = boot_clock()
        return [job for job, at in self._jobs.items() if at <= now]

    def _pause_s(self) -> float | None:
        return max(0.0, min(self._jobs.values()) - boot_clock()) if self._jobs else None

    def _guarded(self, what: str, run: Callable[..., object], *given: object) -> None:
        """Do one thing; whatever it raises is a warning (B2)."""
        if self._is_ended:
            return
        try:
            run(*given)
        except Exception as error:  # noqa: BLE001 - the outermost edge of the thread: nobody is there to tell
            self._graph.parts.warn(f"{what} failed and will be retried later: {error}")

    def _tend(self, branch: BranchIdentity, rows: int) -> None:
        """Look at the tables that a branch writes, and maintain what is due (B4)."""
        graph = self._graph
        for entry in graph.last_seen(branch).tables.entries():
            if self._is_ended:
                return
            if owns(branch, entry):
                self._guarded(f"maintenance of {entry.table_key}", self._tend_table, branch, entry, rows)
        graph.follow_write(branch)

    def _tend_table(self, branch: BranchIdentity, entry: TableEntry, rows: int) -> None:
        key = (branch, entry.table_key)
        is_known, tried = key in self._tried, self._tried.get(key, 0)
        due = is_due_on_a_thread(entry, tried=tried) or has_many_uncovered(self._graph, entry, rows)
        if is_known and not due:
            return
        self._tried[key] = entry.version if due else tried
        if due:
            tend(self._graph, branch.name, entry, waits=True)
        if not self._is_ended:
            self._lay_out_if_untidy(branch, entry.table_key)

    def _lay_out_if_untidy(self, branch: BranchIdentity, table_key: str) -> None:
        graph = self._graph
        entry = graph.state(branch.name).snapshot().entries.get(table_key)
        if entry is None or not owns(branch, entry):
            return
        catalog = graph.catalog_on(branch.name)
        work = plan_table(graph.parts, catalog, entry)
        is_untidy = (
            work.layout.segments_max > SEGMENTS_MAX or work.layout.small_fragments > SMALL_FRAGMENTS_MAX
        )
        if is_untidy and not work.is_none:

            def planned_anew(_: OpenGraph, entry: TableEntry, operation_id: str) -> CommittedTable | None:
                """Bring the table into its best layout, planned anew under its queue."""
                return lay_out(graph.parts, plan_table(graph.parts, catalog, entry), operation_id)

            chosen = partial(names_in_full, builds=bool(work.missing))
            tend(graph, branch.name, entry, planned_anew, FAILPOINTS, chosen=chosen, waits=True)
