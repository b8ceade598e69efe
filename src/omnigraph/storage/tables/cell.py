"""One value of a binary column: its length and parts of it, without holding all of it.

C1  A value that is stored as it is (`files/value_place.py`) is read in parts from its file. Any other is
    taken from the library as a whole, once, and parts are cut from that.
C2  A data file is written once, under a name that no other file has. So its name, with the field and the
    place of the row, names a content: equal names mean equal bytes, at any time and on any branch.
C3  Names from the metadata of a version become part of a path only if they lead to a file of the graph.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Protocol, cast

from lance.fragment import DataFile

from omnigraph.core.errors import StorageError
from omnigraph.storage.control.object_store import ObjectStore, make_store
from omnigraph.storage.control.uri import GraphRoot, split_address
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.value_place import FILE_VERSION, ValuePlace, find_value
from omnigraph.storage.files.version_file import check_relative_path
from omnigraph.storage.tables.handle import SnapshotHandle, TableAddress
from omnigraph.storage.tables.reading import reading
from omnigraph.storage.tables.rows import ROW_ADDRESS, ROW_ID, field_id, find_rows

_OFFSET_BITS = 32  # of an address: the place of the row in its fragment


class Cell(Protocol):
    """One value that is not null; reads raise as every read of its version does."""

    @property
    def length(self) -> int:
        """How many bytes it has."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another, both inside the value."""
        ...


@dataclass(frozen=True, slots=True)
class FoundCell:
    """A value of a row, or null; `name` stands for its content (C2)."""

    cell: Cell | None
    name: str


def find_cell(handle: SnapshotHandle, row_id: str, column: str) -> FoundCell | None:
    """Return the value of the row with an id; `None` if there is no such row.

    Raises:
        HistoricalVersionReclaimed: the version was removed since it was opened.
        GraphDamaged: a file of the version is gone or hollow.
        StorageError: the store failed.
    """
    with reading(handle, "lookup"):
        rows = find_rows(handle, ("id",), [(row_id,)], ["id"], with_row_id=True, with_row_address=True)
    if not rows.num_rows:
        return None
    address = cast("int", rows[ROW_ADDRESS][0].as_py())
    number, offset = address >> _OFFSET_BITS, address & (1 << _OFFSET_BITS) - 1
    field = field_id(handle, column)
    fragment = handle._dataset.get_fragment(number)
    assert fragment is not None, "the address is one of this version"
    file = next((file for file in fragment.metadata.files if field in file.fields), None)
    if file is None:  # a column that was added since has no file of its own here, and no values
        return FoundCell(None, "")
    name = sha256(f"{data_file_name(file)}\0{field}\0{offset}".encode()).hexdigest()[:32]
    known = _in_file(handle, file, field, offset)
    if known is not None:
        return FoundCell(None if known.place.is_null else known, name)
    row = cast("int", rows[ROW_ID][0].as_py())
    whole = _taken(handle, row, column)
    return FoundCell(None if whole is None else _Whole(whole), name)


@dataclass(frozen=True)
class _InFile:
    """A value in parts of a file (C1)."""

    handle: SnapshotHandle
    file: "_File"
    place: ValuePlace

    @property
    def length(self) -> int:
        return self.place.length

    def read(self, start: int, end: int) -> bytes:
        assert 0 <= start <= end <= self.length, "a part of the value"
        with reading(self.handle, "read of a value"):
            return self.file.read(self.place.start + start, self.place.start + end)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A value that the library has decoded (C1)."""

    value: bytes

    @property
    def length(self) -> int:
        return len(self.value)

    def read(self, start: int, end: int) -> bytes:
        return self.value[start:end]


def _in_file(handle: SnapshotHandle, file: DataFile, field: int, offset: int) -> _InFile | None:
    if (file.file_major_version, file.file_minor_version) != FILE_VERSION:
        return None
    uri = handle.address.open_uri
    bases = handle._dataset.base_paths()
    place = uri if file.base_id is None else bases[file.base_id].path
    name = check_relative_path(data_file_name(file), f"a version of {uri}")  # C3
    source = _File(TableAddress(place), f"data/{name}", handle._dataset.initial_storage_options or {})
    column = file.column_indices[file.fields.index(field)]
    with reading(handle, "read of a value"):
        found = find_value(source.read, source.length, column, offset)
    return None if found is None else _InFile(handle, source, found)


def _taken(handle: SnapshotHandle, row_id: int, column: str) -> bytes | None:
    with reading(handle, "read of a value"):
        rows = handle._dataset._take_rows([row_id], columns=[column])
    return cast("bytes | None", rows[column][0].as_py())


@dataclass(frozen=True)
class _File:
    """A file of a table on a disk or in a store, read in parts."""

    address: TableAddress
    name: str
    options: Mapping[str, str]

    @cached_property
    def length(self) -> int:
        path = self.address.local_path
        try:
            if path is not None:
                return (path / self.name).stat().st_size
            return self._length_in_store()
        except FileNotFoundError as error:
            raise self._missing() from error

    def read(self, start: int, end: int) -> bytes:
        """Return some bytes.

        Raises:
            StorageError: the file is gone (kind `not_found`), shorter than that, or cannot be read.
        """
        if start == end:
            return b""
        path = self.address.local_path
        try:
            found = self._from_disk(start, end) if path is not None else self._from_store(start, end)
        except FileNotFoundError as error:
            raise self._missing() from error
        if len(found) != end - start:
            raise StorageError(f"{self._told} ends before its byte {end}", kind="permanent")
        return found

    @property
    def _told(self) -> str:
        return f"{self.address.uri}/{self.name}"

    def _missing(self) -> StorageError:
        return StorageError(f"{self._told} is gone", kind="not_found")

    def _from_disk(self, start: int, end: int) -> bytes:
        assert self.address.local_path is not None
        with (self.address.local_path / self.name).open("rb", buffering=0) as file:
            parts = []
            while start < end and (part := os.pread(file.fileno(), end - start, start)):
                parts.append(part)
                start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @cached_property
    def _objects(self) -> tuple[ObjectStore, str]:
        """The store, asked for all parts over one client, and the name of the object in its bucket."""
        scheme, bucket, prefix = split_address(self.address.uri)
        root = GraphRoot(f"{scheme}://{bucket}", is_local=False)
        return ObjectStore(root, make_store(scheme, bucket, self.options)), f"{prefix}/{self.name}"

    def _from_store(self, start: int, end: int) -> bytes:
        store, name = self._objects
        return store.read_range(name, start, end)

    def _length_in_store(self) -> int:
        store, name = self._objects
        return store.length(name)
