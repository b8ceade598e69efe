"""The order of rows: keys, ties, and the first few without sorting all.

O1  Null is smaller than every value, NaN greater: nulls come first when ascending, last when descending.
O2  Keys that decide nothing more are not read: a later key is asked only about the rows that still tie for a
    place among the first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import Ints, Values
from omnigraph.exec.operators.comparison import plain

FEW_TEXTS = 64  # up to this many texts, plain Python sorts faster than any library that it calls
CUT_FROM = 256  # below this many rows, sorting all is not worth avoiding
OrderCodes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key: its values for rows by position; asked for ascending positions, each once."""

    values: Callable[[Ints], Values | OrderCodes]
    descending: bool = False

    def codes(self, positions: Ints) -> list[OrderCodes]:
        """Return numbers that sort ascending as the key wants, the most significant first."""
        values = self.values(positions)
        codes = [values] if isinstance(values, np.ndarray) else sort_codes(values)
        return [_reversed(code) for code in codes] if self.descending else codes


def sorted_positions(size: int, keys: Sequence[SortKey], limit: int | None = None) -> Ints:
    """Return the positions of rows in order, the first `limit` of them."""
    if limit == 0:
        return np.empty(0, np.int64)
    positions: Ints = np.arange(size)
    if limit is not None and size > max(CUT_FROM, 4 * limit):
        positions = _first(positions, keys, limit)
    if len(positions) > 1:
        codes = [code for key in keys for code in key.codes(positions)]
        if codes:
            positions = positions[np.lexsort(codes[::-1])]
    return positions if limit is None else positions[:limit]


def _first(positions: Ints, keys: Sequence[SortKey], limit: int) -> Ints:
    """Return at least the first rows and a few more, by position (O2)."""
    sure: list[Ints] = []
    for key in keys:
        codes = key.codes(positions)
        while codes:
            code, *codes = codes
            wanted = limit - sum(len(part) for part in sure)
            last = np.partition(code, wanted - 1)[wanted - 1]
            ahead, level = code < last, code == last
            sure.append(positions[ahead])
            positions = positions[level]
            codes = [other[level] for other in codes]
            if len(positions) <= max(CUT_FROM, limit):
                return np.sort(np.concatenate((*sure, positions)))
    return np.sort(np.concatenate((*sure, positions)))


def sort_codes(column: Values) -> list[OrderCodes]:
    """Return numbers that sort as the values of a column do (O1)."""
    type_ = column.type
    if pa.types.is_dictionary(type_) or pa.types.is_string(type_):
        return _text_codes(column)
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return [list_codes(column)]
    known = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    numbers = _numbers(column)
    if np.issubdtype(numbers.dtype, np.floating):
        missing = np.isnan(numbers)
        if missing.any():
            level = missing.astype(np.int8) + np.int8(1)
            if known is not None:
                level[~known] = 0
            return [level, np.where(missing, 0.0, numbers)]
    return [numbers] if known is None else [known.astype(np.int8), numbers]


def list_codes(column: Values) -> npt.NDArray[np.int64]:
    """Return numbers that sort as lists do: item by item, a part before the whole; null is zero."""
    items = pc.list_flatten(column)
    parts = sort_codes(items) if len(items) else []
    ranks = list(zip(*(part.tolist() for part in parts), strict=True))
    lists: list[tuple[Any, ...] | None] = []
    start = 0
    for length in pc.list_value_length(column).to_pylist():
        lists.append(None if length is None else tuple(ranks[start : start + length]))
        start += length or 0
    order = {value: place for place, value in enumerate(sorted({v for v in lists if v is not None}), start=1)}
    return np.array([0 if value is None else order[value] for value in lists], np.int64)


def _numbers(column: Values) -> OrderCodes:
    """Return the numbers behind a column without nulls."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_date64(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_boolean(column.type):
        filled = column.fill_null(False) if column.null_count else column
        return filled.to_numpy(zero_copy_only=False).astype(np.int8)
    filled = column.fill_null(0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False)


def _text_codes(column: Values) -> list[OrderCodes]:
    if len(column) <= FEW_TEXTS:
        texts = plain(column).to_pylist()
        ranks = {text: rank for rank, text in enumerate(sorted({t for t in texts if t is not None}), start=1)}
        return [np.array([ranks.get(text, 0) for text in texts], np.int64)]
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    values = plain(encoded.dictionary)
    order = pc.sort_indices(values).to_numpy()
    rank = np.empty(len(values) + 1, np.int64)
    rank[order] = np.arange(1, len(values) + 1)
    rank[len(values)] = 0
    indices = encoded.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
    return [rank[indices.to_numpy(zero_copy_only=False)]]


def _reversed(code: OrderCodes) -> OrderCodes:
    if np.issubdtype(code.dtype, np.floating):
        return -code
    return ~code
