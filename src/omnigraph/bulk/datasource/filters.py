"""Spark's filters as storage filters, where both mean the same for every row; the others stay with Spark."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan

import pyarrow as pa
from pyspark.sql import datasource as spark

from omnigraph.storage.tables import filter as own
from omnigraph.storage.tables.filter import FilterValue, LeafOperator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATORS: dict[type[spark.Filter], LeafOperator] = {
    spark.EqualTo: "eq",
    spark.GreaterThan: "gt",
    spark.GreaterThanOrEqual: "ge",
    spark.LessThan: "lt",
    spark.LessThanOrEqual: "le",
}


class _Unsupported(Exception):
    """A filter, or a value in it, that storage has no equivalent for."""


def to_filter(given: spark.Filter, schema: pa.Schema) -> own.RowFilter | None:
    """Return the storage filter that selects the same rows, or `None`."""
    try:
        return _filter(given, schema)
    except _Unsupported:
        return None


def _filter(given: spark.Filter, schema: pa.Schema) -> own.RowFilter:
    match given:
        case spark.Not(child):
            return own.Not(_filter(child, schema))
        case spark.IsNull(attribute):
            return own.IsNull(_column(attribute, schema).name)
        case spark.IsNotNull(attribute):
            return own.Not(own.IsNull(_column(attribute, schema).name))
        case spark.In(attribute, values):
            column = _column(attribute, schema)
            return own.IsIn(column.name, tuple(_value(value, column.type) for value in values))
        case (
            spark.EqualTo(attribute, value)
            | spark.GreaterThan(attribute, value)
            | spark.GreaterThanOrEqual(attribute, value)
            | spark.LessThan(attribute, value)
            | spark.LessThanOrEqual(attribute, value)
        ):
            column = _column(attribute, schema)
            return own.Compare(column.name, _OPERATORS[type(given)], _value(value, column.type))
        case _:
            raise _Unsupported


def _column(attribute: tuple[str, ...], schema: pa.Schema) -> "pa.Field[pa.DataType]":
    """Return the column of a filter: a scalar one, not a member of a struct."""
    if len(attribute) != 1 or attribute[0] not in schema.names:
        raise _Unsupported
    column = schema.field(attribute[0])
    if pa.types.is_nested(column.type) or pa.types.is_large_binary(column.type):
        raise _Unsupported
    return column


def _value(value: object, type_: pa.DataType) -> FilterValue:
    """Return a value as filters of storage have it: days and milliseconds as numbers."""
    if value is None:
        return None
    if pa.types.is_date32(type_) and isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH.toordinal()
    if pa.types.is_date64(type_) and isinstance(value, datetime):
        return _millis(value)
    if pa.types.is_boolean(type_) and isinstance(value, bool):
        return value
    if pa.types.is_string(type_) and isinstance(value, str):
        return value
    if pa.types.is_integer(type_) and isinstance(value, int | Decimal) and not isinstance(value, bool):
        if value != int(value):
            raise _Unsupported
        return int(value)
    if pa.types.is_floating(type_) and isinstance(value, int | float) and not isnan(value):
        return float(value)
    raise _Unsupported


def _millis(value: datetime) -> int:
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
    if since % timedelta(milliseconds=1):
        raise _Unsupported  # between two milliseconds: a comparison would have to be moved
    return since // timedelta(milliseconds=1)
