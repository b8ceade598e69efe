"""Set checks: what the rows of a write may hold together, and beside the committed ones.

Each check is written once over `KeyOps` and looks at a few columns of one type, so that it can run over a
whole write as well as over the part of it that shares its keys.

S1  A pair of duplicates is charged to the later row, an exceeded maximum to the first row beyond it.
S2  A retained edge to a removed node and a minimum no longer met have no row: they are charged to the table,
    with the id of the edge, or of the source.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.validate.columns import Column, Positions, Rows, charge, to_mask, true_positions
from omnigraph.validate.sets import NO_IDS, KeyOps, holds_one_of, is_among, is_not_among
from omnigraph.validate.values import quote, show
from omnigraph.validate.violations import NOWHERE, KeyConflictViolation, Kind, Violation, ViolationLog

ID_CONSTRAINT = -1  # the id of a strict insert comes before the declared columns


@dataclass(frozen=True, slots=True)
class Delta:
    """The part of a write that one table takes part with in set checks.

    `rows` are in order, with every repetition; `folded` has the last row of each id. `removed_ids` are gone
    after the write. A strict insert replaces nothing.
    """

    type: NodeType | EdgeType
    rows: Rows
    folded: Rows
    removed_ids: Column
    is_strict: bool
    is_overwrite: bool

    @property
    def replaced_ids(self) -> Column:
        """The ids under which committed rows may be replaced."""
        return NO_IDS if self.folded.has_fresh_ids else self.folded.ids

    @property
    def touched_ids(self) -> Column:
        """The ids of committed rows that are replaced or removed: all others are outside of the delta."""
        return concat_ids(self.replaced_ids, self.removed_ids)


def check_strict_ids(delta: Delta, ops: KeyOps, log: ViolationLog) -> None:
    """Report the rows of a strict insert whose id stands earlier in the input or in the table."""
    rows = delta.rows
    if not delta.is_strict or rows.has_fresh_ids or rows.count == 0:
        return
    keys = rows.table.select(["id"])
    repeated = np.zeros(rows.count, dtype=np.bool_)
    repeated[ops.duplicates(keys)] = True
    taken = repeated
    if not delta.is_overwrite:
        found = ops.existing(rows.type.table_key, keys, ["id"], outside_ids=NO_IDS)
        taken = repeated | to_mask(is_among(rows.ids, found["id"]))
    charge(
        rows,
        np.flatnonzero(taken),
        log,
        kind=Kind.UNIQUE,
        message=lambda row: (
            f"{rows.type.table_key} "
            f"{'gets' if repeated[row] else 'already has'} id {quote(rows.ids[row])}"
            f"{' twice' if repeated[row] else ''}"
        ),
        constraint=ID_CONSTRAINT,
        violation=KeyConflictViolation,
    )


def check_unique(delta: Delta, ops: KeyOps, log: ViolationLog) -> None:
    """Report tuples of `@key` and `@unique` that another row of the write or a committed row holds (S1)."""
    type_ = delta.type
    key = type_.key if isinstance(type_, NodeType) else None
    if key is not None and not delta.is_strict:
        # Equal keys have equal ids, and a committed row of the same key is the one that is replaced.
        repeated = ops.duplicates(delta.rows.table.select(["id"]))
        _charge_repeated(delta.rows, key, repeated, 0, log)
    for constraint, columns in enumerate(type_.unique, 1):
        _check_unique_columns(delta, columns, constraint, ops, log)


def _check_unique_columns(
    delta: Delta, columns: Sequence[str], constraint: int, ops: KeyOps, log: ViolationLog
) -> None:
    rows, folded = delta.rows, delta.folded
    repeated = ops.duplicates(rows.table.select(list(columns)))
    _charge_repeated(rows, columns, repeated, constraint, log)
    keys = folded.table.select(list(columns))
    found = ops.existing(rows.type.table_key, keys, columns, outside_ids=delta.touched_ids)
    if found.num_rows == 0:
        return
    held = holds_one_of(keys, found)
    if len(repeated):  # one violation for one row and constraint
        held &= ~holds_one_of(_places(folded), _places(rows.take(repeated)))
    where = _where(delta.type, columns)

    def message(row: int) -> str:
        values = [keys.column(name)[row] for name in columns]
        return f"{where}: {_shown(values)} is held by {quote(_holder(found, columns, values))}"

    charge(folded, np.flatnonzero(held), log, kind=Kind.UNIQUE, message=message, constraint=constraint)


def _charge_repeated(
    rows: Rows, columns: Sequence[str], repeated: Positions, constraint: int, log: ViolationLog
) -> None:
    where = _where(rows.type, columns)

    def message(row: int) -> str:
        values = [rows.table.column(name)[row] for name in columns]
        return f"{where}: {_shown(values)} stands twice in this write"

    charge(rows, repeated, log, kind=Kind.UNIQUE, message=message, constraint=constraint)


def _where(type_: NodeType | EdgeType, columns: Sequence[str]) -> str:
    named = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    return f"@unique violation on {type_.name}.{named}"


def _shown(values: Sequence[Column]) -> str:
    return ", ".join(quote(show(value)) for value in values)


def _holder(found: pa.Table, columns: Sequence[str], values: Sequence[Column]) -> str:
    """Return the least id among the holders of a tuple."""
    for name, value in zip(columns, values, strict=True):
        found = found.filter(pc.equal(found.column(name), value))
    return min(map(str, found["id"].to_pylist()))


def _places(rows: Rows) -> pa.Table:
    columns: list[Column] = [pa.array(rows.files), pa.array(rows.lines), rows.ids]
    return pa.Table.from_arrays(columns, names=["file", "line", "id"])


def check_endpoints(edges: Delta, written: Mapping[str, Column], ops: KeyOps, log: ViolationLog) -> None:
    """Report edges with an end that is in neither the write nor the table; written are ids by table."""
    type_, rows = edges.type, edges.folded
    assert isinstance(type_, EdgeType), "nodes have no ends"
    for constraint, (column, node) in enumerate(ends(type_)):
        table_key = f"node:{node}"
        wanted: Column = pc.unique(rows.table.column(column))
        if len(written.get(table_key, NO_IDS)):
            wanted = wanted.filter(is_not_among(wanted, written[table_key]))
        missing = ops.missing(table_key, wanted) if len(wanted) else wanted
        if len(missing):
            message = _Missing(column, node, rows.table.column(column))
            positions = true_positions(is_among(message.ids, missing))
            charge(rows, positions, log, kind=Kind.ENDPOINT, message=message, constraint=constraint)


@dataclass(frozen=True, slots=True)
class _Missing:
    """The message about the end of an edge, by its position."""

    column: str
    node: str
    ids: Column

    def __call__(self, row: int) -> str:
        return f"{self.column} {quote(self.ids[row])} not found in {self.node}"


def ends(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the columns of both ends with the node type that they name."""
    return ("src", edge.source), ("dst", edge.target)


