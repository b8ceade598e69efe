"""The arrays that functions hand to each other, named by what is in them."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.integer[Any]]  # of any width, as callers have them
Floats: TypeAlias = npt.NDArray[np.float64]
Positions: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.int64]  # equal where the values they stand for are equal
RowIds: TypeAlias = npt.NDArray[np.int64]  # stable ids of rows in one table
SlotArray: TypeAlias = npt.NDArray[np.int32]
if TYPE_CHECKING:
    Values: TypeAlias = pa.Array[Any]
else:
    Values = pa.Array  # takes no type parameters at run time
