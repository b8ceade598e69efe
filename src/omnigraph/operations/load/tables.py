"""Python users' tables as inputs of a load; no library is imported to tell them apart.

F1  A pandas frame is read by pandas' conventions, any other table as is. NaN is how pandas represents a
    missing value, so it is null. A column of integers with a gap is a column of floats in pandas: for an
    integer property it is converted back, if no number in it can have lost a digit on the way.
"""

from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.errors import BadRequest
from omnigraph.core.values import INTEGERS, Scalar, named
from omnigraph.operations.load.given_records import rows_input
from omnigraph.operations.load.model import FrameInput, RecordInput, TableInput

FloatColumn: TypeAlias = "pa.ChunkedArray[Any]"

# What Arrow, pandas and polars raise for columns that Arrow cannot hold: sparse ones, 2**70, two of one name.
_CONVERSION_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)
# The first whole number of each width that may also stand for its neighbour: below it a float is exact.
_DOUBTFUL_FROM = {pa.float64(): 2**53, pa.float32(): 2**24, pa.float16(): 2**11}


def table_input(catalog: Catalog, type_name: str, table: object) -> TableInput | FrameInput | RecordInput:
    """Return a table of pyarrow, pandas, polars or Spark, or a list of dicts, as an input for a type.

    Raises:
        BadRequest: there is no such type, or this is not a table.
    """
    found = catalog.nodes.get(type_name) or catalog.edge(type_name)
    if found is None:
        raise BadRequest(f"unknown type '{type_name}'")
    if isinstance(table, list | tuple):
        return rows_input(found, table, type_name)
    if _comes_from(table, "pyspark"):
        return FrameInput(found.table_key, table, type_name)
    return TableInput(found.table_key, to_arrow(table, found), type_name)


def to_arrow(table: object, type_: NodeType | EdgeType) -> pa.Table:
    """Return a table in memory as an Arrow table for a type.

    Raises:
        BadRequest: this is not a table, or it has a column that Arrow cannot hold, or a pandas column has
            floats for an integer that may not be the numbers that were meant.
    """
    type_name = type_.name
    try:
        found = _converted(table)
    except _CONVERSION_FAILURES as error:
        reason = str(error).partition("\n")[0]
        raise BadRequest(f"the table for {type_name} cannot become an Arrow table: {reason}") from error
    if found is not None and _comes_from(table, "pandas"):
        return _by_conventions(found, type_)
    if found is None:
        kinds = "a table of pyarrow, pandas, polars or Spark, or a list of dicts"
        raise BadRequest(f"the table for {type_name} is {named(table)}, not {kinds}")
    return found


def _converted(table: object) -> pa.Table | None:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.RecordBatchReader):
        return table.read_all()
    if _comes_from(table, "pandas") and getattr(table, "ndim", None) == 2:
        return pa.Table.from_pandas(cast("Any", table), preserve_index=False).replace_schema_metadata(None)
    if _comes_from(table, "polars") and hasattr(table, "to_arrow"):  # a LazyFrame has to be collected
        found = cast("Any", table).to_arrow()
        return found if isinstance(found, pa.Table) else None
    return None


def _comes_from(table: object, library: str) -> bool:
    return type(table).__module__.partition(".")[0] == library


def _by_conventions(table: pa.Table, type_: NodeType | EdgeType) -> pa.Table:
    """Return a pandas table without NaN, whose columns for integer properties hold integers (F1)."""
    for place, field in enumerate(table.schema):
        if not pa.types.is_floating(field.type):
            continue
        column, known = _without_nan(table.column(place)), type_.properties.get(field.name)
        if known is not None and known.type.scalar in INTEGERS and not known.type.is_list:
            column = _integers(column, f"{type_.name}.{field.name}", known.type.scalar)
        table = table.set_column(place, field.name, column)
    return table


def _without_nan(column: FloatColumn) -> FloatColumn:
    """Return a column whose NaNs are null; Arrow keeps those that pandas has next to its own nulls."""
    numbers = column.cast(pa.float64())
    cleared: FloatColumn = pc.if_else(pc.is_nan(numbers), pa.scalar(None, column.type), column)
    return cleared


def _integers(column: FloatColumn, property_name: str, scalar: Scalar) -> FloatColumn:
    doubtful_from = _DOUBTFUL_FROM[column.type]
    numbers = column.cast(pa.float64())
    is_exact = pc.and_(
        pc.equal(numbers, pc.trunc(numbers)), pc.less(pc.abs(numbers), pa.scalar(float(doubtful_from)))
    )
    row = pc.index(is_exact, value=False).as_py()
    if row >= 0:
        dtype = "UInt64" if scalar is Scalar.U64 else "Int64"
        raise BadRequest(
            f"row {row + 1} of the pandas column for {property_name} has {column[row].as_py()}, but {scalar} "
            f"accepts from floats only NaN, as null, and whole numbers below {doubtful_from:,}, which have "
            f"lost no digit: make it a column of dtype '{dtype}'"
        )
    return numbers.cast(pa.int64())
