"""The work of one task of a load: read slices, check their values, write what passes as fragments.

L1  A task gets a description and returns one; rows go only from the input to the table's own place.
L2  What an attempt wrote counts only if its report reaches the driver; files of other attempts are found by
    their notes and removed.
L3  Edges are sorted by `src` within each fragment. No fragment has more rows than the limit.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.bulk.connect.progress import Laps, Stage
from omnigraph.bulk.files import open_output
from omnigraph.bulk.load.new_rows import SpooledRows, columns_of, key_columns, null_flags
from omnigraph.bulk.sources.sources import Slice, read_slice
from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.core.failpoint import hit
from omnigraph.core.input_lines import InputLines
from omnigraph.core.limits import MAX_FRAGMENT_ROWS
from omnigraph.validate.columns import TypedRows, concat_rows, null_properties
from omnigraph.validate.new_ids import IdSource
from omnigraph.validate.questions import FILE, LINE
from omnigraph.validate.records import ReadLimits
from omnigraph.validate.values import check_values
from omnigraph.validate.violations import Violation, ViolationLog

if TYPE_CHECKING:
    from omnigraph.staging.fragments import StagedFragments
    from omnigraph.storage.tables.fragments import TaskTable

NO_NAMES: frozenset[str] = frozenset()
FRAGMENT_BYTES_MAX = 256 * 1024 * 1024  # rows with long vectors are written in smaller fragments than allowed


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What every task of a load needs besides its slices; `makes_vectors` marks those that are to be made."""

    catalog: Catalog
    limits: ReadLimits
    violations_max: int
    makes_vectors: bool = False


@dataclass(frozen=True, slots=True)
class TaskWork:
    """Slices that one task reads, in the order of the input; what it writes may have rows of several."""

    slices: tuple[Slice, ...]
    number: int

    @property
    def size(self) -> int:
        """The bytes of the input that it reads."""
        return sum(slice_.size for slice_ in self.slices)


@dataclass(frozen=True, slots=True)
class SliceReport:
    """What became of a slice: its rows by table, and what was wrong.

    `rows` counts what passed the value checks; `fresh` names the tables whose rows all have ids made here.
    `nulls` and `left_out` name by table the properties that are null in some row, and those that some record
    did not mention, and `refused` the ids of nodes that did not pass.
    """

    rows: Mapping[str, int]
    fresh: frozenset[str]
    violations: tuple[Violation, ...]
    total: int
    nulls: Mapping[str, frozenset[str]] = field(default_factory=dict)
    left_out: Mapping[str, frozenset[str]] = field(default_factory=dict)
    refused: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task did: its slices one by one, and where their rows are now; `seconds` says on what."""

    slices: tuple[SliceReport, ...]
    written: "tuple[StagedFragments, ...]" = ()
    spooled: tuple[SpooledRows, ...] = ()
    seconds: Mapping[Stage, float] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows passed the value checks."""
        return sum(count for report in self.slices for count in report.rows.values())


def grouped(slices: Sequence[Slice], size_max: int) -> tuple[TaskWork, ...]:
    """Return slices as the work of tasks: those that follow each other share one as long as they are small.

    Thousands of small files become as many fragments as their bytes are worth.
    """
    groups: list[list[Slice]] = []
    room = 0
    for slice_ in slices:
        if not groups or slice_.size > room:
            groups.append([])
            room = size_max
        groups[-1].append(slice_)
        room -= slice_.size
    return tuple(TaskWork(tuple(group), number) for number, group in enumerate(groups))


def passing_rows(
    slice_: Slice, plan: ReadPlan, log: ViolationLog, laps: Laps | None = None
) -> Iterator[TypedRows]:
    """Yield the rows of a slice that pass the value checks; the others are in the log.

    Raises:
        BadRequest: the file cannot be read.
        ResourceLimit: a line is above a limit.
    """
    laps = laps or Laps()
    for rows in read_slice(slice_, plan.catalog, make_id=IdSource(), log=log, limits=plan.limits):
        laps.end(Stage.READ)
        if plan.makes_vectors:
            from omnigraph.bulk.load.vectors import MARK, STAND_IN, standing_in

            kept = standing_in(rows, MARK).filter(check_values(standing_in(rows, STAND_IN), log))
        else:
            kept = rows.filter(check_values(rows, log))
        laps.end(Stage.VALUES)
        yield kept


