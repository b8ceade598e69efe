"""Where a fork finds the files that it shares with its sources: below its own table, whatever is stored.

The library writes the absolute path of every source into each version of a fork. A relative one it would look
up below the working directory of the process. A graph that was copied or moved therefore has versions that
lead to where it was, and there may be another graph by now.

K1  Shared files are looked for below the table that the fork is opened in. The stored path is never followed:
    a source without a name is the table itself, one with a name is the fork of that name beside it.
K2  Nothing on the disk is changed for it: the version is opened with the paths put right in memory. Files
    keep their checksums, a read-only copy can be read, and two mounts of one folder do not quarrel.
K3  What the library opens by itself has the stored paths: another version than the one it was given. Nothing
    that reads rows is asked of it across versions of a fork.
"""

from collections.abc import Iterator

from lance import LanceDataset
from lance.lance import _Session as Session

from omnigraph.core.errors import StorageError
from omnigraph.storage.files.version_file import check_ref, encode, fields, text
from omnigraph.storage.tables.handle import TableAddress, ref_path
from omnigraph.storage.tables.lance_errors import translated

_BASE, _NAME, _PATH = 18, 2, 4  # in the message of a version; in that of a base


def at_home(
    address: TableAddress,
    dataset: LanceDataset,
    *,
    storage_options: dict[str, str] | None,
    session: Session | None,
) -> LanceDataset:
    """Return a version that looks for shared files below its own table (K1); mostly the one that is given.

    Raises:
        StorageError: the version has parts that this build does not read.
        InvariantViolation: a source has a name that leads elsewhere.
    """
    if address.ref is None or not _has_strayed(address, dataset):
        return dataset
    what = f"open {address.open_uri}"
    with translated(what):
        return LanceDataset(
            address.open_uri,
            version=dataset.version,
            storage_options=storage_options,
            session=session,
            serialized_manifest=_put_right(address, memoryview(dataset._ds.serialized_manifest()), what),
        )


def _has_strayed(address: TableAddress, dataset: LanceDataset) -> bool:
    """Say whether a source is stored under another path than it has now."""
    with translated(f"read {address.open_uri}"):
        bases = dataset.base_paths().values()
    return any(base.path != _place(address, base.name) for base in bases)


def _place(address: TableAddress, name: str | None) -> str:
    """Return where a source of a fork is (K1)."""
    return ref_path(
        address.uri, None if name is None else check_ref(name, f"a version of {address.open_uri}")
    )


def _put_right(address: TableAddress, message: memoryview, what: str) -> bytes:
    """Return the message of a version with the paths of its sources as they are now (K2)."""
    if encode(fields(message)) != message:
        raise StorageError(f"{what}: the version has parts that this build does not read", kind="permanent")
    return encode(_with_places(address, message))


def _with_places(
    address: TableAddress, message: memoryview
) -> Iterator[tuple[int, int | bytes | memoryview]]:
    for number, value in fields(message):
        if number != _BASE or not isinstance(value, memoryview):
            yield number, value
            continue
        base = dict(fields(value))
        name = text(base[_NAME]) if _NAME in base else None
        yield number, encode((base | {_PATH: _place(address, name).encode()}).items())
