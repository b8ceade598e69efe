"""The values of tables in other formats: JSON records, columns for CSV, columns for Parquet.

E1  What is written here, a load reads back as the very same values.
E2  JSON is that of `surfaces` 0.3: integers beyond 53 bits and floats that are not numbers are texts, a
    32-bit float has no more digits than it needs, a Blob is `base64:` and its bytes.
E3  The ends of an edge are called `from` and `to`, as a load expects them.
"""

import base64
from collections.abc import Callable, Iterator
from math import inf, isfinite, isnan

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.core.limits import JSON_INTEGER_MAX
from omnigraph.core.values import Scalar, ValueType
from omnigraph.validate.coerce import BLOB_PREFIX
from omnigraph.validate.columns import Column

_ID = ValueType(Scalar.STRING)
_ENDS = {"src": "from", "dst": "to"}
_Convert = Callable[[Column, ValueType], Column]


def json_records(batch: pa.RecordBatch, type_: NodeType | EdgeType) -> Iterator[dict[str, object]]:
    """Yield the rows of a table as the records of a load (E1, E2)."""
    names = ["id", *type_.properties]
    types = [_ID, *(item.type for item in type_.properties.values())]
    columns = [_json_values(batch.column(name), of) for name, of in zip(names, types, strict=True)]
    rows = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    if isinstance(type_, NodeType):
        for data in rows:
            yield {"type": type_.name, "data": data}
        return
    ends = zip(batch.column("src").to_pylist(), batch.column("dst").to_pylist(), strict=True)
    for (source, target), data in zip(ends, rows, strict=True):
        yield {"edge": type_.name, "from": source, "to": target, "data": data}


def json_lines(batch: pa.RecordBatch, type_: NodeType | EdgeType) -> bytes:
    """Return the rows of a table as lines of NDJSON."""
    dumps, option = orjson.dumps, orjson.OPT_APPEND_NEWLINE
    return b"".join(dumps(record, option=option) for record in json_records(batch, type_))


def csv_batch(batch: pa.RecordBatch, type_: NodeType | EdgeType) -> pa.RecordBatch:
    """Return rows with the columns of CSV: numbers, booleans and dates unchanged, others as text (E1, E3)."""
    return _converted(batch, type_, _csv_column)


def parquet_batch(batch: pa.RecordBatch, type_: NodeType | EdgeType) -> pa.RecordBatch:
    """Return rows with the columns of Parquet, which knows no `date64` (E1, E3)."""
    return _converted(batch, type_, _parquet_column)


def _converted(batch: pa.RecordBatch, type_: NodeType | EdgeType, convert: _Convert) -> pa.RecordBatch:
    columns: dict[str, Column] = {}
    for name in batch.schema.names:
        item = type_.properties.get(name)
        column = batch.column(name)
        columns[_ENDS.get(name, name) if item is None else name] = (
            column if item is None else convert(column, item.type)
        )
    return pa.RecordBatch.from_pydict(columns)


def _csv_column(column: Column, type_: ValueType) -> Column:
    if type_.is_list or type_.is_vector:
        texts = [
            None if value is None else orjson.dumps(value).decode() for value in _json_values(column, type_)
        ]
        return pa.array(texts, pa.utf8())
    match type_.scalar:
        case Scalar.F32:
            return _shortest(column)
        case Scalar.DATETIME | Scalar.BLOB:
            return pa.array(_json_values(column, type_), pa.utf8())
        case _:
            return column


def _parquet_column(column: Column, type_: ValueType) -> Column:
    if type_.scalar is not Scalar.DATETIME:
        return column
    if type_.is_list:
        return column.cast(pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("ms", "UTC")))
    return column.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))


def _json_values(column: Column, type_: ValueType) -> list[object]:
    """Return the values of a column in JSON's form (E2)."""
    if type_.is_list or type_.is_vector:
        return _json_lists(column, type_)
    match type_.scalar:
        case Scalar.I64 | Scalar.U64:
            return [_json_integer(value) for value in column.to_pylist()]
        case Scalar.F32:
            return [_json_float(value) for value in _shortest(column).to_pylist()]
        case Scalar.F64:
            return [_json_float(value) for value in column.to_pylist()]
        case Scalar.DATE:
            return list(column.cast(pa.utf8()).to_pylist())
        case Scalar.DATETIME:
            moments = column.cast(pa.int64()).cast(pa.timestamp("ms"))
            return list(pc.strftime(moments, format="%Y-%m-%dT%H:%M:%SZ").to_pylist())
        case Scalar.BLOB:
            return [_json_blob(value) for value in column.to_pylist()]
        case _:
            return list(column.to_pylist())


def _json_lists(column: Column, type_: ValueType) -> list[object]:
    given = column.drop_null()
    item = ValueType(Scalar.F32 if type_.is_vector else type_.scalar)
    items = iter(_json_values(given.flatten(), item))
    lengths = iter(pc.list_value_length(given).to_pylist())
    return [
        [next(items) for _ in range(next(lengths))] if is_given else None
        for is_given in column.is_valid().to_pylist()
    ]


def _shortest(column: Column) -> Column:
    """Return floats of 32 bits as doubles with the fewest digits that mean the same float (E1, E2)."""
    return column.cast(pa.utf8()).cast(pa.float64())


def _json_integer(value: int | None) -> int | str | None:
    return value if value is None or abs(value) <= JSON_INTEGER_MAX else str(value)


def _json_float(value: float | None) -> float | str | None:
    if value is None or isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value == inf else "-Infinity"


def _json_blob(value: bytes | None) -> str | None:
    return None if value is None else BLOB_PREFIX + base64.b64encode(value).decode()
