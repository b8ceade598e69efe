"""Files inside a table's folder that the library has no call for: read one, remove what nobody reads."""

import sys

from lance import LanceDataset

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.object_store import make_store
from omnigraph.storage.control.uri import split_address
from omnigraph.storage.files.version_file import TRANSACTIONS_DIR
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress


def read_file(dataset: LanceDataset, address: TableAddress, name: str) -> bytes:
    """Return a file of a table; the dataset gives the options of the store.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: it cannot be read, which says nothing about what is in it.
    """
    root = address.local_path
    try:
        if root is not None:
            return (root / name).read_bytes()
        return _read_object(dataset, address, name)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"cannot read {address.open_uri}/{name}: {error}", kind="unknown") from error


def remove_transactions(handle: SnapshotHandle, *, below: int) -> None:
    """Remove the copies of transactions that were prepared on versions of a table below one.

    A version file holds its own transaction, and nobody reads the copy beside it.

    Raises:
        StorageError: they cannot be listed or removed.
    """
    address = handle.address
    root = address.local_path
    try:
        if root is not None:
            for path in (root / TRANSACTIONS_DIR).glob("*.txn"):
                if _read_version(path.name) < below:
                    path.unlink(missing_ok=True)
        else:
            _remove_objects(handle._dataset, address, below)
    except OSError as error:
        what = f"cannot remove old transactions of {address.open_uri}"
        raise StorageError(f"{what}: {error}", kind="unknown") from error


def _read_version(name: str) -> int:
    """Return the version that the name of a transaction begins with; a name of another form stays."""
    number = name.partition("-")[0]
    return int(number) if number.isdecimal() else sys.maxsize


def _read_object(dataset: LanceDataset, address: TableAddress, name: str) -> bytes:
    import obstore
    from obstore.exceptions import BaseError

    scheme, bucket, prefix = split_address(address.open_uri)
    try:
        store = make_store(scheme, bucket, dataset.initial_storage_options or {})
        return bytes(obstore.get(store, f"{prefix}/{name}").bytes())
    except BaseError as error:
        raise StorageError(f"cannot read {address.open_uri}/{name}: {error}", kind="transient") from error


def _remove_objects(dataset: LanceDataset, address: TableAddress, below: int) -> None:
    import obstore
    from obstore.exceptions import BaseError

    scheme, bucket, prefix = split_address(address.open_uri)
    try:
        store = make_store(scheme, bucket, dataset.initial_storage_options or {})
        for found in obstore.list(store, f"{prefix}/{TRANSACTIONS_DIR}/"):
            old = [item["path"] for item in found if _read_version(item["path"].rpartition("/")[2]) < below]
            if old:
                obstore.delete(store, old)
    except BaseError as error:
        what = f"cannot remove old transactions of {address.open_uri}"
        raise StorageError(f"{what}: {error}", kind="transient") from error
