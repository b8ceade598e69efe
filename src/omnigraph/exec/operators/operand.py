"""The sides of a condition and the arguments of a search: constants of the query, or columns of rows.

The Arrow types of a result are those that the query and the schema declare, whatever rows there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_type
from omnigraph.catalog.bound import (
    AggregateValue,
    BoundExpression,
    BoundProjection,
    EntityValue,
    LiteralValue,
    ParameterValue,
    PropertyValue,
)
from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.catalog.params import ParameterInput
from omnigraph.core.arrays import Values
from omnigraph.core.values import Scalar, ValueType

Parameters: TypeAlias = Mapping[str, ParameterInput]
ConstantValue: TypeAlias = str | int | float | bool | tuple[str | int | float | bool, ...] | None


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every row."""

    value: ConstantValue


def constant(expression: BoundExpression, parameters: Parameters) -> Constant | None:
    """Return the value of a literal or parameter, or `None` for an expression over variables."""
    match expression:
        case LiteralValue(value):
            return Constant(value)
        case ParameterValue(name):
            given = parameters[name]
            assert not isinstance(given, bytes), "no query reads a Blob, and none compares one"
            return Constant(tuple(given) if isinstance(given, list) else given)
        case _:
            return None


def constant_column(expression: LiteralValue | ParameterValue, parameters: Parameters, size: int) -> Values:
    """Return a column that repeats a literal or parameter, in its declared type."""
    found = constant(expression, parameters)
    assert found is not None
    type_ = column_type(expression.type)
    value = list(found.value) if isinstance(found.value, tuple) else found.value
    if size == 1:
        return pa.array([value], type_)
    return pa.array([value], type_).take(np.zeros(size, np.int32))


def column_type(type_: ValueType) -> pa.DataType:
    """Return the Arrow type of a column of a result; texts that stand for bytes stay texts."""
    return pa.utf8() if type_.scalar is Scalar.BLOB and not type_.is_list else arrow_type(type_)


def result_schema(projections: Sequence[BoundProjection], catalog: Catalog) -> pa.Schema:
    """Return names and declared types of the columns; a result without rows has them too."""
    return pa.schema([pa.field(item.column, _type(item.expression, catalog)) for item in projections])


def entity_type(catalog: Catalog, table_key: str) -> pa.StructType:
    """Return the type of a whole entity: id, for edges both ends, and all properties except blobs by name."""
    type_ = catalog.type_of(table_key)
    ends = ["id", "src", "dst"] if isinstance(type_, EdgeType) else ["id"]
    fields: list[pa.Field[pa.DataType]] = [pa.field(name, pa.utf8(), nullable=False) for name in ends]
    fields += [
        pa.field(name, arrow_type(item.type), nullable=item.type.nullable)
        for name, item in sorted(type_.properties.items())
        if not item.is_blob
    ]
    return pa.struct(fields)


def _type(expression: BoundExpression, catalog: Catalog) -> pa.DataType:
    match expression:
        case EntityValue(type_name=name, is_edge=is_edge):
            return entity_type(catalog, f"{'edge' if is_edge else 'node'}:{name}")
        case PropertyValue() | LiteralValue() | ParameterValue() | AggregateValue():
            return column_type(expression.type)
        case _:
            return pa.float64()
