"""What versions of a table leave behind when they go: found by the library, removed by us.

X1  The library says which files only these versions name, and which no version names at all: it knows every
    kind of file. It is only asked. What it would remove by itself follows its own clock.
X2  Version files go first, and on a disk their removal is durable before anything else goes: a version that
    is listed is whole, whatever kills the process.
X3  A version that a ref starts from, or that has a tag, names its files for good: the library leaves it out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import normpath

from lance import LanceDataset

from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.storage.control.graph_files import GraphFiles
from omnigraph.storage.files.version_file import (
    TRANSACTIONS_DIR,
    VERSIONS_DIR,
    HollowContent,
    decode_version,
    version_file_name,
    version_of_file_name,
)
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import TableStore

_FILES_MAX = 1 << 40  # all of them
_FOLDERS = {
    "manifest": VERSIONS_DIR,
    "temporary_manifest": VERSIONS_DIR,  # a version that a killed writer had begun
    "transaction": TRANSACTIONS_DIR,
    "data": "data",
    "deletion": "_deletions",
    "index": "_indices",
}


@dataclass(frozen=True, slots=True)
class Reclaimable:
    """What could go from one table or ref: files by their paths below it, with their lengths.

    `versions` are those among the requested ones that nothing keeps; `named` are the other files that only
    they name; `loose` are files that no version names, whatever their age.
    """

    versions: Mapping[int, int]
    named: Mapping[str, int]
    loose: Mapping[str, int]


def find_reclaimable(store: TableStore, address: TableAddress, versions: Collection[int]) -> Reclaimable:
    """Ask the library what could go with some versions, and without any (X1, X3); nothing is removed.

    Raises:
        StorageError: a version cannot be read: what it names is unknown.
        InvariantViolation: the library names a file of a kind that is unknown here, or a version unasked.
    """
    dataset: LanceDataset = store.open_unshared(address)
    newest = [dataset.version]  # which is never removed: there must be a list, and nothing in it goes
    try:
        with translated(f"what cleanup could remove from {address.open_uri}"):
            going = _candidates(dataset, sorted(versions), with_loose=False) if versions else []
            everything = _candidates(dataset, sorted(versions) or newest, with_loose=True)
    finally:
        store.count_io(dataset)
    numbers: dict[int, int] = {}
    named: dict[str, int] = {}
    for path, size, is_loose in going:
        version = _version(path)
        if version is not None:
            numbers[version] = size
        elif not is_loose:
            named[path] = size
    if not numbers.keys() <= set(versions):
        raise InvariantViolation(f"{address.open_uri}: versions would go that nobody chose")
    loose = {path: size for path, size, _ in everything if path not in named and _version(path) is None}
    return Reclaimable(numbers, named, loose)


def named_deletions(files: GraphFiles, datasets: Mapping[str, Iterable[int]]) -> frozenset[str]:
    """Return the deletion files that versions name, by path below the root: own ones, and those of a source.

    The library tells of those that no version names only when they were made on a version that is gone.

    Raises:
        StorageError: a version cannot be read: what it names is unknown.
    """
    named: set[str] = set()
    for dataset, versions in datasets.items():
        for version in versions:
            path = f"{dataset}/{version_file_name(version)}"
            content = files.read(path)
            try:
                found = decode_version(content or b"")
            except HollowContent as hollow:
                raise StorageError(f"'{path}' cannot be read: {hollow}", kind="permanent") from hollow
            for file in (*found.files, *found.shared):
                if "_deletions/" in file.path:
                    named.add(normpath(f"{dataset}/{file.path}"))
    return frozenset(named)


def _candidates(
    dataset: LanceDataset, versions: Sequence[int], *, with_loose: bool
) -> list[tuple[str, int, bool]]:
    """Return files that could go, each with its length, and whether no version names it."""
    found = dataset.explain_cleanup_old_versions(
        versions=list(versions),
        error_if_tagged_old_versions=False,
        delete_unverified=with_loose,  # only asks: what is loose is judged by its age later
        include_files=True,
        max_files=_FILES_MAX,
    )
    return [
        (_inside(file.kind, file.path), int(file.size_bytes or 0), file.unverified)
        for file in found.candidate_files
    ]


def _version(path: str) -> int | None:
    folder, _, name = path.rpartition("/")
    return version_of_file_name(name) if folder == VERSIONS_DIR else None


def _inside(kind: str, path: str) -> str:
    """Return the path of a file below its table; the library gives that from the root of disk or bucket."""
    folder = _FOLDERS.get(kind)
    _, found, rest = path.rpartition(f"/{folder}/")
    if folder is None or not found:
        raise InvariantViolation(f"cleanup does not know files of the kind {kind!r}, such as {path[-120:]!r}")
    return f"{folder}/{rest}"
