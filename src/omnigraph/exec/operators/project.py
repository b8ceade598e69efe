"""Columns of a result: properties, whole entities, constants and scores of rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.catalog.bound import (
    BoundExpression,
    EntityValue,
    LiteralValue,
    ParameterValue,
    PropertyValue,
    RankValue,
)
from omnigraph.core.arrays import SlotArray, Values
from omnigraph.exec.context import QueryContext
from omnigraph.exec.operators.operand import constant_column, entity_type
from omnigraph.exec.rows import BindingTable

if TYPE_CHECKING:
    from omnigraph.exec.operators.rank import Ranking


def project(
    context: QueryContext,
    expression: BoundExpression,
    rows: BindingTable,
    rankings: "Mapping[RankValue, Ranking]",
) -> Values:
    """Return the column of a projection, one value per row."""
    match expression:
        case PropertyValue(variable, name):
            return context.view.column(rows.tables[variable], name, rows.slots[variable])
        case EntityValue(variable):
            return entities(context, rows.tables[variable], rows.slots[variable])
        case LiteralValue() | ParameterValue():
            return constant_column(expression, context.parameters, rows.size)
        case _:
            return rankings[expression].scores(rows)  # type: ignore[index]


def entities(context: QueryContext, table_key: str, slots: SlotArray) -> Values:
    """Return whole entities: id, for edges both ends, and all properties except blobs by name."""
    fields = list(entity_type(context.view.catalog, table_key))
    columns = context.view.columns(table_key, [field.name for field in fields], slots)
    return pa.StructArray.from_arrays(columns, fields=fields)
