"""Rows of one schema in the columns of another: how three states of a table are compared after changes of it.

S1  Properties are matched by their numbers. A property that a state does not have is null there, or has its
    fill: what the change of the schema that added it made of the rows that were there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from omnigraph.catalog.arrow_schema import arrow_schema
from omnigraph.catalog.reshape import EntityType, reshape
from omnigraph.storage.tables.pinned import PinnedTable
from omnigraph.validate.columns import Column
from omnigraph.validate.defaults import repeated, stored_fill

Shapes = Mapping[PinnedTable, "RowShape"]


NO_SHAPES: Shapes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns that rows get, each with the one it comes from, or the value that all rows have (S1)."""

    schema: pa.Schema
    columns: tuple[tuple[str | None, Column | None], ...]

    def of(self, rows: pa.Table) -> pa.Table:
        """Return rows in these columns."""
        arrays = [
            rows[source].cast(field.type)
            if source is not None
            else repeated(value, field.type, rows.num_rows)
            for (source, value), field in zip(self.columns, self.schema, strict=True)
        ]
        return pa.table(arrays, schema=self.schema)


def row_shape(old: EntityType, new: EntityType) -> RowShape | None:
    """Return how rows of a type become rows of what it is elsewhere; None if they are the same."""
    changed = reshape(old, new)
    if changed is None:
        return None
    schema = arrow_schema(new)
    origins = [changed.columns[name] for name in schema.names]
    return RowShape(
        schema,
        tuple(
            (
                origin.column,
                None
                if origin.column is not None or origin.property is None
                else stored_fill(origin.property),
            )
            for origin in origins
        ),
    )
