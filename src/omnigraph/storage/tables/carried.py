"""The row ids that new fragments carry over from the rows they replace: in the version, or in a file.

C1  Rows that replace others are written in the order of their row ids, so that neighbours become ranges.
C2  Each commit writes every sequence of the version anew. So only short ones stay in the version; a longer
    one becomes a hidden column of one more data file of its fragment.
C3  Such a fragment carries an id for each of its rows: rows without one are written beside it.
C4  With row ids in a file, the library takes the versions that created the rows from the writer. Row ids rise
    with these versions, so that in the order of row ids they are a few runs, which stay in the version.
C5  A compaction may put the hidden columns into the file of the rows, and the versions that changed the rows
    last besides. Where that file is left out, they are copied as they are, for every place.
"""

import json
import uuid
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter
from lance.fragment import DataFile, FragmentMetadata, RowDatasetVersionMeta, RowIdMeta, RowIdSequence

from omnigraph.core.errors import InvariantViolation
from omnigraph.core.limits import INLINE_ROW_IDS_BYTES_MAX
from omnigraph.storage.files.version_file import encode, fields
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.rows import CREATED_AT, ROW_ID, UPDATED_AT, read_rows, row_ids_of

RowNumbers: TypeAlias = npt.NDArray[np.uint64]

# The library reserves these field ids, and finds a file with them among those of the fragment.
_FIELD_IDS = {ROW_ID: -3, CREATED_AT: -4, UPDATED_AT: -5}
_RUNS, _SPAN, _VERSION, _RANGE, _START, _END = 1, 1, 2, 1, 1, 2  # of the message that holds created versions


