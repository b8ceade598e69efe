"""Validation of a whole write, and its set checks: what rows may contain together.

Each check is written once, over `SetQuestions`: it knows which questions a schema asks, what the answers
break, and how to say so. It never sees more rows than a log keeps.

S1  A pair of duplicates is charged to the later row, an exceeded maximum to the first row beyond it.
S2  A retained edge to a removed node and a minimum no longer met have no row: they are charged to the table,
    with the id of the edge, or of the source.

W1  Only the delta is examined: rows that the write brings, ids that it removes, and what they meet.
W2  A row that fails a value check takes no part in the set checks; neither does a record that was refused.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.validate.arrow_questions import ArrowQuestions, Delta
from omnigraph.validate.columns import Column, TableChange, TypedRows, concat_rows, make_rows
from omnigraph.validate.questions import COUNT, FILE, HOLDER, ID, LINE, FoundRows, SetQuestions
from omnigraph.validate.sets import (
    CommittedView,
    KeyOps,
    earlier_positions,
    is_not_among,
    tuple_codes,
)
from omnigraph.validate.values import check_values, quote, show
from omnigraph.validate.violations import (
    NOWHERE,
    Consequence,
    KeyConflictViolation,
    Violation,
    ViolationKind,
    ViolationLog,
)

ID_CONSTRAINT = -1  # the id of a strict insert comes before the declared columns
Message = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class TableTraits:
    """How a write treats one table.

    A strict insert replaces nothing. Fresh ids were made for this write: no other row has them.
    """

    is_strict: bool
    is_overwrite: bool
    has_fresh_ids: bool


def check_sets(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: SetQuestions, log: ViolationLog
) -> None:
    """Report everything that the tables of a write break together, and together with committed rows."""
    check_keys(traits, catalog, ask, log)
    check_endpoints(traits, catalog, ask, log)
    check_cardinality(traits, catalog, ask, log)


def check_keys(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: SetQuestions, log: ViolationLog
) -> None:
    """Report ids of strict inserts, and tuples of `@key` and `@unique`, that another row holds (S1)."""
    for table_key in sorted(traits):
        type_ = catalog.type_of(table_key)
        _check_strict_ids(type_, traits[table_key], ask, log)
        _check_unique(type_, traits[table_key], ask, log)


def check_endpoints(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: SetQuestions, log: ViolationLog
) -> None:
    """Report written and retained edges with an end that does not exist after the write (S2)."""
    for edge in catalog.edges.values():
        own = traits.get(edge.table_key)
        if own is None or not own.is_overwrite:
            _charge_ends(edge, ask.retained(edge), log, is_nowhere=True)
        if own is not None:
            _charge_ends(edge, ask.missing(edge, log.refused), log)
            if any(log.refused.get(f"node:{node}") for _, node in ends(edge)):
                _charge_following(edge, ask.following(edge, log.refused), log)


def check_cardinality(
    traits: Mapping[str, TableTraits], catalog: Catalog, ask: SetQuestions, log: ViolationLog
) -> None:
    """Report sources with more edges than the maximum or fewer than the minimum after the write (S1, S2)."""
    for edge in catalog.edges.values():
        if edge.table_key in traits and (edge.low > 0 or edge.high is not None):
            _check_counts(edge, ask, log)


def ends(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the columns of both ends with the node type that they name."""
    return ("src", edge.source), ("dst", edge.target)


def _check_strict_ids(
    type_: NodeType | EdgeType, traits: TableTraits, ask: SetQuestions, log: ViolationLog
) -> None:
    if not traits.is_strict or traits.has_fresh_ids:
        return
    table_key = type_.table_key
    answers = [(ask.duplicates(table_key, [ID]), "gets id {} twice")]
    if not traits.is_overwrite:
        answers.append((ask.existing(table_key, [ID]), "already has id {}"))
    for found, text in answers:
        _charge(
            found,
            table_key,
            log,
            kind=ViolationKind.UNIQUE,
            message=_id_message(found, f"{table_key} {text}"),
            constraint=ID_CONSTRAINT,
            violation=KeyConflictViolation,
        )


def _id_message(found: FoundRows, text: str) -> Message:
    return lambda row: text.format(quote(found.rows[ID][row]))


def _check_unique(
    type_: NodeType | EdgeType, traits: TableTraits, ask: SetQuestions, log: ViolationLog
) -> None:
    key = type_.key if isinstance(type_, NodeType) else None
    if key is not None and not traits.is_strict:
        # Equal keys have equal ids, and a committed row with the same key is the one that is replaced.
        _charge_values(type_, key, ask.duplicates(type_.table_key, [ID], key), 0, log)
    for constraint, columns in enumerate(type_.unique, 1):
        _charge_values(type_, columns, ask.duplicates(type_.table_key, columns), constraint, log)
        _charge_values(type_, columns, ask.existing(type_.table_key, columns), constraint, log)


