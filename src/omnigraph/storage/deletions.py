"""Which places of a fragment show no row any more, read from its deletion file.

The library reads these files inside every scan and has no call that shows them. They come in two forms: an
Arrow file with one column of places, and a roaring bitmap in its portable format.
"""

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.core.errors import StorageError
from omnigraph.storage.dataset_file import read_file
from omnigraph.storage.handle import SnapshotHandle, TableAddress

Places = npt.NDArray[np.int64]

_COOKIE, _COOKIE_WITH_RUNS = 12346, 12347
_ARRAY_MAX = 4096  # values of a container that are listed; more are a bitmap of 65,536 bits
_OFFSETS_FROM = 4  # containers from which a bitmap with runs also lists where each begins


def deleted_places(handle: SnapshotHandle, fragment: FragmentMetadata) -> Places:
    """Return the places of a fragment whose rows are deleted, ascending.

    Raises:
        StorageError: the deletion file cannot be read.
    """
    deletion = fragment.deletion_file
    if deletion is None:
        return np.empty(0, np.int64)
    address = handle.address
    if deletion.base_id is not None:  # a fork reads what its parent wrote, where the parent wrote it
        address = TableAddress(handle._dataset.base_paths()[deletion.base_id].path)
    name = deletion.path(fragment.id)
    try:
        data = read_file(handle._dataset, address, name)
        places = _listed(data) if deletion.file_type == "array" else bitmap_values(data)
    except FileNotFoundError as error:
        raise StorageError(f"{address.open_uri}/{name} is missing", kind="not_found") from error
    except (ValueError, LookupError, struct.error, pa.ArrowException) as error:
        raise StorageError(f"{address.open_uri}/{name} does not decode", kind="permanent") from error
    if len(places) != deletion.num_deleted_rows:
        raise StorageError(f"{address.open_uri}/{name} does not decode", kind="permanent")
    return places


def _listed(data: bytes) -> Places:
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    return np.sort(table.column(0).to_numpy().astype(np.int64))


def bitmap_values(data: bytes) -> Places:
    """Return the values of a roaring bitmap, ascending.

    Raises:
        ValueError: these are not the bytes of one.
        struct.error: they are cut off.
    """
    (head,) = struct.unpack_from("<I", data)
    if head & 0xFFFF == _COOKIE_WITH_RUNS:
        count, at = (head >> 16) + 1, 4
        flags = np.unpackbits(np.frombuffer(data, np.uint8, (count + 7) // 8, at), bitorder="little")
        at += (count + 7) // 8
    elif head == _COOKIE:
        (count,), at = struct.unpack_from("<I", data, 4), 8
        flags = np.zeros(count, np.uint8)
    else:
        raise ValueError("not a bitmap")
    heads = np.frombuffer(data, "<u2", 2 * count, at).astype(np.int64).reshape(-1, 2)
    at += 4 * count
    if head == _COOKIE or count >= _OFFSETS_FROM:
        at += 4 * count
    parts = []
    for (high, last), is_run in zip(heads.tolist(), flags.tolist(), strict=False):
        values, at = _container(data, at, cardinality=last + 1, is_run=bool(is_run))
        parts.append((high << 16) + values)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _container(data: bytes, at: int, *, cardinality: int, is_run: bool) -> tuple[Places, int]:
    if is_run:
        (count,) = struct.unpack_from("<H", data, at)
        runs = np.frombuffer(data, "<u2", 2 * count, at + 2).astype(np.int64).reshape(-1, 2)
        values = np.concatenate([np.arange(start, start + length + 1) for start, length in runs.tolist()])
        return values, at + 2 + 4 * count
    if cardinality <= _ARRAY_MAX:
        listed = np.frombuffer(data, "<u2", cardinality, at).astype(np.int64)
        return listed, at + 2 * cardinality
    bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, at), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), at + 8192
