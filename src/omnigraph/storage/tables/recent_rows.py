"""Rows of the newest small fragments of a table, kept in memory: a store is asked for every file by itself.

Y1  They are kept by the name of their data file. A file is written once under a fresh name, so its rows never
    change, whatever is committed later.
Y2  They stand for a fragment that consists of just that file, with as many rows and none deleted. Every other
    fragment is read from the store. So they may be missing, and are never wrong.
Y3  Rows that this process writes are kept as it wrote them: no file is read to learn what was just put there.
"""

import base64
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceFragment
from lance.fragment import FragmentMetadata, RowIdSequence

from omnigraph.storage.files.data_file import data_file_name

ROWS_MAX = 64  # of a fragment that is kept
BYTES_MAX = 131_072  # of the rows kept for one table
FILES_MAX = 64  # fragments that are kept; a commit adds one, and after as many a table is folded
_ADDRESS = "_rowaddr"
_SPECIAL = ("_rowid", _ADDRESS)
RecentFiles = Mapping[str, pa.Table]


def small_file(fragment: LanceFragment) -> str | None:
    """Return the one data file of a small fragment without deletions; `None` for any other fragment (Y2)."""
    return _only_file(fragment.metadata)


def _only_file(metadata: FragmentMetadata) -> str | None:
    if metadata.deletion_file is not None or len(metadata.files) != 1 or metadata.physical_rows > ROWS_MAX:
        return None
    file = metadata.files[0]
    return None if file.base_id is not None else data_file_name(file)


def numbered(dataset: LanceDataset, files: RecentFiles) -> dict[int, pa.Table]:
    """Return the rows of the fragments that are kept, by fragment, with row ids and addresses."""
    found: dict[int, pa.Table] = {}
    for fragment in dataset.get_fragments() if files else ():
        path = small_file(fragment)
        rows = None if path is None else files.get(path)
        row_ids = None if rows is None else _row_ids(fragment)
        if rows is None or row_ids is None or not len(row_ids) == rows.num_rows == fragment.physical_rows:
            continue
        if rows.schema != dataset.schema:  # a column was added, or somebody else wrote the note
            continue
        addresses = (np.uint64(fragment.fragment_id) << np.uint64(32)) + np.arange(
            len(row_ids), dtype=np.uint64
        )
        for name, numbers in zip(_SPECIAL, (row_ids, addresses), strict=True):
            rows = rows.append_column(name, pa.array(numbers, pa.uint64()))
        found[fragment.fragment_id] = rows
    return found


def _row_ids(fragment: LanceFragment) -> "np.ndarray[Any, np.dtype[np.uint64]] | None":
    meta = fragment.metadata.row_id_meta
    if meta is None:
        return None
    try:
        sequence = RowIdSequence.from_inline_metadata(meta)
    except (ValueError, OSError, NotImplementedError):  # kept in a file of its own
        return None
    return sequence.to_pyarrow().to_numpy().astype(np.uint64)


def as_written(written: Sequence[FragmentMetadata], rows: pa.Table) -> dict[str, pa.Table]:
    """Return rows that were written just now, by their data file; none if that is not one small file (Y3)."""
    path = _only_file(written[0]) if len(written) == 1 else None
    # A copy: a few rows of a large table would hold all of its memory.
    return {} if path is None else {path: rows.take(np.arange(rows.num_rows))}


def refreshed(
    dataset: LanceDataset, files: RecentFiles, written: RecentFiles | None = None
) -> dict[str, pa.Table]:
    """Return what to keep of a version: what is known of its small fragments, and newer ones.

    Those that this process wrote are known from there (Y3), others are read now.
    """
    ours = written or {}
    small = {path: part for part in dataset.get_fragments() if (path := small_file(part)) is not None}
    newest = max((part.fragment_id for path, part in small.items() if path in files), default=-1)
    newer = [path for path, part in small.items() if part.fragment_id > newest and path not in ours]
    known = {**files, **ours, **_read(dataset, {path: small[path] for path in newer[-FILES_MAX:]})}
    fitting = {path: known[path] for path in small if path in known and known[path].schema == dataset.schema}
    return newest_files(fitting)