def _charge_values(
    type_: NodeType | EdgeType, columns: Sequence[str], found: FoundRows, constraint: int, log: ViolationLog
) -> None:
    """Report values that a committed row holds, where the answer names holders, or that appear twice."""
    named = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    holders = found.rows[HOLDER] if HOLDER in found.rows.column_names else None

    def message(row: int) -> str:
        shown = ", ".join(quote(show(found.rows[name][row])) for name in columns)
        why = "appears twice in this write" if holders is None else f"is held by {quote(holders[row])}"
        return f"@unique violation on {type_.name}.{named}: {shown} {why}"

    _charge(found, type_.table_key, log, kind=ViolationKind.UNIQUE, message=message, constraint=constraint)


def _charge_ends(
    edge: EdgeType, answers: tuple[FoundRows, FoundRows], log: ViolationLog, *, is_nowhere: bool = False
) -> None:
    for constraint, ((column, node), found) in enumerate(zip(ends(edge), answers, strict=True)):
        _charge(
            found,
            edge.table_key,
            log,
            kind=ViolationKind.ENDPOINT,
            message=_Missing(column, node, found),
            constraint=constraint,
            is_nowhere=is_nowhere,
        )


def _charge_following(edge: EdgeType, answers: tuple[FoundRows, FoundRows], log: ViolationLog) -> None:
    """Report edges whose end was refused: they are valid themselves, and come after what must be fixed."""
    for constraint, ((column, node), found) in enumerate(zip(ends(edge), answers, strict=True)):
        if found.total:
            rows = found.rows.to_pylist()
            consequences = [
                Consequence(
                    ViolationKind.ENDPOINT,
                    f"{column} {quote(row[column])} was refused",
                    edge.table_key,
                    row[ID],
                    row[FILE],
                    row[LINE],
                    log.file_name(row[FILE]),
                    constraint,
                    cause=(f"node:{node}", row[column]),
                )
                for row in rows
            ]
            log.extend_consequences(consequences, total=found.total)


@dataclass(frozen=True, slots=True)
class _Missing:
    """The message about the end of an edge, by its position in the answer."""

    column: str
    node: str
    found: FoundRows

    def __call__(self, row: int) -> str:
        return f"{self.column} {quote(self.found.rows[self.column][row])} not found in {self.node}"


def _check_counts(edge: EdgeType, ask: SetQuestions, log: ViolationLog) -> None:
    beyond, below = ask.counts(edge)
    where = f"@card violation on edge {edge.name}"

    def too_many(row: int) -> str:
        source, count = beyond.rows["src"][row], beyond.rows[COUNT][row].as_py()
        return f"{where}: {quote(source)} has {_edges(count)}, at most {edge.high} allowed"

    def too_few(row: int) -> str:
        source, count = below.rows[ID][row], below.rows[COUNT][row].as_py()
        return f"{where}: {quote(source)} has {_edges(count)}, at least {edge.low} required"

    _charge(beyond, edge.table_key, log, kind=ViolationKind.CARDINALITY, message=too_many)
    _charge(below, edge.table_key, log, kind=ViolationKind.CARDINALITY, message=too_few, is_nowhere=True)


def _edges(count: int) -> str:
    return f"{count} edge" if count == 1 else f"{count} edges"


def _charge(
    found: FoundRows,
    table_key: str,
    log: ViolationLog,
    *,
    kind: ViolationKind,
    message: Message,
    constraint: int = 0,
    violation: type[Violation] = Violation,
    is_nowhere: bool = False,
) -> None:
    """Report one violation for each row of an answer, at its place or without one (S2)."""
    if not found.total:
        return
    ids: list[str | None] = found.rows[ID].to_pylist()
    nowhere: list[int] = [NOWHERE] * len(ids)
    files: Column = nowhere if is_nowhere else found.rows[FILE].to_pylist()
    lines: Column = nowhere if is_nowhere else found.rows[LINE].to_pylist()
    charged = [
        violation(
            kind,
            message(row),
            table_key,
            id_,
            file,
            line,
            None if is_nowhere else log.file_name(file),
            constraint,
        )
        for row, (id_, file, line) in enumerate(zip(ids, files, lines, strict=True))
    ]
    log.extend(charged, more=found.total - len(charged))


