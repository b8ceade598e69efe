"""The audit of finished recoveries: a dataset that is only ever appended to."""

from typing import final

import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction

from omnigraph.core.errors import AlreadyExistsError, StorageError
from omnigraph.storage.tables import shapes
from omnigraph.storage.tables.create import create_dataset
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.staged import new_files
from omnigraph.storage.tables.table import TableStore


@final
class AuditTable:
    """Appends to and reads an audit dataset, which appears with its first rows."""

    def __init__(self, store: TableStore) -> None:
        """Take the store whose options are shared."""
        self._store = store

    def append(self, address: TableAddress, rows: pa.Table) -> None:
        """Add rows, which are permanent once this returns. Concurrent appends all land.

        Raises:
            StorageError: the store failed; whether the rows were added is unknown.
        """
        if not self._store.exists(address):
            try:
                create_dataset(self._store, address, rows)
            except AlreadyExistsError:
                pass  # another process has just created it: append to theirs
            else:
                return
        # Committed here: the audit is not published; a row of it counts as soon as it is there.
        dataset = self._store.open_unshared(address)
        new = shapes.write_rows(dataset, rows)
        new_files(address, dataset, new=new)  # none is cut off
        transaction = Transaction(dataset.version, LanceOperation.Append(new))
        with translated(f"append to {address.open_uri}"):
            LanceDataset.commit(dataset, transaction)

    def scan(self, address: TableAddress) -> pa.Table | None:
        """Return all rows, or `None` where nothing was ever audited.

        Raises:
            StorageError: the store failed.
        """
        try:
            return self._store.scan(self._store.open_head(address))
        except StorageError as error:
            if error.kind == "not_found" and not self._store.exists(address):
                return None
            raise
