"""The first version of a dataset: exactly one creator wins.

`write_dataset(mode="create")` is not used: of two that run at once the later one silently overwrites the
first one's rows.
"""

import uuid

import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from omnigraph.core.errors import AlreadyExistsError, StorageError
from omnigraph.storage.files.whole import check_lengths
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, classify, translate
from omnigraph.storage.tables.table import TableStore

DATA_STORAGE_VERSION = "2.2"


def create_dataset(store: TableStore, address: TableAddress, rows: pa.Table) -> int:
    """Create a dataset with its first rows in one commit; return its version.

    Raises:
        AlreadyExistsError: there is one, even if it was created at this very moment.
        StorageError: the store failed; kind `unknown` when it is not known whether the dataset was created.
    """
    transaction = Transaction(0, LanceOperation.Overwrite(rows.schema, []), str(uuid.uuid4()))
    try:
        fragments = write_fragments(
            rows,
            address.open_uri,
            schema=rows.schema,
            mode="create",
            storage_options=store.storage_options,
            data_storage_version=DATA_STORAGE_VERSION,
            enable_stable_row_ids=True,
        )
        assert isinstance(fragments, list)
        if address.local_path is not None:
            check_lengths(address.local_path, fragments)
        transaction.operation = LanceOperation.Overwrite(rows.schema, fragments)
        return commit_first_version(store, address, transaction).version
    except LANCE_ERRORS as error:
        if classify(error) == "exists":
            raise AlreadyExistsError(f"{address.open_uri} exists") from error
        return _after_failure(store, address, transaction.uuid, error)


def commit_first_version(store: TableStore, address: TableAddress, transaction: Transaction) -> LanceDataset:
    """Commit onto nothing, by the physical rules of every dataset; raises what the library raises."""
    return LanceDataset.commit(
        address.open_uri,
        transaction,
        max_retries=0,
        storage_options=store.storage_options,
        enable_stable_row_ids=True,
        enable_v2_manifest_paths=True,
    )


def _after_failure(store: TableStore, address: TableAddress, ours: str, error: Exception) -> int:
    """Find out what became of a creation that raised: a loser of the race gets no clean error either."""
    what = f"create {address.open_uri}"
    try:
        found = store.transaction_info(address, 1).uuid
    except StorageError as missing:
        if missing.kind == "not_found":
            raise translate(error, what) from error
        raise StorageError(f"{what} failed, outcome unknown: {missing}", kind="unknown") from error
    if found == ours:
        return 1
    raise AlreadyExistsError(f"{address.open_uri} exists") from error