@dataclass(frozen=True, slots=True)
class ChunkedChange:
    """What a write does to one table whose rows are too many to hold: by id, each id once.

    `chunks` are the rows, read once. `removed_ids` are ids of committed rows that are removed.
    """

    type: NodeType | EdgeType
    chunks: Iterable[pa.Table]
    removed_ids: Column


def validate_changeset(
    changes: Mapping[str, TableChange], catalog: Catalog, key_ops: KeyOps, log: ViolationLog
) -> dict[str, TypedRows]:
    """Report everything that a write breaks; return its rows by table, the last of each id (W1, W2).

    Nothing is raised: the caller asks the log when all inputs have been read and all checks made.
    """
    deltas = {table_key: _delta(changes[table_key], log) for table_key in sorted(changes)}
    traits = {key: _traits(changes[key], delta.rows) for key, delta in deltas.items()}
    if log.has_enough:
        log.cut_short()
    else:
        check_sets(traits, catalog, ArrowQuestions(deltas, key_ops, log.limit), log)
    return {table_key: delta.folded for table_key, delta in deltas.items()}


def validate_chunks(
    changes: Mapping[str, ChunkedChange], catalog: Catalog, view: CommittedView, log: ViolationLog
) -> None:
    """Report everything that a write with rows in chunks breaks (W1, W2).

    Of each chunk only the columns that the set checks compare are kept.
    """
    whole = {}
    for table_key, change in sorted(changes.items()):
        rows = _checked_chunks(change, log)
        whole[table_key] = TableChange(change.type, rows, change.removed_ids, "merge")
    deltas = {table_key: _delta_of_checked(change) for table_key, change in whole.items()}
    traits = {key: _traits(whole[key], delta.rows) for key, delta in deltas.items()}
    check_sets(traits, catalog, ArrowQuestions(deltas, KeyOps(view, whole), log.limit), log)


def fold_by_id(rows: TypedRows) -> TypedRows:
    """Return the last row of each id in the order of the input; the same rows when no id is repeated."""
    if rows.has_fresh_ids or rows.count < 2:
        return rows
    replaced = earlier_positions(tuple_codes(rows.table.select(["id"])))
    if len(replaced) == 0:
        return rows
    last = np.ones(rows.count, dtype=np.bool_)
    last[replaced] = False
    return rows.filter(last)


def _delta(change: TableChange, log: ViolationLog) -> Delta:
    rows = make_rows(change.type, {}, lines=[]) if change.rows is None else change.rows.in_order()
    if change.coalesce:
        rows = fold_by_id(rows)
    return delta_of(change, rows.filter(check_values(rows, log)))


def _checked_chunks(change: ChunkedChange, log: ViolationLog) -> TypedRows:
    """Check the values of every chunk; return what the set checks compare, for the rows that passed."""
    parts = [_narrow(make_rows(change.type, {}, lines=[]))]
    for chunk in change.chunks:
        columns = {name: chunk.column(name) for name in chunk.column_names}
        nowhere = np.zeros(chunk.num_rows, dtype=np.int64)  # no input, no lines: the order is that of the ids
        rows = make_rows(change.type, columns, lines=nowhere)
        parts.append(_narrow(rows.filter(check_values(rows, log))))
    return concat_rows(parts).in_order()


def _narrow(rows: TypedRows) -> TypedRows:
    type_ = rows.type
    ends = ["src", "dst"] if isinstance(type_, EdgeType) else []
    key = (type_.key or ()) if isinstance(type_, NodeType) else ()
    names = dict.fromkeys(["id", *ends, *key, *(name for columns in type_.unique for name in columns)])
    return replace(rows, table=rows.table.select(list(names)))


def _delta_of_checked(change: TableChange) -> Delta:
    assert change.rows is not None, "chunks are combined beforehand"
    return Delta(change.rows, change.rows, change.removed_ids)


def delta_of(change: TableChange, rows: TypedRows) -> Delta:
    """Return what takes part in the set checks: rows in order that passed the value checks."""
    folded = fold_by_id(rows)
    return Delta(rows, folded, _without(change.removed_ids, folded.ids))


def _traits(change: TableChange, rows: TypedRows) -> TableTraits:
    return TableTraits(
        is_strict=change.mode in {"append", "overwrite"},
        is_overwrite=change.mode == "overwrite",
        has_fresh_ids=rows.has_fresh_ids,
    )


def _without(ids: Column, others: Column) -> Column:
    return ids if len(ids) == 0 or len(others) == 0 else ids.filter(is_not_among(ids, others))
