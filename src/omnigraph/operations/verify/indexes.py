"""Whether the indexes of a table agree with its rows.

X1  Rows are read without the index, and looked up through it: every row must be found, under its own value.
    A missing or partial index is no fault: what it does not cover is scanned.
X2  Of a large table rows all over it are looked up, so many that a wrong segment shows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.index_kind import IndexKind, IndexSpec, index_specs
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.exec.mutation import CommittedTables
from omnigraph.storage.search.search import (
    analyse_query,
    partitions,
    search_text,
    search_vector,
    text_cover,
    vector_cover,
)
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.index import IndexRequest
from omnigraph.storage.tables.row_set import serialized
from omnigraph.storage.tables.rows import FEW_VALUES, row_ids_of
from omnigraph.storage.tables.table import TableStore
from omnigraph.validate.columns import Column
from omnigraph.validate.sets import is_not_among

LOOKUPS_MAX = 200_000  # rows of one B-tree: at up to 50 µs each, ten seconds
SEARCHES_MAX = 200  # rows that are searched for one by one, at some milliseconds each


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that a table has, and how many rows a check of it reads."""

    name: str
    spec: IndexSpec
    rows: int


def built_indexes(store: TableStore, handle: SnapshotHandle, type_: NodeType | EdgeType) -> list[BuiltIndex]:
    """Return the declared indexes that a version of a table has.

    Raises:
        StorageError: the store failed.
    """
    names = store.index_coverage(handle)
    found = [(IndexRequest(spec.column, spec.kind.value).name, spec) for spec in index_specs(type_)]
    return [BuiltIndex(name, spec, handle.row_count) for name, spec in found if name in names]


def disagreements(
    committed: CommittedTables,
    store: TableStore,
    table_key: str,
    index: BuiltIndex,
    tick: Callable[[int], None],
) -> Iterator[str]:
    """Yield what an index says otherwise than the rows do (X1, X2).

    Raises:
        StorageError: it cannot be read.
    """
    handle, column = committed.handle(table_key), index.spec.column
    match index.spec.kind:
        case IndexKind.BTREE:
            yield from _lookups(committed, store, table_key, column, tick)
        case IndexKind.FULLTEXT:
            if text_cover(handle, column) is not None:
                yield from _searches(store, handle, column, tick, _finds_text)
        case IndexKind.VECTOR:
            if vector_cover(handle, column) is not None:
                yield from _searches(store, handle, column, tick, _finds_vector)


def _lookups(
    committed: CommittedTables,
    store: TableStore,
    table_key: str,
    column: str,
    tick: Callable[[int], None],
) -> Iterator[str]:
    """Look values up, as few at a time as go through the index, and compare with the rows that have them."""
    handle = committed.handle(table_key)
    names = list(dict.fromkeys(["id", column]))
    stride = -(-handle.row_count // LOOKUPS_MAX)
    for number, batch in enumerate(store.scan_batches(handle, columns=names, batch_size=FEW_VALUES)):
        tick(batch.num_rows)
        rows = pa.Table.from_batches([batch])
        rows = rows.filter(rows[column].is_valid())
        if number % stride or rows.num_rows == 0:
            continue
        values = pc.unique(rows[column])
        found = committed.rows_by_values(table_key, column, values, names)
        for id_ in rows["id"].filter(is_not_among(rows["id"], found["id"])).to_pylist():
            yield f"does not find {id_!r} by its {column}"
        for id_ in found["id"].filter(is_not_among(found[column], values)).to_pylist():
            yield f"finds {id_!r} by a {column} that it does not have"


def _searches(
    store: TableStore,
    handle: SnapshotHandle,
    column: str,
    tick: Callable[[int], None],
    finds: "Callable[[SnapshotHandle, str, Column, int], bool]",
) -> Iterator[str]:
    """Search for some rows by their own value, each among itself alone."""
    stride = -(-handle.row_count // SEARCHES_MAX)
    at = 0
    for batch in store.scan_batches(handle, columns=["id", column], with_row_id=True, batch_size=FEW_VALUES):
        tick(batch.num_rows)
        places = np.arange(-at % stride, batch.num_rows, stride)
        at += batch.num_rows
        rows = pa.Table.from_batches([batch]).take(places)
        rows = rows.filter(rows[column].is_valid())
        for value, id_, row_id in zip(rows[column], rows["id"].to_pylist(), row_ids_of(rows), strict=True):
            if not finds(handle, column, value, int(row_id)):
                yield f"does not find {id_!r} by its {column}"


def _finds_text(handle: SnapshotHandle, column: str, value: Column, row_id: int) -> bool:
    words = analyse_query(value.as_py())
    if not words:
        return True
    allowed = serialized(np.array([row_id], np.int64))
    found, _ = search_text(handle, column, value.as_py(), allowed=allowed, limit=None)
    return row_id in found


def _finds_vector(handle: SnapshotHandle, column: str, value: Column, row_id: int) -> bool:
    cover = vector_cover(handle, column)
    assert cover is not None, "it was looked at before"
    vector = np.array(value.as_py(), np.float32)
    allowed = serialized(np.array([row_id], np.int64))
    near = search_vector(handle, column, vector, allowed=allowed, limit=1, probes=partitions(cover))
    return row_id in near.row_ids
