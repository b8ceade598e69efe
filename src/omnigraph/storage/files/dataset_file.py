"""The bytes of one file inside a table's folder, where the library has no call that reads it."""

from typing import TYPE_CHECKING, cast

from lance import LanceDataset

from omnigraph.core.errors import StorageError
from omnigraph.storage.tables.handle import TableAddress

if TYPE_CHECKING:
    from obstore.store import S3Config  # exists for type checkers only


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


def _read_object(dataset: LanceDataset, address: TableAddress, name: str) -> bytes:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    options = dict(dataset.initial_storage_options or {})
    # The library takes this option with the others; obstore wants it separately.
    allow_http = options.pop("allow_http", "false") == "true"
    config = cast("S3Config", options)
    bucket, _, prefix = address.open_uri.removeprefix("s3://").partition("/")
    try:
        store = S3Store(bucket, config=config, client_options={"allow_http": allow_http})
        return bytes(obstore.get(store, f"{prefix}/{name}").bytes())
    except BaseError as error:
        raise StorageError(f"cannot read {address.open_uri}/{name}: {error}", kind="transient") from error