def inline_bytes(row_ids: RowNumbers) -> int:
    """Return about how many bytes of a version ascending row ids take, in the best encoding for them."""
    span = int(row_ids[-1] - row_ids[0]) + 1 if len(row_ids) else 0
    width = 2 if span <= 1 << 16 else 4
    return min(width * len(row_ids), span // 8, 4 * (span - len(row_ids)))


def is_long(row_ids: RowNumbers) -> bool:
    """Say whether ascending row ids go into a file (C2)."""
    return inline_bytes(row_ids) > INLINE_ROW_IDS_BYTES_MAX


def carry_inline(fragment: FragmentMetadata, row_ids: RowNumbers) -> None:
    """Give the first rows of a new fragment the row ids of the rows that they replace."""
    fragment.row_id_meta = RowIdSequence(row_ids.tolist()).to_inline_metadata()


class RowIdFile:
    """A file for the row ids of one new fragment, with a path before it is written."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None) -> None:
        """Choose a name below a dataset."""
        self._uri, self._name = uri, f"{uuid.uuid4()}.lance"
        self._options = None if storage_options is None else dict(storage_options)

    @property
    def path(self) -> str:
        """Where it is, or will be."""
        return f"{self._uri}/data/{self._name}"

    def write(self, fragment: FragmentMetadata, row_ids: RowNumbers, created_at: RowNumbers) -> None:
        """Give all rows of the fragment row ids, with the versions that created the rows (C3, C4).

        Raises:
            StorageError: the store failed.
        """
        assert len(row_ids) == len(created_at) == fragment.physical_rows, "every row carries an id"
        (rows,) = fragment.files
        major, minor = rows.file_major_version, rows.file_minor_version
        runs = _encode_runs(created_at)
        columns = {ROW_ID: pa.array(row_ids)}
        if len(runs) > INLINE_ROW_IDS_BYTES_MAX:
            columns[CREATED_AT] = pa.array(created_at)
        schema = pa.schema([pa.field(name, pa.uint64(), nullable=False) for name in columns])
        with translated(f"write row ids of {self._uri}"):
            writer = LanceFileWriter(
                self.path, schema, version=f"{major}.{minor}", storage_options=self._options
            )
            writer.write_batch(pa.table(list(columns.values()), schema=schema))
            writer.close()
        numbers, places = [_FIELD_IDS[name] for name in columns], list(range(len(columns)))
        fragment.files.append(DataFile(self._name, numbers, places, major, minor, writer.size_bytes))
        created = json.dumps({"inline": list(runs)}) if CREATED_AT not in columns else '{"column": {}}'
        fragment.row_id_meta = RowIdMeta.from_json('"Column"')  # type: ignore[call-arg,misc] # its stub lacks `cls`
        fragment.created_at_version_meta = RowDatasetVersionMeta.from_json(created)


def copy_hidden(handle: SnapshotHandle, file: DataFile) -> DataFile | None:
    """Write the hidden columns of a data file to a file of their own (C5); `None` if it has none.

    Raises:
        StorageError: the store failed.
        InvariantViolation: it has one that nobody here knows.
    """
    numbers = [number for number in file.fields if number < 0]
    if not numbers:
        return None
    names = {number: name for name, number in _FIELD_IDS.items()}
    if not names.keys() >= set(numbers):
        raise InvariantViolation(f"{handle.address.open_uri}: {file.path} has unknown columns {numbers}")
    dataset, uri = handle._dataset, handle.address.open_uri
    place = uri if file.base_id is None else dataset.base_paths()[file.base_id].path
    options = dataset.initial_storage_options
    wanted = [names[number] for number in numbers]
    made, major, minor = f"{uuid.uuid4()}.lance", file.file_major_version, file.file_minor_version
    with translated(f"copy row ids of {uri}"):
        reader = LanceFileReader(f"{place}/data/{file.path}", storage_options=options, columns=wanted)
        rows = reader.read_all().to_table().select(wanted)
        writer = LanceFileWriter(
            f"{uri}/data/{made}", rows.schema, version=f"{major}.{minor}", storage_options=options
        )
        writer.write_batch(rows)
        writer.close()
    return DataFile(made, numbers, list(range(len(numbers))), major, minor, writer.size_bytes)


def created_versions(handle: SnapshotHandle, row_ids: RowNumbers, addresses: RowNumbers) -> RowNumbers:
    """Return the versions that created rows, given by row ids and addresses in the same order.

    Most fragments say it in their metadata; the others are looked into.

    Raises:
        StorageError: the store failed.
    """
    numbers = addresses >> np.uint64(32)
    found = np.zeros(len(row_ids), np.uint64)
    others: list[int] = []
    for number in np.unique(numbers).tolist():
        fragment = handle._dataset.get_fragment(number)
        assert fragment is not None, "addresses come from a scan of this version"
        runs = decode_runs(fragment.metadata.created_at_version_meta)
        if runs is None:
            others.append(number)
            continue
        ends, versions = runs
        here = numbers == number
        offsets = addresses[here] & np.uint64(0xFFFFFFFF)
        found[here] = versions[np.searchsorted(ends, offsets, side="right")]
    if others:
        rows = read_rows(handle, [CREATED_AT], fragments=others)
        known = row_ids_of(rows).astype(np.uint64)
        order = np.argsort(known)
        wanted = np.isin(numbers, others)
        places = order[np.searchsorted(known, row_ids[wanted], sorter=order)]
        found[wanted] = row_ids_of(rows, CREATED_AT)[places]
    return found


def _encode_runs(versions: RowNumbers) -> bytes:
    """Return the versions of rows as the library writes them: each with the places that it holds for."""
    starts = np.flatnonzero(np.diff(versions, prepend=versions[0] + np.uint64(1))).tolist()
    message = b""
    for start, end in pairwise([*starts, len(versions)]):
        span = encode([(_RANGE, encode([(_START, start), (_END, end)]))])
        message += encode([(_RUNS, encode([(_SPAN, span), (_VERSION, int(versions[start]))]))])
    return message


def decode_runs(meta: RowDatasetVersionMeta | None) -> tuple[RowNumbers, RowNumbers] | None:
    """Return where runs end, and their versions; `None` where the metadata do not hold them.

    Only the lengths of runs count: after a compaction, places are those of the fragments before it.
    """
    held = None if meta is None else json.loads(meta.json()).get("inline")
    if held is None:
        return None
    lengths: list[int] = []
    versions: list[int] = []
    for _, run in fields(memoryview(bytes(held))):
        values = dict(fields(cast("memoryview", run)))
        spans = dict(fields(cast("memoryview", values[_SPAN])))
        if spans.keys() != {_RANGE}:
            return None
        places = {_START: 0} | dict(fields(cast("memoryview", spans[_RANGE])))
        lengths.append(cast("int", places[_END]) - cast("int", places[_START]))
        versions.append(cast("int", values[_VERSION]))
    return np.cumsum(lengths, dtype=np.uint64), np.array(versions, np.uint64)
