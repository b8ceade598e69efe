"""Defaults as stored values: what a row gets for a property that it does not mention.

D1  A default is for what a row leaves unsaid. A null that is said stays null, and is refused where the
    property is required.
D2  A default that the schema accepted is a value of its column.
"""

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Property
from omnigraph.core.arrays import Mask
from omnigraph.validate.coerce import coerce_column
from omnigraph.validate.columns import Column


def default_column(item: Property, count: int) -> Column:
    """Return the default of a property, as often as asked for; nulls where it has none (D2)."""
    column, problems = coerce_column([item.default], item, item.name)
    assert not problems, f"the schema accepted a default that does not fit: {problems}"
    return column.take(pa.array(np.zeros(count, dtype=np.int64)))


def fill_unsaid(column: Column, item: Property, unsaid: Mask) -> Column:
    """Return a column with the default in those rows that do not mention the property (D1)."""
    if unsaid.all():
        return default_column(item, len(unsaid))
    # Chosen by position, which also works for lists: Arrow replaces no lists by a mask.
    places = np.where(unsaid, len(column), np.arange(len(column), dtype=np.int64))
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays([whole, default_column(item, 1)]).take(pa.array(places))


def stored_default(item: Property) -> Column | None:
    """Return the default of a property as a column of one value; None if it has none."""
    return None if item.default is None else default_column(item, 1)


def repeated(value: Column | None, type_: pa.DataType, count: int) -> Column:
    """Return one value as often as asked for; nulls without one."""
    one: Column = pa.array([None], type_) if value is None else value
    return one.take(pa.array(np.zeros(count, dtype=np.int64)))
