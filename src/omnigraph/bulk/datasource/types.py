"""The columns of tables as Spark has them: types, and the conversion of batches.

Spark knows neither unsigned integers nor lists of a fixed size: `U32` becomes `long`, `U64` `decimal(20,0)`,
a vector an array of floats. A `DateTime` becomes a timestamp, and a Blob a struct that describes it, or the
text of a reference.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from omnigraph.core.errors import BadRequest
from omnigraph.validate.columns import Column

BLOB_KIND = "managed"  # a column of references is one of texts
_BLOB = spark.StructType(
    [spark.StructField("kind", spark.StringType()), spark.StructField("size", spark.LongType())]
)
_PLAIN: list[tuple[pa.DataType, spark.DataType]] = [
    (pa.utf8(), spark.StringType()),
    (pa.bool_(), spark.BooleanType()),
    (pa.int32(), spark.IntegerType()),
    (pa.int64(), spark.LongType()),
    (pa.uint32(), spark.LongType()),
    (pa.uint64(), spark.DecimalType(20, 0)),
    (pa.float32(), spark.FloatType()),
    (pa.float64(), spark.DoubleType()),
    (pa.date32(), spark.DateType()),
    (pa.date64(), spark.TimestampType()),
    (pa.large_binary(), _BLOB),
]


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """Return the columns of a table as Spark has them."""
    return spark.StructType([spark.StructField(item.name, spark_type(item.type)) for item in schema])


def spark_type(type_: pa.DataType) -> spark.DataType:
    """Return the type of a column as Spark has it."""
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return spark.ArrayType(spark_type(type_.value_type))
    return next(found for plain, found in _PLAIN if plain == type_)


def chosen_columns(wanted: spark.StructType, schema: pa.Schema) -> list[str]:
    """Return the columns that a user's schema asks for: some of the table's, with their own types.

    Raises:
        BadRequest: there is no such column, or it has another type.
    """
    known = {item.name: item.dataType for item in spark_schema(schema).fields}
    for item in wanted.fields:
        if item.name not in known:
            raise BadRequest(f"the table has no column '{item.name}'; it has {', '.join(known)}")
        asked, found = item.dataType.simpleString(), known[item.name].simpleString()
        if asked != found:
            raise BadRequest(f"column '{item.name}' is {found}, not {asked}")
    return list(wanted.fieldNames())


def spark_batch(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return rows with the columns that Spark expects, in its own Arrow types."""
    columns = [_converted(batch.column(item.name), item.type) for item in target]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _converted(column: Column, target: pa.DataType) -> Column:
    source = column.type
    if pa.types.is_large_binary(source) and pa.types.is_struct(target):
        return _descriptions(column, target)
    if pa.types.is_date64(source):
        return column.cast(pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(target)
    if pa.types.is_fixed_size_list(source):
        column = column.cast(pa.list_(source.value_type))
    if pa.types.is_list(target):
        items = _converted(column.values, target.value_type)
        offsets: Any = column.offsets
        return pa.ListArray.from_arrays(offsets, items, type=target, mask=column.is_null())
    if pa.types.is_uint64(source):
        # There is no direct cast: go through text, which has every digit.
        return column.cast(pa.utf8()).cast(target)
    return column.cast(target)


def _descriptions(column: Column, target: pa.DataType) -> Column:
    sizes = pc.binary_length(column)
    kinds = pa.array([BLOB_KIND] * len(column), pa.utf8())
    fields = [target.field(number) for number in range(target.num_fields)]
    arrays: list[Column] = [kinds, sizes.cast(pa.int64())]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=column.is_null())
