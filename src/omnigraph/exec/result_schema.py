"""The Arrow types of a result: those that the query and the schema declare, whatever rows there are."""

from collections.abc import Sequence

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
from omnigraph.exec.operators.operand import column_type


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
