"""Rows of the manifest, chosen by column.

The stubs of Arrow's compute functions accept only its own scalars; these functions take plain values.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.values import is_text

_compute: Any = pc


def where_equal(rows: pa.Table, column: str, value: str | int) -> pa.Table:
    """Return the rows whose column has a value."""
    return rows.filter(_compute.equal(rows[column], value))


def where_one_of(rows: pa.Table, column: str, values: Iterable[str]) -> pa.Table:
    """Return the rows whose column has one of the values."""
    return rows.filter(_compute.is_in(rows[column], value_set=pa.array(list(values))))


def where_in(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows whose object is among those of other rows."""
    return rows.filter(_is_in(rows, others))


def where_not_in(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows whose object is not among those of other rows."""
    return rows.filter(_compute.invert(_is_in(rows, others)))


def where_at_most(rows: pa.Table, column: str, value: int) -> pa.Table:
    """Return the rows whose column is not above a number; null is not among them."""
    return rows.filter(_compute.less_equal(rows[column], value))


def where_above(rows: pa.Table, column: str, value: int) -> pa.Table:
    """Return the rows whose column is above a number; null is not among them."""
    return rows.filter(_compute.greater(rows[column], value))


def where_above_or_equal_to(rows: pa.Table, column: str, value: int, other: str, text: str) -> pa.Table:
    """Return the rows whose column is above a number, and those whose other column has a text."""
    is_above = _compute.fill_null(_compute.greater(rows[column], value), False)
    return rows.filter(_compute.or_(is_above, _compute.equal(rows[other], text)))


def where_null(rows: pa.Table, *columns: str) -> pa.Table:
    """Return the rows that lack one of the columns."""
    mask = _compute.is_null(rows[columns[0]])
    for column in columns[1:]:
        mask = _compute.or_(mask, _compute.is_null(rows[column]))
    return rows.filter(mask)


def _is_in(rows: pa.Table, others: pa.Table) -> "pa.ChunkedArray[pa.BooleanScalar]":
    found: pa.ChunkedArray[pa.BooleanScalar] = _compute.is_in(
        rows["object_id"], value_set=others["object_id"].combine_chunks()
    )
    return found


def greatest(rows: pa.Table, column: str) -> int:
    """Return the greatest value of a column."""
    return int(_compute.max(rows[column]).as_py())


def least(rows: pa.Table, column: str) -> int:
    """Return the smallest value of a column."""
    return int(_compute.min(rows[column]).as_py())


def position_of(rows: pa.Table, column: str, value: str) -> int:
    """Return the first position of a value, or -1."""
    if not is_text(value):
        return -1  # Arrow cannot be asked for it, and holds no such text
    return int(_compute.index(rows[column], value).as_py())


def descending(rows: pa.Table, column: str) -> list[int]:
    """Return the positions of the rows, greatest value first."""
    order: list[int] = _compute.sort_indices(rows, sort_keys=[(column, "descending")]).to_pylist()
    return order


def ascending(rows: pa.Table, column: str) -> list[int]:
    """Return the positions of the rows, smallest value first."""
    order: list[int] = _compute.sort_indices(rows, sort_keys=[(column, "ascending")]).to_pylist()
    return order
