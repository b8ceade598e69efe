"""The work of one task of a load: read a slice, check its values, write what passes as fragments.

L1  A task gets a description and returns one; rows go only from the input to the table's own place.
L2  What an attempt wrote counts only if its report reaches the driver; files of other attempts are found by
    their notes and removed.
L3  Edges are sorted by `src` within each fragment. No fragment has more rows than the limit.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.bulk.connect.progress import Laps, Stage
from omnigraph.bulk.sources.sources import Slice, read_slice
from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.core.failpoint import hit
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
    """What every task of a load needs besides its slice."""

    catalog: Catalog
    limits: ReadLimits
    violations_max: int


@dataclass(frozen=True, slots=True)
class SliceWork:
    """One slice, and the lines of it that were already rejected."""

    slice: Slice
    number: int
    rejected: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SliceReport:
    """What became of a slice: its rows by table, what was wrong, and what was written.

    `rows` counts what passed the value checks; `fresh` names the tables whose rows all have ids made here.
    `nulls` and `left_out` name by table the properties that are null in some row, and those that some record
    did not mention, and `refused` the ids of nodes that did not pass. `seconds` is where the time went.
    """

    rows: Mapping[str, int]
    fresh: frozenset[str]
    violations: tuple[Violation, ...]
    total: int
    written: "tuple[StagedFragments, ...]" = ()
    seconds: Mapping[Stage, float] = field(default_factory=dict)
    nulls: Mapping[str, frozenset[str]] = field(default_factory=dict)
    left_out: Mapping[str, frozenset[str]] = field(default_factory=dict)
    refused: Mapping[str, Collection[str]] = field(default_factory=dict)


def passing_rows(
    work: SliceWork, plan: ReadPlan, log: ViolationLog, laps: Laps | None = None
) -> Iterator[TypedRows]:
    """Yield the rows of a slice that pass the value checks and were not rejected; the others are in the log.

    Raises:
        BadRequest: the file cannot be read.
        ResourceLimit: a line is above a limit.
    """
    rejected = np.array(work.rejected, dtype=np.int64)
    laps = laps or Laps()
    for rows in read_slice(work.slice, plan.catalog, make_id=IdSource(), log=log, limits=plan.limits):
        laps.end(Stage.READ)
        passing = check_values(rows, log)
        if len(rejected):
            passing &= ~np.isin(rows.lines, rejected)
        kept = rows.filter(passing)
        laps.end(Stage.VALUES)
        yield kept


def check_slice(work: SliceWork, plan: ReadPlan) -> SliceReport:
    """Read a slice and check its values; write nothing."""
    log, laps = ViolationLog(plan.violations_max), Laps()
    seen = _Seen()
    for rows in passing_rows(work, plan, log, laps):
        seen.add(rows)
    return _report(log, laps, seen, ())


def write_slice(
    work: SliceWork, plan: ReadPlan, tables: "Callable[[str], TaskTable]", *, with_places: bool
) -> SliceReport:
    """Read a slice, check its values, and write what passes (L1, L2, L3).

    Raises:
        StorageError: the store failed.
    """
    from omnigraph.staging.fragments import StagedFragments, fingerprint
    from omnigraph.storage.tables.fragments import FragmentWriter, WrittenFragment

    log, laps = ViolationLog(plan.violations_max), Laps()
    seen = _Seen()

    def passing() -> Iterator[TypedRows]:
        for rows in passing_rows(work, plan, log, laps):
            seen.add(rows)
            yield rows

    writers: dict[str, FragmentWriter] = {}
    written: dict[str, list[WrittenFragment]] = {}
    for chunk in fragment_chunks(passing()):
        table_key = chunk.type.table_key
        if table_key not in writers:
            writers[table_key] = FragmentWriter(tables(table_key))
        ordered = by_source(chunk)
        places = places_of(ordered) if with_places else None
        written.setdefault(table_key, []).append(writers[table_key].write(ordered.table, places))
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
    return _report(log, laps, seen, tuple(staged))


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


def _report(
    log: ViolationLog, laps: Laps, seen: _Seen, written: "tuple[StagedFragments, ...]"
) -> SliceReport:
    fresh = frozenset(seen.counts) - seen.given
    return SliceReport(
        seen.counts,
        fresh,
        log.first_violations(),
        log.total,
        written,
        laps.seconds,
        seen.nulls,
        seen.left_out,
        log.refused,
    )
