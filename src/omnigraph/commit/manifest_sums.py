"""The checksums of a manifest's own files: a publish records those of the versions before it.

A version cannot contain the checksum of the file it is stored in, so each publish looks one step back. Only
what the newest publish of a branch wrote is not recorded, for lack of a successor.
"""

from collections.abc import Callable

from omnigraph.core.errors import StorageError
from omnigraph.storage.files.added_files import added_by_publish, files_between
from omnigraph.storage.files.sums import FileSum, Summer
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.manifest_table import ManifestHandle
from omnigraph.storage.tables.table import TableStore


class ManifestSums:
    """What this process has published and is not recorded yet; used under the publish lock."""

    def __init__(self, store: TableStore, summer: Summer, warn: Callable[[str], None]) -> None:
        """Take what opens manifests, and what computes checksums."""
        self._store = store
        self._summer = summer
        self._warn = warn
        self._last: dict[TableAddress, tuple[int, tuple[FileSum, ...]]] = {}

    def remember(self, before: ManifestHandle, after: ManifestHandle) -> None:
        """Compute the checksums of what a publish wrote, while its files are as they were written."""
        if self._summer.is_active and after.version == before.version + 1:
            self._last[after.address] = (after.version, self._sum(lambda: added_by_publish(before, after)))

    def of_predecessor(self, handle: ManifestHandle, sequence: int) -> tuple[FileSum, ...]:
        """Return the checksums of everything since the publish numbered `sequence`, itself included.

        A manifest whose checksums cannot be computed is a warning: the publish itself reads what it needs and
        reports what it cannot.
        """
        if not self._summer.is_active:
            return ()
        version, sums = self._last.get(handle.address, (0, ()))
        if version == handle.version == sequence:
            return sums
        return self._sum(lambda: self._since(handle, sequence - 1))

    def _sum(self, files: Callable[[], tuple[str, ...]]) -> tuple[FileSum, ...]:
        try:
            return self._summer.sum(files())
        except StorageError as error:
            self._warn(f"checksums of the manifest are not recorded: {error}")
            return ()

    def _since(self, handle: ManifestHandle, older: int) -> tuple[str, ...]:
        """Return the files of the versions above one; of all versions if that one is gone.

        Transactions are left out: a version file holds its own, and the copy is never read.
        """
        newer = handle.version
        try:
            files = files_between(
                self._store, handle.address, older=older if older > 0 else None, newer=newer
            )
        except StorageError as error:
            if error.kind != "not_found":
                raise
            files = files_between(self._store, handle.address, older=None, newer=newer)
        return tuple(file for file in files if "/_transactions/" not in file)
