"""Columns of results as plain values: JSON for documents, Python objects for programs.

A `DateTime` is a timestamp in UTC here, whatever it is in the tables (`catalog.moments`).
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import Values
from omnigraph.core.clock import look_at_deadline
from omnigraph.core.json_numbers import json_floats, json_integers
from omnigraph.core.temporal import format_date, format_datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def json_rows(table: pa.Table) -> list[list[object]]:
    """Return rows of JSON values, in the order of the columns."""
    return _rows(table, json_values)


def python_rows(table: pa.Table) -> list[list[object]]:
    """Return rows of Python values; a `DateTime` is an aware one in UTC."""
    return _rows(table, python_values)


def _rows(table: pa.Table, values: Callable[[Values], list[object]]) -> list[list[object]]:
    columns = []
    for column in table.columns:
        look_at_deadline()
        columns.append(values(_whole(column)))
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[]] * table.num_rows


def _whole(column: "pa.ChunkedArray[Any]") -> Values:
    whole: Values = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    return whole


def json_values(column: Values) -> list[object]:
    """Return the values of a column as JSON values."""
    type_ = column.type
    if pa.types.is_int64(type_) or pa.types.is_uint64(type_):
        return json_integers(column)
    if pa.types.is_floating(type_):
        return json_floats(column)
    if pa.types.is_date32(type_):
        return _each(column.cast(pa.int32()), format_date)
    if pa.types.is_timestamp(type_):
        return _each(column.cast(pa.int64()), format_datetime)
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return _lists(column, json_values)
    if pa.types.is_struct(type_):
        return _objects(column, json_values)
    return column.to_pylist()


def python_values(column: Values) -> list[object]:
    """Return the values of a column as Python values."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return _each(column.cast(pa.int64()), _moment)
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return _lists(column, python_values)
    if pa.types.is_struct(type_):
        return _objects(column, python_values)
    return column.to_pylist()


def _each(column: Values, convert: Callable[[int], object]) -> list[object]:
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _moment(millis: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=millis)


def _lists(column: Values, values: Callable[[Values], list[object]]) -> list[object]:
    items = values(pc.list_flatten(column))
    lengths: Sequence[int | None] = pc.list_value_length(column).to_pylist()
    lists: list[object] = []
    start = 0
    for length in lengths:
        lists.append(None if length is None else items[start : start + length])
        start += length or 0
    return lists


def _objects(column: Values, values: Callable[[Values], list[object]]) -> list[object]:
    names = [field.name for field in column.type]
    assert isinstance(column, pa.StructArray)
    members = zip(*(values(column.field(place)) for place in range(len(names))), strict=True)
    objects: list[object] = [dict(zip(names, row, strict=True)) for row in members]
    if column.null_count:
        known = column.is_valid().to_pylist()
        return [found if is_known else None for found, is_known in zip(objects, known, strict=True)]
    return objects
