"""Which places of a fragment no longer show a row, read from its deletion file.

The library reads these files inside every scan and has no call that shows them. They come in two forms: an
Arrow file with one column of places, and a roaring bitmap in its portable format.
"""

import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.core.arrays import Positions
from omnigraph.core.errors import StorageError
from omnigraph.storage.files.dataset_file import read_file
from omnigraph.storage.files.roaring import bitmap_values
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress


def deleted_places(handle: SnapshotHandle, fragment: FragmentMetadata) -> Positions:
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
    except (ValueError, LookupError, pa.ArrowException) as error:
        raise StorageError(f"{address.open_uri}/{name} does not decode", kind="permanent") from error
    if len(places) != deletion.num_deleted_rows:
        raise StorageError(f"{address.open_uri}/{name} does not decode", kind="permanent")
    return places


def _listed(data: bytes) -> Positions:
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    return np.sort(table.column(0).to_numpy().astype(np.int64))
