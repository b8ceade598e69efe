"""The values of tables in other formats: JSON records, columns for CSV, columns for Parquet.

E1  What is written here, a load reads back as the very same values.
E2  JSON is that of `surfaces` 0.3: integers beyond 53 bits and floats that are not numbers are texts, a
    32-bit float has no more digits than it needs, a Blob is `base64:` and its bytes,
    or the URI that it is a reference to.
E3  The ends of an edge are called `from` and `to`, as a load expects them.
"""

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.core.json_numbers import fewest_digits, json_floats, json_integers
from omnigraph.core.temporal import moment_of_micros
from omnigraph.core.values import Scalar, ValueType
from omnigraph.validate.columns import Column
from omnigraph.validate.references import BLOB_PREFIX

_ID = ValueType(Scalar.STRING)
_ENDS = {"src": "from", "dst": "to"}
_Times = Callable[[Column, Scalar], list[object]]
_Convert = Callable[[Column, ValueType], Column]


def json_records(batch: pa.RecordBatch, type_: NodeType | EdgeType) -> Iterator[dict[str, object]]:
    """Yield the rows of a table as the records of a load (E1, E2)."""
    return _records(batch, type_, _time_texts)


def python_records(batch: pa.RecordBatch, type_: NodeType | EdgeType) -> Iterator[dict[str, object]]:
    """Yield the same records for a program: a `Date` is a date, a `DateTime` an aware datetime in UTC."""
    return _records(batch, type_, _times)


def _records(batch: pa.RecordBatch, type_: NodeType | EdgeType, times: _Times) -> Iterator[dict[str, object]]:
    names = ["id", *type_.properties]
    columns = [_values(*_shown(batch.column(name), type_.properties.get(name)), times) for name in names]
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
            column if item is None else convert(*_shown(column, item))
        )
    return pa.RecordBatch.from_pydict(columns)


def _shown(column: Column, item: Property | None) -> tuple[Column, ValueType]:
    """Return a column with the type that it is written as: a reference is its text (E1)."""
    if item is None:
        return column, _ID
    if item.is_external:
        return column.cast(pa.utf8()), replace(item.type, scalar=Scalar.STRING)
    return column, item.type


def _csv_column(column: Column, type_: ValueType) -> Column:
    if type_.is_list or type_.is_vector:
        texts = [
            None if value is None else orjson.dumps(value).decode() for value in _json_values(column, type_)
        ]
        return pa.array(texts, pa.utf8())
    match type_.scalar:
        case Scalar.F32:
            return fewest_digits(column)
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
    return _values(column, type_, _time_texts)


def _values(column: Column, type_: ValueType, times: _Times) -> list[object]:
    """Return the values of a column in JSON's form, but for times in the given one (E2)."""
    if type_.is_list or type_.is_vector:
        return _lists(column, type_, times)
    match type_.scalar:
        case Scalar.I64 | Scalar.U64:
            return json_integers(column)
        case Scalar.F32 | Scalar.F64:
            return json_floats(column)
        case Scalar.DATE | Scalar.DATETIME:
            return times(column, type_.scalar)
        case Scalar.BLOB:
            return [_json_blob(value) for value in column.to_pylist()]
        case _:
            return list(column.to_pylist())


def _time_texts(column: Column, scalar: Scalar) -> list[object]:
    if scalar is Scalar.DATE:
        return list(column.cast(pa.utf8()).to_pylist())
    moments = column.cast(pa.int64()).cast(pa.timestamp("ms"))
    return list(pc.strftime(moments, format="%Y-%m-%dT%H:%M:%SZ").to_pylist())


def _times(column: Column, scalar: Scalar) -> list[object]:
    if scalar is Scalar.DATE:
        return list(column.to_pylist())
    micros = cast("list[int | None]", column.cast(pa.int64()).to_pylist())
    return [None if value is None else moment_of_micros(value * 1_000) for value in micros]


def _lists(column: Column, type_: ValueType, times: _Times) -> list[object]:
    given = column.drop_null()
    item = ValueType(Scalar.F32 if type_.is_vector else type_.scalar)
    items = iter(_values(given.flatten(), item, times))
    lengths = iter(pc.list_value_length(given).to_pylist())
    return [
        [next(items) for _ in range(next(lengths))] if is_given else None
        for is_given in column.is_valid().to_pylist()
    ]


def _json_blob(value: bytes | None) -> str | None:
    return None if value is None else BLOB_PREFIX + base64.b64encode(value).decode()
