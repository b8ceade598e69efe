"""Tables as frames of pandas, where a null takes no digit of an integer.

Arrow's own conversion makes floats of integers beside a null, which are not exact from 2^53 on, and objects
of booleans. Pandas has dtypes for both; they are used where a null makes them necessary.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: pa.Table) -> "pd.DataFrame":
    """Return a frame with the columns of a table, in their order; names may repeat.

    Integers and booleans with a null have a nullable dtype; inside of entities and lists, they are Python's.
    """
    import pandas as pd  # late: most results never become a frame

    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
    }
    frame = table.to_pandas(integer_object_nulls=True)
    for place, column in enumerate(table.columns):
        if column.null_count and column.type in nullable:
            frame.isetitem(place, column.to_pandas(types_mapper=nullable.get).array)
    return frame
