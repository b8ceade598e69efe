"""Where a table lives, and one version of it held open."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.storage.tables.recent_rows import RecentFiles, numbered


def ref_path(dataset: str, ref: str | None) -> str:
    """Return the path of a ref of a dataset; `None` is the dataset itself."""
    return dataset if ref is None else f"{dataset}/tree/{ref}"


def ref_file(dataset: str, ref: str) -> str:
    """Return the path of the file by which a dataset lists a ref."""
    return f"{dataset}/_refs/branches/{quote(ref, safe='')}.json"


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A Lance dataset, or one ref of it."""

    uri: str
    ref: str | None = None

    @property
    def open_uri(self) -> str:
        """The place to open: a ref has its own, below the table's."""
        return ref_path(self.uri, self.ref)

    @property
    def local_path(self) -> Path | None:
        """The directory of `open_uri`, or `None` on an object store."""
        return _local_path(self.open_uri)


@lru_cache(maxsize=1_024)  # a commit asks for the same few some twenty times
def _local_path(uri: str) -> Path | None:
    if uri.startswith("file:"):
        return Path(unquote(urlsplit(uri).path))
    return None if "://" in uri else Path(uri)


@dataclass(frozen=True, eq=False)
class SnapshotHandle:
    """One version of a table, held open; a `PinnedTable` is only its place.

    Opaque: what it holds open stays inside `storage`.
    """

    address: TableAddress
    version: int
    _dataset: LanceDataset = field(repr=False)
    _recent_files: RecentFiles = field(default_factory=dict, repr=False)

    @cached_property
    def recent(self) -> dict[int, pa.Table]:
        """The fragments whose rows are in memory, with row ids and addresses; none on a local disk."""
        return numbered(self._dataset, self._recent_files)

    @cached_property
    def row_count(self) -> int:
        """How many rows the version has; read from its metadata."""
        return self._dataset.count_rows()

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema with its metadata."""
        from omnigraph.storage.tables.lance_errors import translated

        with translated(f"schema of {self.address.open_uri}"):
            return self._dataset.schema

    @cached_property
    def fragment_count(self) -> int:
        """How many fragments hold the rows."""
        return len(self._dataset.get_fragments())

    @cached_property
    def fragments(self) -> dict[int, FragmentMetadata]:
        """What the version says of its fragments, by number; nobody changes these."""
        return {item.fragment_id: item.metadata for item in self._dataset.get_fragments()}

    @cached_property
    def transaction_uuid(self) -> str | None:
        """The uuid of the transaction that made the version, or `None` where it cannot be read."""
        from omnigraph.storage.files.transactions import read_transaction, uuid_in_memory

        # A disk is asked, and says whether the version is there; a store would take a request for it.
        known = uuid_in_memory(self._dataset) if self.address.local_path is None else None
        if known is not None:
            return known
        return read_transaction(self._own_dataset(), self.address, self.version).uuid

    def _own_dataset(self) -> LanceDataset:
        """Return the dataset for a call that wants it for itself.

        Reading a transaction and building an index borrow a dataset exclusively: while they run, every other
        call on the same object fails, in any thread.

        Raises:
            StorageError: the version was removed since it was opened (kind `not_found`).
        """
        from omnigraph.storage.tables.lance_errors import translated

        with translated(f"another look at {self.address.open_uri}"):
            return self._dataset.checkout_version(self.version)
