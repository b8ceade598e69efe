"""Validation of a whole write: all checks over all rows, before anything is chosen or raised.

W1  Only the delta is examined: rows that the write brings, ids that it removes, and what they meet.
W2  A row that fails a value check takes no part in the set checks; neither does a record that was refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.validate.arrow_questions import ArrowQuestions, Delta
from omnigraph.validate.columns import Column, TableChange, TypedRows, concat_rows, make_rows
from omnigraph.validate.set_checks import TableTraits, check_sets
from omnigraph.validate.sets import (
    CommittedView,
    KeyOps,
    earlier_positions,
    is_not_among,
    tuple_codes,
)
from omnigraph.validate.values import check_values
from omnigraph.validate.violations import ViolationLog

__all__ = ["ChunkedChange", "TableChange", "fold_by_id", "validate_changeset", "validate_chunks"]


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
