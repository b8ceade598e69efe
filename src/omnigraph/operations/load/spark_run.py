"""One attempt of a load on Spark, stage by stage, up to the writes that are ready to be committed.

H3  What a dry run, or a load that leaves rows out, needs to know is found without writing anything: rows are
    read again, from the input. Otherwise they are written as they are read, and checked in the written files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.connect.progress import Stage, added_up
from omnigraph.bulk.load.key_frames import FragmentFrames, SliceFrames, WrittenFrames
from omnigraph.bulk.load.questions import SparkQuestions
from omnigraph.bulk.load.quick import KeyPiece
from omnigraph.bulk.load.tasks import NO_NAMES, ReadPlan, SliceReport, SliceWork, check_slice, write_slice
from omnigraph.bulk.load.upsert import merge_on_executors
from omnigraph.bulk.sources.sources import Slice
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.commit.outcome import NoEffect
from omnigraph.exec.mutation import CommittedTables
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import discard_task_files, task_table
from omnigraph.operations.load.cleared import cleared_properties
from omnigraph.operations.load.local import looked_at
from omnigraph.operations.load.model import LoadOptions, LoadResult
from omnigraph.operations.load.rejects import Rejection, new_log
from omnigraph.operations.load.spark_keys import arrow_questions, sliced_keys, written_keys
from omnigraph.operations.settings import check_ceiling, key_rows, merge_bytes, read_limits
from omnigraph.staging.fragments import StagedFragments, fingerprint, stage_written
from omnigraph.staging.write_set import WriteSet
from omnigraph.storage.tables.fragments import (
    FragmentMode,
    TaskTable,
    WrittenFragment,
    data_paths,
    deletion_paths,
    read_written,
)
from omnigraph.storage.tables.pinned import pieces
from omnigraph.storage.tables.staged import StagedWrite
from omnigraph.storage.tables.task_notes import TaskNotes
from omnigraph.validate.columns import TypedRows
from omnigraph.validate.questions import FILE, LINE, KeyQuestions
from omnigraph.validate.set_checks import (
    TableTraits,
    check_cardinality,
    check_endpoints,
    check_keys,
    fold_by_id,
)
from omnigraph.validate.violations import ViolationLog


@dataclass(slots=True)
class BulkRun:
    """One attempt of a load on Spark, stage by stage."""

    graph: OpenGraph
    options: LoadOptions
    jobs: Jobs
    snapshot: Snapshot
    slices: tuple[Slice, ...]
    notes: TaskNotes
    rows: dict[str, int] = field(default_factory=dict)  # by table: what passed the value checks
    counts: dict[str, int] = field(default_factory=dict)  # by table: what is written, each id once
    fresh: dict[str, bool] = field(default_factory=dict)  # by table: whether all ids were generated here
    nulls: dict[str, frozenset[str]] = field(default_factory=dict)  # by table: properties of some row
    left_out: dict[str, frozenset[str]] = field(default_factory=dict)  # by table: properties of some record
    written: list[StagedFragments] = field(default_factory=list)
    deletions: list[str] = field(default_factory=list)  # files, of what is written
    garbage: list[str] = field(default_factory=list)
    handed: frozenset[str] = frozenset()  # files that a commit has, or may have

    @property
    def catalog(self) -> Catalog:
        """The types of the branch that is loaded into."""
        return self.graph.catalog_of(self.snapshot)

    @property
    def is_direct(self) -> bool:
        """Whether rows are written as they are read, because none of them can be left out later (H3)."""
        return not self.options.is_dry_run and not self.options.needs_all_violations

    @property
    def has_work(self) -> bool:
        """Whether there is anything to write."""
        return any(self.rows.values()) or (self.options.mode == "overwrite" and bool(self.rows))

    @property
    def write_set(self) -> WriteSet:
        """The tables that the load writes and reads; its rows are elsewhere."""
        keys = frozenset(self.rows)
        return WriteSet({}, keys, looked_at(self.catalog, keys, self.options.mode))

    def validated(self) -> LoadResult:
        """Check everything, in rounds if rows are left out; afterwards what remains is written, or can be.

        Raises:
            ValidationError, KeyConflict: something is wrong, and may not be left out.
            ColumnsLeftOut: columns that the options ask for are missing.
        """
        rejection = Rejection(self.options, new_log(self.options))
        while True:
            found = new_log(self.options)
            rejection.tell_refused(found)
            work = self._work(rejection)
            self._read(work, found, rejection, writes=self.is_direct)
            questions = self._questions(work, found.limit)
            self._check_sets(questions, found)
            if not rejection.take(found):
                break
        rejection.write()
        self.counts = self.rows
        if self.options.mode == "merge":
            self.counts = {key: questions.folded_count(key) for key in self.rows}
        cleared = cleared_properties(
            self.options,
            self.nulls,
            self.left_out,
            count=questions.cleared,
            count_replaced=questions.replaced,
            catalog=self.graph.catalog,
        )
        if not self.is_direct and not self.options.is_dry_run and self.has_work:
            self._read(self._work(rejection), new_log(self.options), rejection, writes=True)
        return LoadResult(
            None,
            self.options.mode,
            tuple(sorted(self.counts.items())),
            None,
            is_dry_run=self.options.is_dry_run,
            rejected_rows=len(rejection.places),
            violations=rejection.first,
            cleared=cleared,
        )

    def staged(self) -> list[tuple[TableEntry, StagedWrite]]:
        """Return one staged write for each table that changes.

        Raises:
            ResourceLimit: a table gets more rows or bytes than a setting allows.
            InvariantViolation: a task wrote for another version or other columns.
        """
        with self.jobs.stage(Stage.STAGE):
            found = []
            for table_key, count in sorted(self.rows.items()):
                if count or self.options.mode == "overwrite":
                    found.append((self.snapshot.entry(table_key), self._stage(table_key)))
            return found

    def hand_over(self) -> None:
        """Hand what was written over to a commit: it may be part of a version as soon as that has begun."""
        self.handed = frozenset([*self._data_paths(), *self.deletions])

    def take_back(self, _end: NoEffect, /) -> None:
        """Take the files back after a commit that had no effect."""
        self.handed = frozenset()

    def discard_files(self) -> None:
        """Remove the files that nothing refers to; best effort (H2)."""
        known = [*self._data_paths(), *self.garbage]
        discard_task_files(self.graph.parts, self.notes, known=known, handed=self.handed)

    def _data_paths(self) -> list[str]:
        known = [(part.table_key, item) for part in self.written for item in part.fragments]
        return [path for key, item in known for path in data_paths(self._table(key).address, item)]

    def _work(self, rejection: Rejection) -> tuple[SliceWork, ...]:
        """Return the slices with the lines that earlier rounds rejected."""
        rejected = {slice_.source.file: rejection.lines_of(slice_.source.file) for slice_ in self.slices}
        return tuple(
            SliceWork(slice_, number, rejected[slice_.source.file])
            for number, slice_ in enumerate(self.slices)
        )

    def _read(
        self, work: Sequence[SliceWork], found: ViolationLog, rejection: Rejection, *, writes: bool
    ) -> None:
        """Read the slices on executors and check their values; write what passes if asked to."""
        plan, tables, notes = self._plan(found.limit), self._tables(), self.notes
        size = sum(slice_.size for slice_ in self.slices)
        with self.jobs.stage(*self._read_stages(writes=writes), bytes_total=size) as stage:
            tally = stage.tally

            def read(item: SliceWork) -> SliceReport:
                if writes:
                    with notes.writing():
                        report = write_slice(item, plan, tables.__getitem__, with_places=True)
                else:
                    report = check_slice(item, plan)
                if tally is not None:
                    tally.add(rows=sum(report.rows.values()), size=item.slice.size)
                return report

            reports = self.jobs.each(work, read, undo=self._know_files)
            self._take(reports, found, rejection)
            stage.rows, stage.bytes = sum(self.rows.values()), size
            stage.seconds = added_up(report.seconds for report in reports)

    def _read_stages(self, *, writes: bool) -> tuple[Stage, ...]:
        """Return the stages that a pass over the input counts as (H3)."""
        if writes and not self.is_direct:
            return (Stage.WRITE,)
        return (Stage.READ, Stage.VALUES, *((Stage.WRITE,) if writes else ()))

    def _take(self, reports: Sequence[SliceReport], found: ViolationLog, rejection: Rejection) -> None:
        """Add up what the tasks report, except for violations that an earlier round has already reported."""
        self.rows, self.fresh, self.nulls, self.left_out = {}, {}, {}, {}
        for slice_, report in zip(self.slices, reports, strict=True):
            found.open_file(slice_.source.file, slice_.source.name)
            fresh = [item for item in report.violations if (item.file, item.line) not in rejection.places]
            found.extend(fresh, more=report.total - len(report.violations))
            for table_key, count in report.rows.items():
                self.rows[table_key] = self.rows.get(table_key, 0) + count
                self.fresh[table_key] = self.fresh.get(table_key, True) and table_key in report.fresh
            for table_key, ids in report.refused.items():
                found.refuse(table_key, ids)
            for known, names in ((self.nulls, report.nulls), (self.left_out, report.left_out)):
                known.update({key: known.get(key, NO_NAMES) | found_ for key, found_ in names.items()})
        self._know_files(reports)

    def _know_files(self, reports: Sequence[SliceReport]) -> None:
        """Take note of what tasks have written, to be committed or removed."""
        for report in reports:
            self.written.extend(report.written)
            self.garbage.extend(
                item.places for part in report.written for item in part.fragments if item.places is not None
            )

    def _questions(self, work: tuple[SliceWork, ...], limit: int) -> KeyQuestions:
        """Return what answers the set checks: this process if there are few keys, else Spark."""
        if sum(self.rows.values()) <= key_rows():
            rows = self._few_rows(work, limit)
            parts = self.graph.parts
            committed_tables = CommittedTables(self.snapshot, parts.store, parts.pinned)
            return arrow_questions(rows, self.options.mode, committed_tables, limit)
        frames: WrittenFrames
        if self.is_direct:
            frames = FragmentFrames(self.jobs, self._fragments(), self._tables().__getitem__)
        else:
            frames = SliceFrames(self.jobs, work, self._plan(limit))
        committed = {key: self._committed(key) for key in self._tables()}
        return SparkQuestions(
            self.jobs,
            self.catalog,
            traits=self._traits(),
            frames=frames,
            rows=self.rows,
            committed=committed,
            limit=limit,
        )

    def _few_rows(self, work: tuple[SliceWork, ...], limit: int) -> dict[str, TypedRows]:
        """Return the key columns of all rows."""
        if self.is_direct:
            return written_keys(
                self.catalog,
                self.rows,
                self._fragments(),
                self._tables(),
                self.fresh,
                nulls=self._nulls(),
            )
        return sliced_keys(self.catalog, self.rows, work, self._plan(limit), nulls=self._nulls())

    def _nulls(self) -> dict[str, list[str]]:
        """Return the properties that an upsert may clear, by table."""
        return {key: sorted(names) for key, names in self.nulls.items() if self.options.mode == "merge"}

    def _check_sets(self, questions: KeyQuestions, found: ViolationLog) -> None:
        traits, catalog = self._traits(), self.catalog
        checks = {
            Stage.KEYS: check_keys,
            Stage.ENDPOINTS: check_endpoints,
            Stage.CARDINALITY: check_cardinality,
        }
        for stage, check in checks.items():
            with self.jobs.stage(stage) as report:
                check(traits, catalog, questions, found)
                report.rows = sum(self.rows.values())

    def _stage(self, table_key: str) -> StagedWrite:
        graph_parts, mode = self.graph.parts, self.options.mode
        parts = [part for part in self.written if part.table_key == table_key]
        type_ = self.catalog.type_of(table_key)
        schema = arrow_schema(type_)
        entry = self.snapshot.entry(table_key)
        handle = graph_parts.open(entry)
        fragments = self._fragments().get(table_key, ())
        size = sum(item.size for item in fragments)
        if mode != "merge" or self.fresh[table_key]:
            check_ceiling(table_key, rows=self.counts[table_key], size=size)
            return stage_written(graph_parts.stager, handle, schema, parts, mode=mode)
        table = self._table(table_key)
        if size <= merge_bytes():
            last = self._last_rows(type_, table, fragments)
            check_ceiling(table_key, rows=last.num_rows, size=last.nbytes)
            return graph_parts.stager.stage_upsert(handle, last)
        merged = merge_on_executors(self.jobs, type_, table, fragments, self._committed(table_key))
        rows = sum(item.rows for item in merged.fragments)
        made = StagedFragments(table_key, entry.version, fingerprint(schema), merged.fragments, rows, 0)
        self.garbage += [path for item in fragments for path in data_paths(table.address, item)]
        self.written = [part for part in self.written if part.table_key != table_key] + [made]
        self.deletions += deletion_paths(table.address, merged.replaced.updated)
        check_ceiling(table_key, rows=rows, size=sum(item.size for item in merged.fragments))
        return stage_written(graph_parts.stager, handle, schema, [made], mode=mode, replaced=merged.replaced)

    def _last_rows(
        self, type_: NodeType | EdgeType, table: TaskTable, fragments: Sequence[WrittenFragment]
    ) -> pa.Table:
        """Return the last row of each id from what tasks wrote; it is below the configured size of an upsert.

        The files of the tasks become garbage: what they hold is written again, next to the rows it replaces.
        """
        names = arrow_schema(type_).names
        found = [piece for item in fragments for piece in read_written(table.address, item, names)]
        rows = pa.concat_tables([rows for rows, _ in found])
        places = pa.concat_tables([places for _, places in found if places is not None])
        files, lines = places[FILE].to_numpy(), places[LINE].to_numpy()
        self.garbage += [path for item in fragments for path in data_paths(table.address, item)]
        self.written = [part for part in self.written if part.table_key != type_.table_key]
        return fold_by_id(TypedRows(type_, rows, files, lines).in_order()).table

    def _fragments(self) -> dict[str, tuple[WrittenFragment, ...]]:
        found: dict[str, tuple[WrittenFragment, ...]] = {}
        for part in self.written:
            found[part.table_key] = (*found.get(part.table_key, ()), *part.fragments)
        return found

    def _plan(self, limit: int) -> ReadPlan:
        return ReadPlan(self.catalog, read_limits(), limit)

    def _traits(self) -> dict[str, TableTraits]:
        mode = self.options.mode
        is_overwrite, is_strict = mode == "overwrite", mode != "merge"
        return {key: TableTraits(is_strict, is_overwrite, self.fresh[key]) for key in self.rows}

    def _tables(self) -> dict[str, TaskTable]:
        return {type_.table_key: self._table(type_.table_key) for type_ in self.catalog.types}

    def _table(self, table_key: str) -> TaskTable:
        mode: FragmentMode = "overwrite" if self.options.mode == "overwrite" else "append"
        return task_table(
            self.graph, self.catalog.type_of(table_key), self.snapshot.entry(table_key), mode, self.notes
        )

    def _committed(self, table_key: str) -> tuple[KeyPiece, ...]:
        """Return the committed rows of a table, as tasks read them."""
        pinned = self.graph.parts.pinned(self.snapshot.entry(table_key))
        found = pieces(pinned.open(self.graph.parts.store))
        return tuple(KeyPiece(pinned, piece.rows, number=piece.number) for piece in found)
