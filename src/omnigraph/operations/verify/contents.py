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
from omnigraph.operations.progress import Advance, TableProgressCallback, Tables, unmoved
from omnigraph.operations.verify.history import BranchLook
from omnigraph.operations.verify.indexes import BuiltIndex, built_indexes, disagreements
from omnigraph.operations.verify.report import (
    FINDINGS_MAX,
    FindingKind,
    VerifyFinding,
)
from omnigraph.operations.verify.rows import PinnedRows, RowStep, findings_of, row_steps


@dataclass(frozen=True, slots=True)
class _Step:
    """One check: of which table or index of it, how many rows it reads, and what exactly it is about."""

    table_key: str
    index: BuiltIndex | None
    rows: int
    what: Hashable
    run: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A check that could not be made."""

    table_key: str
    index: BuiltIndex | None
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
    progress: TableProgressCallback
    findings: list[VerifyFinding] = field(default_factory=list)
    untold: int = 0
    rows_checked: int = 0
    _done: set[Hashable] = field(default_factory=set)
    _advance: Advance = unmoved

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
        by_table: dict[str, list[_Step]] = {}
        for step in self._steps(look, catalog, rows, failures):
            by_table.setdefault(step.table_key, []).append(step)
        work = {key: sum(step.rows for step in steps) for key, steps in by_table.items()}
        tables = Tables("verify", work, self.progress, stage=look.stage)
        for key, steps in by_table.items():
            with tables.at(key) as self._advance:
                for step in steps:
                    self._run(step, failures)
        return failures

    def _run(self, step: _Step, failures: list[_Failure]) -> None:
        try:
            step.run()
        except OmnigraphError as error:
            failures.append(_Failure(step.table_key, step.index, error))
        else:
            self._done.add(step.what)

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
                    yield _Step(key, index, index.rows, what, run)

    def _run_rows(self, look: BranchLook, step: RowStep) -> None:
        log = step.run()
        found = findings_of(log, look.where(step.table_key))
        self.findings += found
        self.untold += log.total - len(found)
        self.rows_checked += step.new_rows

    def _run_index(self, look: BranchLook, committed: CommittedTables, key: str, index: BuiltIndex) -> None:
        told = disagreements(committed, self.parts.store, key, index, self._advance)
        for number, what in enumerate(told):
            if number < FINDINGS_MAX:
                self.findings.append(_about_index(look, key, index, what))
            else:
                self.untold += 1

    def _tick(self, rows: int) -> None:
        self._advance(rows)


def _about_index(look: BranchLook, table_key: str, index: BuiltIndex, what: str) -> VerifyFinding:
    found = VerifyFinding.of(FindingKind.INDEX, f"{look.where(table_key)}, index {index.name}", what)
    return found.of_property(table_key, index.spec.column, look.name)


def _snapshot(look: BranchLook) -> Snapshot:
    return Snapshot(
        look.state.branch,
        look.state.sequence,
        {entry.table_key: entry for entry in look.entries},
        look.state.head,
    )
