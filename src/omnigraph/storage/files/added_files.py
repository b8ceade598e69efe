"""The local files that a version of a dataset adds to another, for syncing what another process committed."""

from omnigraph.core.errors import StorageError
from omnigraph.storage.damage.quarantine import NEWEST_CHECKED_MAX
from omnigraph.storage.files.version_file import version_file_name
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.staged import content_files, files_added, version_files
from omnigraph.storage.tables.table import TableStore


def files_between(
    store: TableStore, address: TableAddress, *, older: int | None, newer: int
) -> tuple[str, ...]:
    """Return what a version adds to an older one; without an older one, the version's file and all it names.

    Raises:
        StorageError: a version cannot be read.
    """
    root = address.local_path
    if root is None:
        return ()
    after = store.open_at(address, newer)._dataset
    if older is None:
        return (*version_files(address, newer), *content_files(root, after))
    return files_added(address, store.open_at(address, older)._dataset, after)


def manifest_files(
    store: TableStore, address: TableAddress, *, synced: int | None, newest: int
) -> tuple[str, ...]:
    """Return what must be synced so that the newest version of a manifest, and each below it, is readable.

    Without a version that is known to be synced, that is all that the newest one names, and the version files
    that a read-write open looks at: an unreadable one under a readable one could not be moved aside.

    Raises:
        StorageError: the newest version cannot be read.
    """
    if address.local_path is None:
        return ()
    if synced is not None:
        try:
            return files_between(store, address, older=synced, newer=newest)
        except StorageError as error:
            if error.kind not in {"not_found", "permanent"}:
                raise
            # Trimmed or damaged since: begin as if nothing were known. The new version does not need it.
    older = range(max(1, newest - NEWEST_CHECKED_MAX), newest)
    versions = [str(address.local_path / version_file_name(number)) for number in older]
    return (*versions, *files_between(store, address, older=None, newer=newest))