def spool_keys(work: TaskWork, plan: ReadPlan, folder: str, *, with_nulls: bool) -> TaskReport:
    """Read slices, check their values, and keep what the set checks ask about in files of the spool (N1).

    Raises:
        OSError: a file cannot be written.
    """
    laps, reports = Laps(), list[SliceReport]()
    spooled = []
    with ExitStack() as files:
        open_: dict[str, _KeyFile] = {}
        for rows in _read(work, plan, laps, reports):
            table_key = rows.type.table_key
            if not rows.count:
                continue
            if table_key not in open_:
                names = [*key_columns(rows.type), *(null_flags(rows.type) if with_nulls else [])]
                open_[table_key] = files.enter_context(_KeyFile(table_key, folder, names))
            open_[table_key].add(rows)
        spooled = [file.rows for file in open_.values()]
    return TaskReport(tuple(reports), spooled=tuple(spooled), seconds=laps.seconds)


def write_rows(
    work: TaskWork, plan: ReadPlan, tables: "Callable[[str], TaskTable]", *, with_places: bool
) -> TaskReport:
    """Read slices, check their values, and write what passes (L1, L2, L3).

    Raises:
        StorageError: the store failed.
    """
    from omnigraph.staging.fragments import StagedFragments, fingerprint
    from omnigraph.storage.tables.fragments import FragmentWriter, WrittenFragment

    laps, reports = Laps(), list[SliceReport]()
    writers: dict[str, FragmentWriter] = {}
    written: dict[str, list[WrittenFragment]] = {}
    for chunk in fragment_chunks(_read(work, plan, laps, reports)):
        table_key = chunk.type.table_key
        if table_key not in writers:
            writers[table_key] = FragmentWriter(tables(table_key))
        ordered = by_source(chunk)
        places = places_of(ordered) if with_places else None
        made = writers[table_key].write(ordered.table, places)
        written.setdefault(table_key, []).append(replace(made, lines=lines_of(ordered)))
        laps.end(Stage.WRITE)
    for writer in writers.values():
        writer.sync()
    laps.end(Stage.WRITE)
    hit("bulk.post_write_pre_report")
    staged = []
    for table_key, fragments in written.items():
        table = tables(table_key)
        schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
        rows = sum(fragment.rows for fragment in fragments)
        staged.append(
            StagedFragments(
                table_key, table.pinned.version, fingerprint(schema), tuple(fragments), rows, work.number
            )
        )
    return TaskReport(tuple(reports), tuple(staged), seconds=laps.seconds)


def _read(work: TaskWork, plan: ReadPlan, laps: Laps, reports: list[SliceReport]) -> Iterator[TypedRows]:
    """Yield the rows of slices that pass the value checks; each slice is reported when it is read."""
    for slice_ in work.slices:
        log, seen = ViolationLog(plan.violations_max), _Seen()
        for rows in passing_rows(slice_, plan, log, laps):
            seen.add(rows)
            yield rows
        reports.append(seen.report(log))


def fragment_chunks(parts: Iterable[TypedRows]) -> Iterator[TypedRows]:
    """Yield rows in pieces of one fragment each, by table, as they fill up (L3)."""
    waiting: dict[str, list[TypedRows]] = {}
    for rows in parts:
        table_key = rows.type.table_key
        held = waiting.setdefault(table_key, [])
        held.append(rows)
        while _is_full(held):
            whole = concat_rows(held)
            yield _piece(whole, 0, MAX_FRAGMENT_ROWS)
            rest = _piece(whole, MAX_FRAGMENT_ROWS, whole.count)
            held[:] = [rest] if rest.count else []
    for held in waiting.values():
        if held:
            whole = concat_rows(held)
            if whole.count:
                yield whole


