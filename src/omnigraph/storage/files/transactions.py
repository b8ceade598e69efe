"""Which transaction made a version of a table.

Lance answers for most versions. It cannot show a rewrite that remapped an index, and shows a reserve without
a name; for those two the transaction is read from the version file, which holds it. It is protobuf: the few
fields needed here are found by their numbers, everything else is skipped.
"""

import struct
from dataclasses import dataclass, field

from lance import LanceDataset, LanceOperation

from omnigraph.storage.files.dataset_file import read_file
from omnigraph.storage.files.version_file import (
    HollowContent,
    decode_version,
    fields,
    text,
    transaction_message,
    version_file_name,
)
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.lance_errors import classify, translate

UNREADABLE = "unreadable"
ROLLBACK = "rollback"  # the strict inverse of earlier commits, by what it says of itself

_OPERATION_BY_CLASS = {
    LanceOperation.Append: "append",
    LanceOperation.Delete: "delete",
    LanceOperation.Overwrite: "overwrite",
    LanceOperation.CreateIndex: "create_index",
    LanceOperation.Rewrite: "rewrite",
    LanceOperation.Merge: "merge",
    LanceOperation.Restore: "restore",
    LanceOperation.Update: "update",
    LanceOperation.Project: "project",
    LanceOperation.UpdateConfig: "config",
    LanceOperation.Clone: "clone",
}
_OPERATION_BY_TAG = {
    100: "append",
    101: "delete",
    102: "overwrite",
    103: "create_index",
    104: "rewrite",
    105: "merge",
    106: "restore",
    107: "reserve",
    108: "update",
    109: "project",
    110: "config",
    113: "clone",
}

_TRANSACTION_READ_VERSION, _TRANSACTION_UUID, _TRANSACTION_PROPERTIES = 1, 2, 4
_MANIFEST_TRANSACTION_FILE = 12


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """What is recorded about the commit of one version; `unreadable` where the operation is unknown."""

    version: int
    uuid: str | None
    read_version: int | None
    operation: str
    properties: dict[str, str] = field(default_factory=dict)


def read_transaction(dataset: LanceDataset, address: TableAddress, version: int) -> TransactionInfo:
    """Return what made a version, as far as it is known.

    Raises:
        StorageError: the version does not exist (kind `not_found`), or the store failed.
    """
    try:
        found = dataset.read_transaction(version)
    except TypeError:  # the library cannot construct its own value for a rewrite that remapped an index
        return _from_file(dataset, address, version)
    except (OSError, ValueError) as error:
        if classify(error) == "not_found":
            raise translate(error, f"transaction of version {version} of {address.open_uri}") from error
        return _from_file(dataset, address, version)
    if found is None:
        return _from_file(dataset, address, version)
    operation = _OPERATION_BY_CLASS.get(type(found.operation))
    if isinstance(found.operation, LanceOperation.Delete) and found.operation.predicate == ROLLBACK:
        operation = ROLLBACK  # it may bring rows back, unlike a deletion
    if operation is None:
        return _from_file(dataset, address, version)
    properties = dict(found.transaction_properties or {})
    return TransactionInfo(version, found.uuid, found.read_version, operation, properties)


def uuid_in_memory(dataset: LanceDataset) -> str | None:
    """Return the uuid of the transaction that made an open version, from what the library holds of it.

    It is in the name of the transaction file, `<read version>-<uuid>.txn`. Nothing is read for it.
    """
    for number, value in fields(memoryview(dataset._ds.serialized_manifest())):
        if number == _MANIFEST_TRANSACTION_FILE:
            return text(value).partition("-")[2].removesuffix(".txn") or None
    return None


def _from_file(dataset: LanceDataset, address: TableAddress, version: int) -> TransactionInfo:
    try:
        content = read_file(dataset, address, version_file_name(version))
        message = transaction_message(memoryview(content))
        if message is None:  # earlier builds of the library kept the transaction beside the version
            name = decode_version(content, fragments_max=0).transaction_file
            message = None if name is None else memoryview(read_file(dataset, address, name))
        return (
            TransactionInfo(version, None, None, UNREADABLE) if message is None else _decode(message, version)
        )
    except (FileNotFoundError, HollowContent, ValueError, LookupError, struct.error):
        # A file that is missing or damaged: the operation is unknown, and callers treat the version as
        # another writer's.
        return TransactionInfo(version, None, None, UNREADABLE)


def _decode(message: memoryview, version: int) -> TransactionInfo:
    uuid, read_version, operation = None, 0, UNREADABLE  # protobuf leaves a zero out
    properties: dict[str, str] = {}
    for number, value in fields(message):
        if number == _TRANSACTION_READ_VERSION and isinstance(value, int):
            read_version = value
        elif number == _TRANSACTION_UUID:
            uuid = text(value)
        elif number == _TRANSACTION_PROPERTIES and isinstance(value, memoryview):
            entry = dict(fields(value))
            properties[text(entry[1])] = text(entry[2])
        elif number >= 100:
            operation = _OPERATION_BY_TAG.get(number, operation)
    return TransactionInfo(version, uuid, read_version, operation, properties)
