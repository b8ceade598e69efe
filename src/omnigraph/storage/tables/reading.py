"""A read of a version that is held open, and what it means when a file is not there.

G1  Whoever removes versions removes the version file first. So if a read misses a file, and the version file
    is gone too, the version was removed since it was opened; if the version file is there, it is damage.
G2  Every read of the rows or indexes of a handle goes through here: no caller sees the library's own words
    about a missing file.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.core.errors import HistoricalVersionReclaimed, StorageError
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.lance_errors import damage_told, translated


@contextmanager
def reading(handle: SnapshotHandle, what: str) -> Iterator[None]:
    """Turn library errors of a read into ours (G2); `what` says what is read.

    Raises:
        HistoricalVersionReclaimed: the version was removed since it was opened (G1).
        GraphDamaged: a file of the version is gone or hollow.
        StorageError: the store failed.
    """
    try:
        with damage_told(handle.address, handle.version), translated(f"{what} of {handle.address.open_uri}"):
            yield
    except StorageError as error:
        if error.kind != "not_found" or _is_there(handle):
            raise
        place = "/".join(TableAddress(handle.address.uri).uri.rsplit("/", 2)[-2:])
        raise HistoricalVersionReclaimed(table_key=place, version=handle.version) from error


def _is_there(handle: SnapshotHandle) -> bool:
    """Say whether the version of a handle is still listed; the library looks, and remembers nothing."""
    with translated(f"versions of {handle.address.open_uri}"):
        return any(listed["version"] == handle.version for listed in handle._dataset.version_refs())
