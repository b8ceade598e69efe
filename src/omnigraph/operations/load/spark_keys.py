"""The keys of a small bulk load in one process: if there are few, comparing them is quicker than a job."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.tasks import ReadPlan, SliceWork, passing_rows
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.exec.mutation import CommittedTables
from omnigraph.operations.load.local import changes_of
from omnigraph.operations.load.model import LoadMode
from omnigraph.storage.tables.fragments import TaskTable, WrittenFragment, read_written
from omnigraph.validate.arrow_questions import ArrowQuestions
from omnigraph.validate.columns import TypedRows, concat_rows
from omnigraph.validate.questions import FILE, LINE, null_of
from omnigraph.validate.set_checks import delta_of
from omnigraph.validate.sets import KeyOps
from omnigraph.validate.violations import ViolationLog


def arrow_questions(
    rows: Mapping[str, TypedRows], mode: LoadMode, committed: CommittedTables, limit: int
) -> ArrowQuestions:
    """Return answers from these rows, which have at least their key columns."""
    changes = changes_of(rows, mode, committed)
    deltas = {key: delta_of(change, rows[key].in_order()) for key, change in changes.items()}
    return ArrowQuestions(deltas, KeyOps(committed, changes), limit)


def written_keys(
    catalog: Catalog,
    counts: Mapping[str, int],
    fragments: Mapping[str, Sequence[WrittenFragment]],
    tables: Mapping[str, TaskTable],
    fresh: Mapping[str, bool],
    *,
    nulls: Mapping[str, Sequence[str]],
) -> dict[str, TypedRows]:
    """Return the key columns of the rows that tasks have written, and which of the given properties are null.

    Raises:
        StorageError: the store failed.
    """
    found: dict[str, list[TypedRows]] = {}
    for key, written in fragments.items():
        type_ = catalog.type_of(key)
        for fragment in written:
            names = [*key_columns(type_), *nulls.get(key, ())]
            for table, places in read_written(tables[key].address, fragment, list(dict.fromkeys(names))):
                assert places is not None, "a load writes places"
                files, lines = places[FILE].to_numpy(), places[LINE].to_numpy()
                kept = _with_flags(table, type_, nulls.get(key, ()))
                rows = TypedRows(type_, kept, files, lines, has_fresh_ids=fresh[key])
                found.setdefault(key, []).append(rows)
    return _whole(catalog, counts, found, nulls)


def sliced_keys(
    catalog: Catalog,
    counts: Mapping[str, int],
    work: Iterable[SliceWork],
    plan: ReadPlan,
    *,
    nulls: Mapping[str, Sequence[str]],
) -> dict[str, TypedRows]:
    """Return the key columns of the rows in the slices, read here once more; and nulls as above.

    Raises:
        BadRequest: a file cannot be read.
    """
    found: dict[str, list[TypedRows]] = {}
    for item in work:
        for rows in passing_rows(item, plan, ViolationLog()):
            table = _with_flags(rows.table, rows.type, nulls.get(rows.type.table_key, ()))
            kept = TypedRows(rows.type, table, rows.files, rows.lines, has_fresh_ids=rows.has_fresh_ids)
            found.setdefault(rows.type.table_key, []).append(kept)
    return _whole(catalog, counts, found, nulls)


def key_columns(type_: NodeType | EdgeType) -> list[str]:
    """Return the columns that the set checks for a type look at."""
    own = ["src", "dst"] if isinstance(type_, EdgeType) else [*(type_.key or ())]
    return list(dict.fromkeys(["id", *own, *(name for columns in type_.unique for name in columns)]))


def _with_flags(table: pa.Table, type_: NodeType | EdgeType, nulls: Sequence[str]) -> pa.Table:
    """Return a table's key columns; of other properties, which may be large, only whether they are null."""
    keys = table.select(key_columns(type_))
    for name in nulls:
        keys = keys.append_column(null_of(name), table.column(name).is_null())
    return keys


def _whole(
    catalog: Catalog,
    counts: Mapping[str, int],
    found: Mapping[str, Sequence[TypedRows]],
    nulls: Mapping[str, Sequence[str]],
) -> dict[str, TypedRows]:
    return {
        key: concat_rows(found[key]) if key in found else _no_rows(catalog.type_of(key), nulls.get(key, ()))
        for key in counts
    }


def _no_rows(type_: NodeType | EdgeType, nulls: Sequence[str]) -> TypedRows:
    empty = np.empty(0, dtype=np.int64)
    table = _with_flags(arrow_schema(type_).empty_table(), type_, nulls)
    return TypedRows(type_, table, empty.astype(np.int32), empty, has_fresh_ids=True)