def by_source(rows: TypedRows) -> TypedRows:
    """Return edges in the order of `src`, and of the input for equal ones; nodes as they are (L3)."""
    if not isinstance(rows.type, EdgeType):
        return rows
    import pyarrow.compute as pc

    order = pc.sort_indices(rows.table.column("src").combine_chunks())
    return rows.take(np.asarray(order, dtype=np.int64))


def places_of(rows: TypedRows) -> pa.Table:
    """Return the place of each row in the input."""
    return pa.table({FILE: pa.array(rows.files, pa.int32()), LINE: pa.array(rows.lines, pa.int64())})


def lines_of(rows: TypedRows) -> tuple[InputLines, ...]:
    """Return the parts of the input that rows are from: all between the first and the last line of a file."""
    if not rows.count:
        return ()
    files = np.unique(rows.files)
    found = ((int(file), rows.lines[rows.files == file]) for file in files)
    return tuple(InputLines(file, int(lines.min()), int(lines.max())) for file, lines in found)


def _is_full(held: list[TypedRows]) -> bool:
    count = sum(part.count for part in held)
    return count >= MAX_FRAGMENT_ROWS or (
        count > 0 and sum(part.table.nbytes for part in held) >= FRAGMENT_BYTES_MAX
    )


def _piece(rows: TypedRows, start: int, end: int) -> TypedRows:
    positions: npt.NDArray[np.int64] = np.arange(start, min(end, rows.count), dtype=np.int64)
    if start == 0 and len(positions) == rows.count:
        return rows
    table = rows.table.slice(start, len(positions))
    return TypedRows(
        rows.type,
        table,
        rows.files[positions],
        rows.lines[positions],
        has_fresh_ids=rows.has_fresh_ids,
    )


@dataclass(slots=True)
class _Seen:
    """What is known about the rows that passed, by table."""

    counts: dict[str, int] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    nulls: dict[str, frozenset[str]] = field(default_factory=dict)
    left_out: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, rows: TypedRows) -> None:
        table_key = rows.type.table_key
        self.counts[table_key] = self.counts.get(table_key, 0) + rows.count
        if not rows.has_fresh_ids:
            self.given.add(table_key)
            self.nulls[table_key] = self.nulls.get(table_key, NO_NAMES) | null_properties(rows)
        self.left_out[table_key] = self.left_out.get(table_key, NO_NAMES) | rows.left_out

    def report(self, log: ViolationLog) -> SliceReport:
        """Return what became of the slice, with what was wrong."""
        fresh = frozenset(self.counts) - self.given
        return SliceReport(
            self.counts,
            fresh,
            log.first_violations(),
            log.total,
            self.nulls,
            self.left_out,
            log.refused,
        )


class _KeyFile:
    """A file of the spool with columns of rows and their places, while it is written."""

    def __init__(self, table_key: str, folder: str, names: list[str]) -> None:
        self._table_key, self._names, self._count = table_key, names, 0
        self._path = f"{folder}/{uuid.uuid4()}.arrow"
        self._lines: list[InputLines] = []

    def __enter__(self) -> "_KeyFile":
        self._sink = open_output(self._path)
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
        self._sink.close()

    def add(self, rows: TypedRows) -> None:
        """Write what is kept of some rows."""
        kept, places = columns_of(rows.table, self._names), places_of(rows)
        table = pa.Table.from_arrays(
            [*kept.columns, *places.columns], names=[*kept.column_names, *places.column_names]
        )
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._sink, table.schema)
        self._writer.write_table(table)
        self._count += table.num_rows
        self._lines.extend(lines_of(rows))

    @property
    def rows(self) -> SpooledRows:
        """What was written, once it is all there."""
        return SpooledRows(self._table_key, self._path, self._count, tuple(self._lines))
