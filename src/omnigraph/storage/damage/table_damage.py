"""Tables that cannot be read because a file of the wanted version is gone or hollow, on a local disk."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from omnigraph.core.damage import GraphDamaged
from omnigraph.core.errors import StorageError
from omnigraph.storage.damage.quarantine import VersionGone, version_damage
from omnigraph.storage.tables.handle import TableAddress

_REMEDY = (
    "put the file back from a copy; or go back to a version of the branch that does not need it with "
    "'omnigraph repair --to VERSION', which first says what would be lost"
)


@contextmanager
def damage_told(address: TableAddress, version: int) -> Iterator[None]:
    """Name the file if a version of a table cannot be read because one of its files is gone or hollow.

    Raises:
        GraphDamaged: a file of the version is gone or hollow.
        StorageError: whatever the block raised, where the files do not explain it.
    """
    try:
        yield
    except StorageError as error:
        folder = address.local_path
        is_explained = isinstance(error, GraphDamaged) or error.kind in {"transient", "configuration"}
        if folder is None or is_explained:
            raise
        found = None
        with suppress(StorageError):  # what cannot be read is not hollow: the first error says more
            found = _damage(folder, version)
        if found is None:
            raise
        dataset = _dataset(address, folder)
        raise GraphDamaged(
            file=f"{dataset}/{found[0]}",
            reason=found[1],
            dataset=dataset,
            versions=[version],
            remedy=_REMEDY,
        ) from error


def _damage(folder: Path, version: int) -> tuple[str, str] | None:
    try:
        return version_damage(folder, version)
    except VersionGone:
        return None  # there is no such version, or it was cleaned up: the error says so


def _dataset(address: TableAddress, folder: Path) -> str:
    """Return the path of a table inside its graph, which is two folders above every table."""
    table = TableAddress(address.uri).local_path
    return folder.name if table is None else str(folder.relative_to(table.parents[1]))
