"""Key columns as Spark knows them: text, whole number, double and boolean, compared as Arrow does."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.validate.columns import Column


def encode(column: Column) -> Column:
    """Return a key column as Spark compares it."""
    type_ = column.type
    if pa.types.is_date32(type_):
        return column.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_date64(type_):
        return column.cast(pa.int64())
    if pa.types.is_uint64(type_):
        return column.view(pa.int64())
    if pa.types.is_integer(type_):
        return column.cast(pa.int64())
    if pa.types.is_floating(type_):
        return pc.add(column.cast(pa.float64()), 0.0)
    return column


def decode(column: Column, type_: pa.DataType) -> Column:
    """Return a key column of a frame in the type of its table."""
    if pa.types.is_date32(type_):
        return column.cast(pa.int32()).cast(type_)
    if pa.types.is_uint64(type_):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return pa.array(
            np.asarray(whole.fill_null(0)).astype(np.uint64), type_, mask=np.asarray(whole.is_null())
        )
    return column.cast(type_, safe=False)


def spark_type(type_: pa.DataType) -> str:
    """Return the type of an encoded column, as Spark spells it."""
    if pa.types.is_string(type_):
        return "string"
    if pa.types.is_boolean(type_):
        return "boolean"
    return "double" if pa.types.is_floating(type_) else "long"
