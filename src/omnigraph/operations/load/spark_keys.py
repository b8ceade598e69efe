"""The keys of a small bulk load in one process: if there are few, comparing them is quicker than a job."""

from collections.abc import Mapping, Sequence

import numpy as np

from omnigraph.bulk.load.new_rows import NewRows, columns_of, key_columns
from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.exec.mutation import CommittedTables
from omnigraph.operations.load.local import changes_of
from omnigraph.operations.load.model import LoadMode
from omnigraph.validate.arrow_questions import ArrowQuestions
from omnigraph.validate.columns import TypedRows, concat_rows
from omnigraph.validate.questions import FILE, LINE, null_of
from omnigraph.validate.set_checks import delta_of
from omnigraph.validate.sets import KeyOps


def arrow_questions(
    rows: Mapping[str, TypedRows], mode: LoadMode, committed: CommittedTables, limit: int
) -> ArrowQuestions:
    """Return answers from these rows, which have at least their key columns."""
    changes = changes_of(rows, mode, committed)
    deltas = {key: delta_of(change, rows[key].in_order()) for key, change in changes.items()}
    return ArrowQuestions(deltas, KeyOps(committed, changes), limit)


def new_keys(
    catalog: Catalog,
    counts: Mapping[str, int],
    rows: Mapping[str, Sequence[NewRows]],
    fresh: Mapping[str, bool],
    *,
    nulls: Mapping[str, Sequence[str]],
) -> dict[str, TypedRows]:
    """Return the key columns of the rows of a load, and which of the given properties are null.

    Raises:
        StorageError: the store failed.
    """
    found: dict[str, list[TypedRows]] = {}
    for key, pieces in rows.items():
        type_ = catalog.type_of(key)
        for piece in pieces:
            for table, places in piece.read(_names(type_, nulls.get(key, ()))):
                assert places is not None, "they were asked for"
                files, lines = places[FILE].to_numpy(), places[LINE].to_numpy()
                kept = TypedRows(type_, table, files, lines, has_fresh_ids=fresh[key])
                found.setdefault(key, []).append(kept)
    return _whole(catalog, counts, found, nulls)


def _names(type_: NodeType | EdgeType, nulls: Sequence[str]) -> list[str]:
    """Return a table's key columns; of other properties, which may be large, only whether they are null."""
    return [*key_columns(type_), *map(null_of, nulls)]


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
    table = columns_of(arrow_schema(type_).empty_table(), _names(type_, nulls))
    return TypedRows(type_, table, empty.astype(np.int32), empty, has_fresh_ids=True)
