"""The rows and indexes of branches, as their newest commits show them: the long part of a verification.

C1  Others may write meanwhile: rows are read at pins, which nobody changes. What cannot be read is looked at
    again where the branch shows it by then, if it is still there, and reported if it still cannot.
C2  What several branches show at one version is checked once.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from omnigraph.catalog.model import Catalog
from omnigraph.commit.parts import Parts
from omnigraph.core.errors import OmnigraphError
from omnigraph.exec.mutation import CommittedTables
from omnigraph.history.state import Snapshot
from omnigraph.operations.verify.history import BranchLook
from omnigraph.operations.verify.indexes import BuiltIndex, built_indexes, disagreements
from omnigraph.operations.verify.report import (
    FINDINGS_MAX,
    FindingKind,
    Progress,
    VerifyFinding,
    VerifyProgress,
)
from omnigraph.operations.verify.rows import PinnedRows, RowStep, findings_of, row_steps


@dataclass(frozen=True, slots=True)
class _Step:
    """One check: of which table or index of it, how many rows it reads, and what exactly it is about."""

    table_key: str
    index: str | None
    rows: int
    what: Hashable
    run: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A check that could not be made."""

    table_key: str
    index: str | None
    error: OmnigraphError

    def finding(self, look: BranchLook) -> VerifyFinding:
        """Say what cannot be read."""
        if self.index is None:
            return VerifyFinding.of(FindingKind.TABLE, look.where(self.table_key), str(self.error))
        return _about_index(look, self.table_key, self.index, f"cannot be read: {self.error}")


@dataclass(slots=True)
class Contents:
    """What was found so far in the rows and indexes of some branches."""

    parts: Parts
    progress: Progress
    findings: list[VerifyFinding] = field(default_factory=list)
    untold: int = 0
    rows_checked: int = 0
    _done: set[Hashable] = field(default_factory=set)
    _read: int = 0
    _total: int = 0

    def check(self, look: BranchLook) -> None:
        """Check the tables of a branch (C1)."""
        catalog = look.catalog
        if catalog is None:
            return
        failures = self._check(look, catalog)
        if failures:
            if not self.parts.branches.is_live(look.state.branch):
                return  # deleted meanwhile, and its files with it
            state = self.parts.coordinator.read_apart(look.state.branch)
            if state.version != look.state.version:
                look = replace(look, state=state, entries=state.tables.entries())
                failures = self._check(look, catalog)
        told = {(failure.table_key, failure.index): failure for failure in reversed(failures)}
        self.findings += [failure.finding(look) for failure in reversed(told.values())]

    def _check(self, look: BranchLook, catalog: Catalog) -> list[_Failure]:
        """Make every check that is due (C2); return those that could not be made."""
        failures: list[_Failure] = []
        rows = PinnedRows(self.parts, {entry.table_key: entry for entry in look.entries}, self._tick)
        steps = list(self._steps(look, catalog, rows, failures))
        self._read, self._total = 0, sum(step.rows for step in steps)
        for step in steps:
            try:
                step.run()
            except OmnigraphError as error:
                failures.append(_Failure(step.table_key, step.index, error))
            else:
                self._done.add(step.what)
        return failures

    def _steps(
        self, look: BranchLook, catalog: Catalog, rows: PinnedRows, failures: list[_Failure]
    ) -> Iterator[_Step]:
        readable = []
        for entry in look.entries:
            try:
                if rows.fits(entry.table_key, catalog):
                    readable.append(entry.table_key)
            except OmnigraphError as error:
                failures.append(_Failure(entry.table_key, None, error))
        for step in row_steps(rows, catalog, frozenset(readable)):
            if step.what not in self._done:
                run = partial(self._run_rows, look, step)
                yield _Step(step.table_key, None, step.rows, step.what, run)
        committed = CommittedTables(_snapshot(look), self.parts.store, self.parts.pinned)
        for key in readable:
            for index in built_indexes(self.parts.store, committed.handle(key), catalog.type_of(key)):
                what = (index.name, rows.pin(key))
                if what not in self._done:
                    run = partial(self._run_index, look, committed, key, index)
                    yield _Step(key, index.name, index.rows, what, run)

    def _run_rows(self, look: BranchLook, step: RowStep) -> None:
        log = step.run()
        found = findings_of(log, look.where(step.table_key))
        self.findings += found
        self.untold += log.total - len(found)
        self.rows_checked += step.new_rows

    def _run_index(self, look: BranchLook, committed: CommittedTables, key: str, index: BuiltIndex) -> None:
        told = disagreements(committed, self.parts.store, key, index, partial(self._tick, key))
        for number, what in enumerate(told):
            if number < FINDINGS_MAX:
                self.findings.append(_about_index(look, key, index.name, what))
            else:
                self.untold += 1

    def _tick(self, table_key: str, rows: int) -> None:
        self._read = min(self._total, self._read + rows)
        self.progress(VerifyProgress("checking rows", self._read, self._total, table_key))


def _about_index(look: BranchLook, table_key: str, index: str, what: str) -> VerifyFinding:
    return VerifyFinding.of(FindingKind.INDEX, f"{look.where(table_key)}, index {index}", what)


def _snapshot(look: BranchLook) -> Snapshot:
    return Snapshot(
        look.state.branch,
        look.state.sequence,
        {entry.table_key: entry for entry in look.entries},
        look.state.head,
    )
