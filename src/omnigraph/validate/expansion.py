"""How many bytes Arrow values take once each row has its own, counted before any of them is copied.

A few bytes can represent very many rows: nulls are just a count, a dictionary has each text once, a run has
one value and a length, views may all show the same text. Readers of such values copy them row by row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.errors import BadRequest

ROW_BYTES = 8  # of a row without any columns: its place in the file
NULL_BYTES = 4  # of a null, like the shortest text

Sizes = npt.NDArray[np.float64]  # bytes by entry: products of two of them must not overflow


@contextmanager
def within_memory(name: str) -> Iterator[None]:
    """Refuse an input that the process has no memory for.

    Raises:
        BadRequest: there is not enough memory.
    """
    try:
        yield
    except MemoryError as error:
        raise BadRequest(f"{name} takes more memory than there is: cut it into smaller inputs") from error


def expanded_bytes(table: pa.Table) -> int:
    """Return how many bytes sound rows take."""
    columns: Any = table.columns
    values = sum(_bytes(chunk) for column in columns for chunk in column.chunks)
    return int(table.num_rows * ROW_BYTES + values)


def longest_bytes(values: Any) -> float:  # noqa: ANN401 - any array of Arrow
    """Return the bytes of the longest entry."""
    return float(_sizes(values).max(initial=0.0))


def _bytes(array: Any) -> float:  # noqa: ANN401 - any array of Arrow
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        return _bytes(array.storage)
    if pa.types.is_null(type_):
        return float(len(array) * NULL_BYTES)
    if pa.types.is_dictionary(type_):
        return _dictionary_bytes(array)
    if pa.types.is_run_end_encoded(type_):
        return len(array) * longest_bytes(array.values)
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        return float(_view_sizes(array).sum()) + len(array) * NULL_BYTES
    if pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_):
        items = pc.sum(pc.list_value_length(array)).as_py() or 0
        return float(items) * longest_bytes(array.values)
    if _is_nested(type_) and not _is_simple(type_.value_type):
        return _bytes(array.values) + len(array) * NULL_BYTES
    return float(array.nbytes)


def _dictionary_bytes(array: Any) -> float:  # noqa: ANN401 - any array of Arrow
    indices = array.indices.drop_null().to_numpy(zero_copy_only=False)
    counts = np.bincount(indices.astype(np.int64), minlength=len(array.dictionary))
    return float(counts.astype(np.float64) @ _sizes(array.dictionary)) + len(array) * NULL_BYTES


def _sizes(values: Any) -> Sizes:  # noqa: ANN401 - any array of Arrow
    """Return the bytes of each entry."""
    type_ = values.type
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        return _view_sizes(values)
    if _is_text(type_):
        lengths = pc.binary_length(values).fill_null(0).to_numpy(zero_copy_only=False)
        return np.asarray(lengths, dtype=np.float64)
    return np.full(len(values), _bytes(values) if _is_nested(type_) else _bytes(values) / max(1, len(values)))


def _view_sizes(array: Any) -> Sizes:  # noqa: ANN401 - any array of Arrow
    """Return the lengths of texts, with which each view begins; Arrow has no function for it."""
    views = array.buffers()[1]
    if views is None or not len(array):
        return np.zeros(len(array))
    words = np.frombuffer(views, dtype="<i4", count=4 * (array.offset + len(array)))
    lengths = words[4 * array.offset :: 4].astype(np.float64)
    return np.where(np.asarray(array.is_valid()), np.maximum(lengths, 0), 0.0)


def _is_nested(type_: Any) -> bool:  # noqa: ANN401 - any type of Arrow
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)


def _is_simple(type_: Any) -> bool:  # noqa: ANN401 - any type of Arrow
    return pa.types.is_primitive(type_) or _is_text(type_)


def _is_text(type_: Any) -> bool:  # noqa: ANN401 - any type of Arrow
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return is_text or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