def newest_files(files: RecentFiles) -> dict[str, pa.Table]:
    """Return as many files as may be kept for one table, from the last of them on."""
    kept: dict[str, pa.Table] = {}
    size = 0
    for path, rows in reversed(list(files.items())):
        size += rows.nbytes
        if size > BYTES_MAX or len(kept) == FILES_MAX:
            break
        kept[path] = rows
    return dict(reversed(kept.items()))


def _read(dataset: LanceDataset, parts: Mapping[str, LanceFragment]) -> dict[str, pa.Table]:
    """Return all rows of some fragments, in the order in which each holds them."""
    if not parts:
        return {}
    scanner = dataset.scanner(fragments=list(parts.values()), with_row_address=True)
    rows = scanner.to_table().sort_by(_ADDRESS)
    holders = rows[_ADDRESS].to_numpy() >> np.uint64(32)
    columns = rows.select(dataset.schema.names)
    return {path: columns.filter(pa.array(holders == part.fragment_id)) for path, part in parts.items()}


def to_document(files: RecentFiles) -> dict[str, Any]:
    """Return kept rows as a document; all files have one schema."""
    tables = list(files.values())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tables[0].schema) as stream:
        stream.write_table(pa.concat_tables(tables).combine_chunks())
    names = [[path, rows.num_rows] for path, rows in files.items()]
    return {"files": names, "rows": base64.b64encode(sink.getvalue()).decode()}


def from_document(document: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Read what `to_document` made.

    Raises:
        ValueError, TypeError, LookupError, struct.error: the document is another one.
    """
    content = base64.b64decode(document["rows"], validate=True)
    try:
        _refuse_packed(content)
        with pa.ipc.open_stream(content) as stream:
            rows = stream.read_all()
        rows.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        raise ValueError("the rows are damaged") from error
    files: dict[str, pa.Table] = {}
    start = 0
    for path, count in document["files"]:
        if type(count) is not int or not 0 <= count <= ROWS_MAX:
            raise ValueError("a file has another number of rows")
        files[str(path)] = rows.slice(start, count)
        start += count
    if start != rows.num_rows:
        raise ValueError("files and rows do not go together")
    return files


def _refuse_packed(content: bytes) -> None:
    """Refuse a stream with compressed parts: a few of its bytes may stand for any number of bytes in memory.

    The library unpacks them unasked, so its description of each part is looked at before: a table whose entry
    2 is the description of a batch, the entry 3 of which says how it is compressed.

    Raises:
        ValueError, struct.error, OSError, pa.ArrowException: it has such parts, or is no stream.
    """
    for message in pa.ipc.MessageReader.open_stream(content):
        if message.type == "schema":
            continue
        metadata = message.metadata.to_pybytes()
        batch = (
            _entry(metadata, struct.unpack_from("<I", metadata)[0], 2)
            if message.type == "record batch"
            else 0
        )
        if not batch or _entry(metadata, batch, 3):
            raise ValueError("the rows are packed, or no rows")


def _entry(data: bytes, table: int, number: int) -> int:
    """Return where the value of an entry of a FlatBuffers table lies; 0 without one."""
    index = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, index)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", data, index + place)[0] if place + 2 <= size else 0
    at = table + offset
    return at + struct.unpack_from("<I", data, at)[0] if offset else 0


def in_order(tables: Iterable[pa.Table], row_ids: "Sequence[int]", columns: Sequence[str]) -> pa.Table:
    """Return the rows of some row ids, in their order, from tables that have them all."""
    together = pa.concat_tables([table.select([*columns, "_rowid"]) for table in tables])
    place = {row_id: at for at, row_id in enumerate(together["_rowid"].to_pylist())}
    return together.select(list(columns)).take(pa.array([place[row_id] for row_id in row_ids], pa.int64()))
