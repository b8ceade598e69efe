"""Defaults as stored values: what a row gets for a property that it does not mention.

D1  A default is for what a row leaves unsaid. A null that is said stays null, and is refused where the
    property is required.
D2  A default that the schema accepted is a value of its column, and so is a fill.
"""

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Property
from omnigraph.core.arrays import Mask
from omnigraph.language.schema_ast import DefaultValue
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.columns import Column


def default_column(item: Property, count: int) -> Column:
    """Return the default of a property, as often as asked for; nulls where it has none (D2)."""
    return _stored(item.default, item).take(pa.array(np.zeros(count, dtype=np.int64)))


def _stored(value: DefaultValue | None, item: Property) -> Column:
    column, problems = coerce_column([value], item, item.name)
    assert not problems, f"the schema accepted a value that does not fit: {problems}"
    return column


def fill_unsaid(column: Column, item: Property, unsaid: Mask) -> Column:
    """Return a column with the default in those rows that do not mention the property (D1)."""
    if unsaid.all():
        return default_column(item, len(unsaid))
    # Chosen by position, which also works for lists: Arrow replaces no lists by a mask.
    places = np.where(unsaid, len(column), np.arange(len(column), dtype=np.int64))
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays([whole, default_column(item, 1)]).take(pa.array(places))


def stored_fill(item: Property) -> Column | None:
    """Return what rows have that are older than a property, as a column of one value; None is null."""
    return None if item.fill is None else _stored(item.fill, item)


def repeated(value: Column | None, type_: pa.DataType, count: int) -> Column:
    """Return one value as often as asked for; nulls without one."""
    one: Column = pa.array([None], type_) if value is None else value
    return one.take(pa.array(np.zeros(count, dtype=np.int64)))
