"""What staging hands to the commit, and what the commit hands back."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lance import LanceDataset, LanceOperation
from lance.dataset import Index
from lance.fragment import FragmentMetadata

from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.sums import FileSum
from omnigraph.storage.files.version_file import HollowContent, decode_version, version_file_name
from omnigraph.storage.files.whole import check_lengths
from omnigraph.storage.tables.handle import TableAddress
from omnigraph.storage.tables.known_ids import IdChange
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, translate


class _Once:
    """Lets one caller through; the library would apply some transactions a second time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used = False

    def take(self) -> bool:
        with self._lock:
            was_free, self._used = not self._used, True
        return was_free


@dataclass(frozen=True, eq=False)
class StagedWrite:
    """A write whose files are on disk and whose transaction is not visible yet; opaque.

    `rows_added` and `rows_removed` count ids that come and go; a replaced row is neither. `files` are the
    local files that staging wrote, for syncing; there are none on an object store. `others_files` are those
    that other processes wrote and synced, and `sums` their sums. `ids` are all that it brings and takes away,
    where they are few.
    """

    address: TableAddress
    read_version: int
    transaction_uuid: str
    kind: str
    rows_added: int
    rows_removed: int
    files: tuple[str, ...]
    _operation: LanceOperation.BaseOperation = field(repr=False)
    _base: LanceDataset | None = field(repr=False)  # none for a table that does not exist yet
    _once: _Once = field(default_factory=_Once, repr=False)
    sums: tuple[FileSum, ...] = ()
    ids: IdChange | None = None
    others_files: tuple[str, ...] = ()

    @property
    def commit_files(self) -> tuple[str, ...]:
        """The local files that make it visible: its version, which holds its transaction."""
        return version_files(self.address, self.read_version + 1)

    def _claim(self) -> None:
        """Take the only right to commit this write.

        Raises:
            InvariantViolation: it was already taken.
        """
        if not self._once.take():
            raise InvariantViolation(f"{self.kind} {self.transaction_uuid} was already handed to a commit")


@dataclass(frozen=True, slots=True)
class CommittedTable:
    """The version that a staged write became: an outcome, not a pinned table until a commit names it.

    `files` are those that make it visible, if local. `sums` are those of the other files it added,
    where they are already known.
    """

    address: TableAddress
    version: int
    row_count: int
    transaction_uuid: str
    files: tuple[str, ...]
    sums: tuple[FileSum, ...] = ()


def new_files(
    address: TableAddress,
    base: LanceDataset,
    *,
    new: Iterable[FragmentMetadata],
    updated: Iterable[FragmentMetadata] = (),
) -> tuple[str, ...]:
    """Return the local data and deletion files of fragments that the base version does not have.

    Raises:
        StorageError: a data file is not as long as it should be.
    """
    root = address.local_path
    if root is None:
        return ()
    new = list(new)
    check_lengths(root, new)
    written = [path for fragment in new for path in fragment_files(root, fragment)]
    for fragment in updated:
        before = base.get_fragment(fragment.id)
        known = fragment_files(root, before.metadata) if before is not None else []
        written += [path for path in fragment_files(root, fragment) if path not in known]
    return tuple(written)


def index_files(address: TableAddress, indexes: Iterable[Index]) -> tuple[str, ...]:
    """Return the local files of index segments."""
    root = address.local_path
    if root is None:
        return ()
    return tuple(
        str(root / "_indices" / index.uuid / file.path) for index in indexes for file in index.files or ()
    )


def version_files(address: TableAddress, version: int) -> tuple[str, ...]:
    """Return the local files that make a version visible: the version file, which holds its transaction."""
    root = address.local_path
    return () if root is None else (str(root / version_file_name(version)),)


def files_added(address: TableAddress, before: LanceDataset | None, after: LanceDataset) -> tuple[str, ...]:
    """Return the local files that a version has and an older one lacks: version, rows and index segments.

    Raises:
        StorageError: a version file cannot be read.
    """
    root = address.local_path
    if root is None:
        return ()
    first = 1 if before is None else before.version + 1
    made = [path for number in range(first, after.version + 1) for path in version_files(address, number)]
    if before is None:
        return (*made, *content_files(root, after))
    known = set(_row_files(root, before))
    rows = [path for path in _row_files(root, after) if path not in known]
    known_segments = set(_segments(before))
    segments = [name for name in _segments(after) if name not in known_segments]
    return (*made, *rows, *_segment_files(root, after.version, segments))


def content_files(root: Path, dataset: LanceDataset) -> list[str]:
    """Return the data, deletion and index files that a version names below its own place."""
    return [*_row_files(root, dataset), *_segment_files(root, dataset.version, _segments(dataset))]


def _row_files(root: Path, dataset: LanceDataset) -> list[str]:
    return [path for item in dataset.get_fragments() for path in fragment_files(root, item.metadata)]


def _segments(dataset: LanceDataset) -> list[str]:
    try:
        described = dataset.describe_indices()  # a long version file is read again for them
    except LANCE_ERRORS as error:
        raise translate(error, f"indexes of {dataset.uri}") from error
    return [str(segment.uuid) for item in described for segment in item.segments]


def _segment_files(root: Path, version: int, segments: list[str]) -> list[str]:
    """Return the files of index segments, which the library names only in the version file."""
    if not segments:
        return []
    try:
        decoded = decode_version((root / version_file_name(version)).read_bytes())
    except (OSError, HollowContent) as error:
        raise StorageError(f"version {version} of {root}: {error}", kind="unknown") from error
    prefixes = tuple(f"_indices/{name}/" for name in segments)
    return [f"{root}/{file.path}" for file in decoded.files if file.path.startswith(prefixes)]


def fragment_files(root: Path, fragment: FragmentMetadata) -> list[str]:
    """Return the data and deletion files of a fragment that are below a table's own place."""
    files = [f"{root}/data/{data_file_name(file)}" for file in fragment.files if file.base_id is None]
    deletion = fragment.deletion_file
    if deletion is not None and deletion.base_id is None:
        files.append(f"{root}/{deletion.path(fragment.id)}")
    return files