def check_retained(
    edge: EdgeType, removed: Mapping[str, Column], touched_ids: Column, ops: KeyOps, log: ViolationLog
) -> None:
    """Report committed edges outside of the write that refer to a node it removes (S2).

    `removed` are node ids by table, `touched_ids` the edges that the write replaces or removes.
    """
    for constraint, (column, node) in enumerate(ends(edge)):
        gone = removed.get(f"node:{node}", NO_IDS)
        if len(gone) == 0:
            continue
        found = ops.existing(edge.table_key, pa.table({column: gone}), [column], outside_ids=touched_ids)
        message = _Missing(column, node, found[column])
        _charge_nowhere(
            edge.table_key, found["id"], log, kind=Kind.ENDPOINT, message=message, constraint=constraint
        )


def check_cardinality(edges: Delta, removed_nodes: Column, ops: KeyOps, log: ViolationLog) -> None:
    """Report sources with more edges than the maximum or fewer than the minimum after the write (S1, S2).

    Only what the write touches is counted: the sources of written edges, and for the minimum those of
    replaced and removed ones. Removed sources are skipped.
    """
    type_, rows = edges.type, edges.folded
    assert isinstance(type_, EdgeType), "nodes have no cardinality"
    if type_.low == 0 and type_.high is None:
        return
    touched: Column = pc.unique(rows.table.column("src"))
    if type_.low > 0:
        touched = pc.unique(concat_ids(touched, ops.sources(type_.table_key, edges.touched_ids)))
    if len(removed_nodes):
        touched = touched.filter(is_not_among(touched, removed_nodes))
    if len(touched) == 0:
        return
    counted = ops.counts(type_.table_key, touched, without_edge_ids=edges.touched_ids)
    committed = np.zeros(len(touched), dtype=np.int64)
    committed[_positions_in(counted["src"], touched)] = np.asarray(counted["n"])
    owners = _positions_in(rows.table.column("src"), touched)
    added = np.bincount(owners[owners >= 0], minlength=len(touched))
    totals = committed + added
    if type_.high is not None:
        _charge_maximum(rows, type_.high, owners=owners, committed=committed, totals=totals, log=log)
    few = np.flatnonzero(totals < type_.low)
    _charge_nowhere(
        type_.table_key,
        touched.take(few),
        log,
        kind=Kind.CARDINALITY,
        message=lambda row: (
            f"@card violation on edge {type_.name}: {quote(touched[int(few[row])])} "
            f"has {_edges(totals[few[row]])}, at least {type_.low} required"
        ),
    )


