"""Tables that a Python user holds, as inputs of a load; no library is imported to tell them apart."""

from typing import Any, cast

import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.core.errors import BadRequest
from omnigraph.operations.load_model import FrameInput, TableInput


def table_input(catalog: Catalog, type_name: str, table: object) -> TableInput | FrameInput:
    """Return a table of pyarrow, pandas, polars or Spark as an input for a type.

    Raises:
        BadRequest: there is no such type, or this is no table.
    """
    found = catalog.nodes.get(type_name) or catalog.edge(type_name)
    if found is None:
        raise BadRequest(f"unknown type '{type_name}'")
    if _comes_from(table, "pyspark"):
        return FrameInput(found.table_key, table, type_name)
    return TableInput(found.table_key, to_arrow(table, type_name), type_name)


def to_arrow(table: object, type_name: str) -> pa.Table:
    """Return a table in memory as an Arrow table.

    Raises:
        BadRequest: this is no table, or has a column that Arrow cannot hold.
    """
    try:
        found = _converted(table)
    except (pa.ArrowException, UnicodeError) as error:
        reason = str(error).partition("\n")[0]
        raise BadRequest(f"the table for {type_name} makes no Arrow table: {reason}") from error
    if found is None:
        is_list = isinstance(table, list | tuple)
        hint = ": make one of a list of dicts with pyarrow.Table.from_pylist" if is_list else ""
        kinds = "a table of pyarrow, pandas, polars or Spark"
        raise BadRequest(f"the table for {type_name} is a {type(table).__name__}, not {kinds}{hint}")
    return found


def _converted(table: object) -> pa.Table | None:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.RecordBatchReader):
        return table.read_all()
    if _comes_from(table, "pandas"):
        return pa.Table.from_pandas(cast("Any", table), preserve_index=False).replace_schema_metadata(None)
    if _comes_from(table, "polars"):
        arrow: pa.Table = cast("Any", table).to_arrow()
        return arrow
    return None


def _comes_from(table: object, library: str) -> bool:
    return type(table).__module__.partition(".")[0] == library
