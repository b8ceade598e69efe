"""`DateTime` as it leaves the engine: a timestamp in UTC.

M1  Tables store milliseconds as Arrow's `date64`, which other libraries read as days: pandas, polars and
    Arrow's own `to_pylist` drop the time. Whatever leaves the engine as Arrow has `timestamp("ms", "UTC")`
    instead, also inside lists and whole entities.
"""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

    TableLike = TypeVar("TableLike", pa.Table, pa.RecordBatch)


def with_moments(rows: "TableLike") -> "TableLike":
    """Return rows whose moments are timestamps; the same rows if there are none (M1)."""
    import pyarrow as pa  # late: reading a catalog must not cost the import of Arrow

    schema = pa.schema([_field(field) for field in rows.schema]).with_metadata(rows.schema.metadata)
    return rows if schema == rows.schema else rows.cast(schema)


def _field(field: "pa.Field[pa.DataType]") -> "pa.Field[pa.DataType]":
    return field.with_type(moment_type(field.type))


def moment_type(type_: "pa.DataType") -> "pa.DataType":
    """Return the type of a column as it leaves the engine (M1)."""
    import pyarrow as pa

    if pa.types.is_date64(type_):
        return pa.timestamp("ms", "UTC")
    if pa.types.is_list(type_):
        return pa.list_(_field(type_.value_field))
    if pa.types.is_struct(type_):
        return pa.struct([_field(type_.field(place)) for place in range(type_.num_fields)])
    return type_