def _charge_maximum(
    rows: Rows, high: int, *, owners: Positions, committed: Positions, totals: Positions, log: ViolationLog
) -> None:
    """Report the first row beyond the maximum of each source that has too many edges (S1)."""
    order = np.argsort(owners, kind="stable")
    over = np.intersect1d(np.flatnonzero(totals > high), owners)
    starts = np.searchsorted(owners[order], over)
    beyond = order[starts + np.maximum(high - committed[over], 0)]
    charge(
        rows,
        beyond.astype(np.int64),
        log,
        kind=Kind.CARDINALITY,
        message=lambda row: (
            f"@card violation on edge {rows.type.name}: {quote(rows.table.column('src')[row])} "
            f"has {_edges(totals[owners[row]])}, at most {high} allowed"
        ),
    )


def _edges(count: int) -> str:
    return f"{count} edge" if count == 1 else f"{count} edges"


def _positions_in(values: Column, among: Column) -> Positions:
    """Return where each value stands among distinct others; -1 where it does not."""
    whole = among.combine_chunks() if isinstance(among, pa.ChunkedArray) else among
    found: Column = pc.index_in(values, value_set=whole)
    return np.asarray(pc.fill_null(found, -1), dtype=np.int64)


def concat_ids(left: Column, right: Column) -> Column:
    """Return two columns of ids as one."""
    if len(left) == 0 or len(right) == 0:
        return left if len(right) == 0 else right
    pieces = [piece for ids in (left, right) for piece in getattr(ids, "chunks", [ids])]
    return pa.chunked_array(pieces, pa.utf8())


def _charge_nowhere(
    table_key: str,
    ids: Column,
    log: ViolationLog,
    *,
    kind: Kind,
    message: Callable[[int], str],
    constraint: int = 0,
) -> None:
    """Report one violation for each id, without a row of the write (S2)."""
    order = range(len(ids))
    if len(ids) > log.limit:
        order = np.asarray(pc.sort_indices(ids))[: log.limit].tolist()
    found = [
        Violation(kind, message(row), table_key, ids[row].as_py(), NOWHERE, NOWHERE, None, constraint)
        for row in order
    ]
    log.extend(found, more=len(ids) - len(found))
