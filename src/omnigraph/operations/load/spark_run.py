"""One attempt of a load on Spark, stage by stage, up to the writes that are ready to be committed.

H3  Rows are written as they are read, and checked where they were written; those that are left out later are
    taken out of the files that have them. A dry run keeps key columns for the checks, and writes no rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.bulk.connect.jobs import Jobs
from omnigraph.bulk.connect.progress import Stage, added_up
from omnigraph.bulk.embed import for_executors, vector_columns
from omnigraph.bulk.load.key_frames import NewFrames
from omnigraph.bulk.load.new_rows import (
    LeftOut,
    NewRows,
    RowPlace,
    SpooledRows,
    WrittenRows,
    written_without,
)
from omnigraph.bulk.load.questions import SparkQuestions
from omnigraph.bulk.load.quick import KeyPiece
from omnigraph.bulk.load.spool import Spool
from omnigraph.bulk.load.tasks import NO_NAMES, ReadPlan, TaskReport, TaskWork, spool_keys, write_rows
from omnigraph.bulk.load.upsert import merge_on_executors
from omnigraph.bulk.load.vectors import VectorsMade, write_with_vectors
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.commit.outcome import NoEffect
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.exec.mutation import CommittedTables
from omnigraph.history.fold import TableEntry
from omnigraph.history.state import Snapshot
from omnigraph.operations.context import OpenGraph
from omnigraph.operations.engine import discard_task_files, task_table
from omnigraph.operations.load.cleared import cleared_properties
from omnigraph.operations.load.local import looked_at
from omnigraph.operations.load.model import LoadOptions, LoadResult
from omnigraph.operations.load.rejects import Rejection, new_log
from omnigraph.operations.load.spark_keys import arrow_questions, new_keys
from omnigraph.operations.load.vectors import checked_config
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
    work: tuple[TaskWork, ...]
    spool: Spool
    rows: dict[str, int] = field(default_factory=dict)  # by table: what passed the checks so far
    counts: dict[str, int] = field(default_factory=dict)  # by table: what is written, each id once
    fresh: dict[str, bool] = field(default_factory=dict)  # by table: whether all ids were generated here
    nulls: dict[str, frozenset[str]] = field(default_factory=dict)  # by table: properties of some row
    left_out: dict[str, frozenset[str]] = field(default_factory=dict)  # by table: properties of some record
    refused: dict[str, set[str]] = field(default_factory=dict)  # by table: nodes that failed the value checks
    written: list[StagedFragments] = field(default_factory=list)
    spooled: list[SpooledRows] = field(default_factory=list)
    failed: set[RowPlace] = field(default_factory=set)  # rows that failed the value checks, so not written
    dropped: set[RowPlace] = field(default_factory=set)  # rows that are written and left out (N2)
    deletions: list[str] = field(default_factory=list)  # files, of what is written
    garbage: list[str] = field(default_factory=list)
    vectors: int = 0  # made from texts
    handed: frozenset[str] = frozenset()  # files that a commit has, or may have
    notes: TaskNotes = field(init=False)

    def __post_init__(self) -> None:
        """Make the place for the notes of tasks, before the first of them."""
        self.notes = self.spool.notes()

    @property
    def catalog(self) -> Catalog:
        """The types of the branch that is loaded into."""
        return self.graph.catalog_of(self.snapshot)

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
        found = self._new_log(rejection)
        self._read(found)
        if found.has_enough:
            found.cut_short()
            rejection.take(found)
        while True:
            questions = self._questions(found.limit)
            self._check_sets(questions, found)
            if not rejection.take(found):
                break
            self._leave_out(found)
            found = self._new_log(rejection)
        rejection.write()
        self._embedding()  # a dry run, too, refuses another model
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
            EmbeddingError: a vector could not be made.
        """
        self._take_out()  # also before their texts are sent
        self._make_vectors()
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

    def _new_log(self, rejection: Rejection) -> ViolationLog:
        """Return a log for a round of checks, which knows the inputs and the nodes that are left out."""
        found = new_log(self.options)
        for item in self.work:
            for slice_ in item.slices:
                found.open_file(slice_.source.file, slice_.source.name)
        for table_key, ids in self.refused.items():
            found.refuse(table_key, ids)
        rejection.tell_refused(found)
        return found

    def _read(self, found: ViolationLog) -> None:
        """Read the input on executors and check its values; write what passes, or keep its keys (H3)."""
        plan, tables, notes = self._plan(found.limit), self._tables(), self.notes
        writes, keys, with_nulls = self._writes, self.spool.keys_folder, self.options.mode == "merge"
        size = sum(item.size for item in self.work)
        stages = (Stage.READ, Stage.VALUES, *((Stage.WRITE,) if writes else ()))
        with self.jobs.stage(*stages, bytes_total=size) as stage:
            tally = stage.tally

            def read(item: TaskWork) -> TaskReport:
                if writes:
                    with notes.writing():
                        report = write_rows(item, plan, tables.__getitem__, with_places=True)
                else:
                    report = spool_keys(item, plan, keys, with_nulls=with_nulls)
                if tally is not None:
                    tally.add(rows=report.rows, size=item.size)
                return report

            # The largest first: one that begins last would keep all others waiting.
            order = sorted(range(len(self.work)), key=lambda number: -self.work[number].size)
            made = self.jobs.each([self.work[number] for number in order], read, undo=self._know_files)
            by_number = dict(zip(order, made, strict=True))
            reports = [by_number[number] for number in range(len(order))]
            self._take(reports, found)
            stage.rows, stage.bytes = sum(self.rows.values()), size
            stage.seconds = added_up(report.seconds for report in reports)

    @property
    def _writes(self) -> bool:
        return not self.options.is_dry_run

    def _take(self, reports: Sequence[TaskReport], found: ViolationLog) -> None:
        """Add up what the tasks report."""
        for report in (slice_ for task in reports for slice_ in task.slices):
            found.extend(report.violations, more=report.total - len(report.violations))
            self.failed |= {(item.file, item.line) for item in report.violations}
            for table_key, count in report.rows.items():
                self.rows[table_key] = self.rows.get(table_key, 0) + count
                self.fresh[table_key] = self.fresh.get(table_key, True) and table_key in report.fresh
            for table_key, ids in report.refused.items():
                found.refuse(table_key, ids)
                self.refused.setdefault(table_key, set()).update(ids)
            for known, names in ((self.nulls, report.nulls), (self.left_out, report.left_out)):
                known.update({key: known.get(key, NO_NAMES) | found_ for key, found_ in names.items()})
        self.spooled = [rows for report in reports for rows in report.spooled]
        self._know_files(reports)

    def _leave_out(self, found: ViolationLog) -> None:
        """Leave out the rows that a round of set checks refused."""
        for violation in found.first_violations():
            place = (violation.file, violation.line)
            if place not in self.failed and place not in self.dropped:
                assert violation.table_key is not None, "a row of a table broke a rule"
                self.dropped.add(place)
                self.rows[violation.table_key] -= 1

    def _take_out(self) -> None:
        """Write the fragments again that have rows which are left out (H3)."""
        tables, notes, left_out = self._tables(), self.notes, LeftOut.of(self.dropped)

        def write(item: tuple[TaskTable, WrittenRows]) -> WrittenFragment | None:
            with notes.writing():
                return written_without(*item)

        parts = [(part, self._fragment_rows(part, left_out)) for part in self.written]
        spoilt = [
            (tables[part.table_key], rows) for part, found in parts for rows in found if rows.left_out.lines
        ]
        if not spoilt:
            return
        made = iter(self.jobs.each(spoilt, write))
        self.written = []
        for part, found in parts:
            remaining = [next(made) if rows.left_out.lines else rows.fragment for rows in found]
            fragments = tuple(item for item in remaining if item is not None)
            self.written.append(replace(part, fragments=fragments, rows=sum(item.rows for item in fragments)))
            gone = [rows for rows in found if rows.left_out.lines]
            self.garbage += [path for rows in gone for path in data_paths(rows.address, rows.fragment)]
            self.garbage += [item.places for item in fragments if item.places is not None]
        self.dropped = set()

    def _make_vectors(self) -> None:
        """Have executors write the fragments again that have rows without the vectors of their texts (X2)."""
        config = self._embedding()
        if config is None:
            return
        sent, tables, notes = for_executors(config, self.jobs), self._tables(), self.notes
        columns = {key: vector_columns(self.catalog.type_of(key)) for key in self.rows}
        lacking = [
            rows for part in self.written if columns[part.table_key] for rows in self._fragment_rows(part)
        ]
        keys = [part.table_key for part in self.written if columns[part.table_key] for _ in part.fragments]

        def write(item: tuple[str, WrittenRows]) -> VectorsMade | None:
            table_key, rows = item
            with notes.writing():
                return write_with_vectors(tables[table_key], rows, columns[table_key], sent)

        with self.jobs.stage(Stage.EMBED) as stage:
            made = self.jobs.each(list(zip(keys, lacking, strict=True)), write)
            stage.rows = self.vectors = sum(item.vectors for item in made if item is not None)
        again = {
            rows.fragment.description: item.fragment
            for rows, item in zip(lacking, made, strict=True)
            if item is not None
        }
        self.garbage += [
            path
            for rows in lacking
            if rows.fragment.description in again
            for path in data_paths(rows.address, rows.fragment)
        ]
        self.written = [
            replace(part, fragments=tuple(again.get(item.description, item) for item in part.fragments))
            for part in self.written
        ]
        self.garbage += [item.places for item in again.values() if item.places is not None]

    def _embedding(self) -> EmbeddingConfig | None:
        """Return the settings for the vectors of the load; nothing if none is made."""
        if not self.options.makes_vectors:
            return None
        return checked_config(self.graph, self.catalog, [key for key, count in self.rows.items() if count])

    def _know_files(self, reports: Sequence[TaskReport]) -> None:
        """Take note of what tasks have written, to be committed or removed."""
        for report in reports:
            self.written.extend(report.written)
            self.garbage.extend(
                item.places for part in report.written for item in part.fragments if item.places is not None
            )

    def _questions(self, limit: int) -> KeyQuestions:
        """Return what answers the set checks: this process if there are few keys, else Spark."""
        new = self._new_rows()
        if sum(self.rows.values()) <= key_rows():
            rows = new_keys(self.catalog, self.rows, new, self.fresh, nulls=self._nulls())
            parts = self.graph.parts
            committed_tables = CommittedTables(self.snapshot, parts.store, parts.pinned)
            return arrow_questions(rows, self.options.mode, committed_tables, limit)
        return SparkQuestions(
            self.jobs,
            self.catalog,
            traits=self._traits(),
            frames=NewFrames(self.jobs, new),
            rows=self.rows,
            committed={key: self._committed(key) for key in self._tables()},
            limit=limit,
        )

    def _new_rows(self) -> dict[str, list[NewRows]]:
        """Return the rows of the load by table, where they are, without those that are left out."""
        left_out = LeftOut.of(self.dropped)
        found: dict[str, list[NewRows]] = {}
        for part in self.written:
            found.setdefault(part.table_key, []).extend(self._fragment_rows(part, left_out))
        for rows in self.spooled:
            found.setdefault(rows.table_key, []).append(rows.without(left_out))
        return found

    def _fragment_rows(self, part: StagedFragments, left_out: LeftOut | None = None) -> list[WrittenRows]:
        known = LeftOut.of(self.dropped) if left_out is None else left_out
        address = self._table(part.table_key).address
        return [WrittenRows(address, item).without(known) for item in part.fragments]

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
        return ReadPlan(self.catalog, read_limits(), limit, makes_vectors=self.options.makes_vectors)

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
        return tuple(KeyPiece(piece.rows, table=pinned, number=piece.number) for piece in found)
