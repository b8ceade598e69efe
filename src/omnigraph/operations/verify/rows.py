"""What the rows of a snapshot break: the checks of every write, made over whole tables.

R1  Rows are read in batches at the pins of one snapshot: what is found there is no passing state.
R2  A check is about versions of tables: what several branches show at one version is the same check.
R3  A table whose columns are not those of its type is left out, and said by the comparison of columns.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow_schema import arrow_schema, differing_columns
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.commit.parts import Parts
from omnigraph.history.fold import TableEntry
from omnigraph.operations.verify.history import where_and_id
from omnigraph.operations.verify.report import FINDINGS_MAX, FindingKind, VerifyFinding
from omnigraph.storage.tables.pinned import BATCH_ROWS, PinnedTable
from omnigraph.validate.columns import TypedRows, charge, make_rows, true_positions
from omnigraph.validate.ids import derive_ids
from omnigraph.validate.set_checks import (
    TableTraits,
    check_cardinality,
    check_endpoints,
    check_keys,
)
from omnigraph.validate.table_questions import TableQuestions
from omnigraph.validate.values import check_values, quote
from omnigraph.validate.violations import KeyConflictViolation, Violation, ViolationKind, ViolationLog

# Every row counts as written, with an id of its own and nothing beside it.
_WHOLE = TableTraits(is_strict=True, is_overwrite=True, has_fresh_ids=False)
_KINDS = {
    ViolationKind.RECORD: FindingKind.ID,
    ViolationKind.UNIQUE: FindingKind.UNIQUE,
    ViolationKind.ENDPOINT: FindingKind.ENDPOINT,
    ViolationKind.CARDINALITY: FindingKind.CARDINALITY,
}
Tick = Callable[[int], None]  # how many more rows were read


@dataclass(frozen=True, slots=True)
class RowStep:
    """One check of one table: how many rows it reads, and how many of them for the first time.

    Two with an equal `what` find the same (R2).
    """

    table_key: str
    rows: int
    what: Hashable
    run: Callable[[], ViolationLog]
    new_rows: int = 0


class PinnedRows:
    """The tables of a snapshot, read batch by batch (R1)."""

    def __init__(self, parts: Parts, entries: Mapping[str, TableEntry], tick: Tick) -> None:
        """Take the tables, and what to tell about the rows that were read."""
        self._parts, self._entries, self._tick = parts, entries, tick

    def pin(self, table_key: str) -> PinnedTable:
        """Return where a table is."""
        return self._parts.pinned(self._entries[table_key])

    def count(self, table_key: str) -> int:
        """Return how many rows a table has."""
        return self._parts.open(self._entries[table_key]).row_count

    def batches(self, table_key: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of a table's rows, in the order they are stored."""
        handle = self._parts.open(self._entries[table_key])
        for batch in self._parts.store.scan_batches(handle, columns=columns, batch_size=BATCH_ROWS):
            yield batch
            self._tick(batch.num_rows)

    def fits(self, table_key: str, catalog: Catalog) -> bool:
        """Say whether a table is there with the columns of its type (R3)."""
        entry = self._entries.get(table_key)
        if entry is None:
            return False
        return not differing_columns(self._parts.open(entry).schema, catalog.type_of(table_key))


def row_steps(rows: PinnedRows, catalog: Catalog, readable: frozenset[str]) -> Iterator[RowStep]:
    """Yield the checks of some tables of a snapshot; each of them must fit its type (R3)."""
    for type_ in catalog.types:
        key = type_.table_key
        if key not in readable:
            continue
        pin, count = rows.pin(key), rows.count(key)
        check = partial(_check, {key: _WHOLE}, catalog, TableQuestions(rows, FINDINGS_MAX))
        yield RowStep(key, count, ("values", pin), partial(_check_values, rows, type_), count)
        passes = 1 + len(type_.unique)
        yield RowStep(key, count * passes, ("keys", pin), partial(check, check_keys))
        if isinstance(type_, EdgeType):
            ends = sorted({f"node:{type_.source}", f"node:{type_.target}"})
            if readable.issuperset(ends):
                read = 2 * count + sum(map(rows.count, ends))
                what = ("ends", pin, *map(rows.pin, ends))
                yield RowStep(key, read, what, partial(check, check_endpoints))
            if type_.low > 0 or type_.high is not None:
                yield RowStep(key, count, ("counts", pin), partial(check, check_cardinality))


def findings_of(log: ViolationLog, where: str) -> list[VerifyFinding]:
    """Return the first violations of a table as findings."""
    return [
        VerifyFinding.of(_kind(violation), where_and_id(where, violation.row_id), violation.message)
        for violation in log.first_violations()
    ]


def _kind(violation: Violation) -> FindingKind:
    if isinstance(violation, KeyConflictViolation):
        return FindingKind.ID
    return _KINDS.get(violation.kind, FindingKind.VALUE)


def _check(
    traits: Mapping[str, TableTraits],
    catalog: Catalog,
    ask: TableQuestions,
    check: Callable[[Mapping[str, TableTraits], Catalog, TableQuestions, ViolationLog], None],
) -> ViolationLog:
    log = ViolationLog(FINDINGS_MAX)
    check(traits, catalog, ask, log)
    return log


def _check_values(tables: PinnedRows, type_: NodeType | EdgeType) -> ViolationLog:
    """Check every value of a table, and that keyed nodes have the ids of their keys."""
    log = ViolationLog(FINDINGS_MAX)
    line = 0
    for batch in tables.batches(type_.table_key, arrow_schema(type_).names):
        columns = {name: batch.column(name) for name in batch.schema.names}
        lines = np.arange(line + 1, line + batch.num_rows + 1, dtype=np.int64)
        rows = make_rows(type_, columns, lines=lines)
        line += batch.num_rows
        check_values(rows, log)
        if isinstance(type_, NodeType) and type_.key is not None:
            _check_ids(rows, type_, log)
    return log


def _check_ids(rows: TypedRows, node: NodeType, log: ViolationLog) -> None:
    expected = derive_ids(node, {name: rows.table.column(name) for name in node.key or ()})
    wrong = true_positions(pc.not_equal(rows.ids, expected))
    charge(
        rows,
        wrong,
        log,
        kind=ViolationKind.RECORD,
        message=lambda row: f"id {quote(rows.ids[row])} is not that of its key, {quote(expected[row])}",
    )
