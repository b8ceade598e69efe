"""Rows of the newest small fragments of a table, kept in memory: a store is asked for every file by itself.

Y1  They are kept by the name of their data file. A file is written once under a fresh name, so its rows never
    change, whatever is committed later.
Y2  They stand for a fragment that consists of just that file, with as many rows. Of one with deleted rows
    they are kept by the name of its deletion file as well, which is written once, too: those that are left,
    with their places. Every other fragment is read from the store. So they may be missing, and are never
    wrong.
Y3  Rows that this process writes are kept as it wrote them: no file is read to learn what was just put there.
Y4  They are values of columns with numbers, which a table never gives twice. A column that is dropped and
    made again has the same name and type and another number: its rows are read from the store, as nulls.
"""

import base64
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceFragment
from lance.fragment import FragmentMetadata, RowIdSequence

from omnigraph.storage.files.data_file import data_file_name, field_ids

FEW_ROWS = 64  # of a fragment that is kept whatever the size of its file
ROWS_MAX = 1_024  # of one with a small file
FILE_BYTES_MAX = 32_768
BYTES_MAX = 131_072  # of the rows kept for one table
FILES_MAX = 64  # fragments that are kept; a commit adds one, and after as many a table is folded
_ADDRESS = "_rowaddr"
_OFFSET = "@offset"  # of a row in its file, where others are deleted; no property has such a name
_DELETED = "@"  # before the name of a deletion file
_SPECIAL = ("_rowid", _ADDRESS)
_COLUMNS = b"columns"  # which metadata of the schema of kept rows has the numbers of their columns (Y4)
RecentFiles = Mapping[str, pa.Table]


def small_file(fragment: LanceFragment) -> str | None:
    """Return the one data file of a small fragment, with its deletion file; `None` for any other (Y2)."""
    path, deletion = _only_file(fragment.metadata), fragment.metadata.deletion_file
    if path is None or deletion is None:
        return path
    if deletion.base_id is not None or deletion.num_deleted_rows is None:
        return None
    return f"{path}{_DELETED}{deletion.read_version}-{deletion.id}"


def _only_file(metadata: FragmentMetadata) -> str | None:
    if len(metadata.files) != 1 or metadata.physical_rows > ROWS_MAX:
        return None
    file = metadata.files[0]
    size = file.file_size_bytes or FILE_BYTES_MAX + 1
    if file.base_id is not None or (metadata.physical_rows > FEW_ROWS and size > FILE_BYTES_MAX):
        return None
    return data_file_name(file)


def _rows_left(fragment: LanceFragment) -> int:
    deletion = fragment.metadata.deletion_file
    return fragment.metadata.physical_rows - (0 if deletion is None else int(deletion.num_deleted_rows or 0))


def _plain(rows: pa.Table) -> pa.Table:
    return rows.select([name for name in rows.column_names if name != _OFFSET])


def _offsets(rows: pa.Table) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    if _OFFSET not in rows.column_names:
        return np.arange(rows.num_rows, dtype=np.uint64)
    return rows[_OFFSET].to_numpy().astype(np.uint64)


def numbered(dataset: LanceDataset, files: RecentFiles) -> dict[int, pa.Table]:
    """Return the rows of the fragments that are kept, by fragment, with row ids and addresses."""
    found: dict[int, pa.Table] = {}
    columns = _column_numbers(dataset) if files else b""
    for fragment in dataset.get_fragments() if files else ():
        path = small_file(fragment)
        rows = None if path is None else files.get(path)
        row_ids = None if rows is None else _row_ids(fragment)
        if rows is None or row_ids is None or rows.num_rows != _rows_left(fragment):
            continue
        offsets, rows = _offsets(rows), _plain(rows)
        if not _fits(rows, dataset, columns):  # a column was added, or somebody else wrote the note
            continue
        rows = rows.replace_schema_metadata(dataset.schema.metadata)
        if len(row_ids) != fragment.physical_rows or not _are_places(offsets, len(row_ids)):
            continue
        addresses = (np.uint64(fragment.fragment_id) << np.uint64(32)) + offsets
        for name, numbers in zip(_SPECIAL, (row_ids[offsets], addresses), strict=True):
            rows = rows.append_column(name, pa.array(numbers, pa.uint64()))
        found[fragment.fragment_id] = rows
    return found


def _fits(rows: pa.Table, dataset: LanceDataset, columns: bytes) -> bool:
    """Return whether kept rows have the columns of a version, by name, type and number (Y4)."""
    return rows.schema == dataset.schema and (rows.schema.metadata or {}).get(_COLUMNS) == columns


def _column_numbers(dataset: LanceDataset) -> bytes:
    return ",".join(str(number) for number in field_ids(dataset.lance_schema.fields())).encode()


def _marked(rows: pa.Table, dataset: LanceDataset) -> pa.Table:
    return rows.replace_schema_metadata({_COLUMNS: _column_numbers(dataset)})


def _are_places(offsets: "np.ndarray[Any, np.dtype[np.uint64]]", count: int) -> bool:
    """Return whether they are places of a file, in its order, each once."""
    return not len(offsets) or (int(offsets[-1]) < count and bool((offsets[1:] > offsets[:-1]).all()))


def _row_ids(fragment: LanceFragment) -> "np.ndarray[Any, np.dtype[np.uint64]] | None":
    meta = fragment.metadata.row_id_meta
    if meta is None:
        return None
    try:
        sequence = RowIdSequence.from_inline_metadata(meta)
    except (ValueError, OSError, NotImplementedError):  # kept in a file of its own
        return None
    return sequence.to_pyarrow().to_numpy().astype(np.uint64)


def as_written(
    dataset: LanceDataset, written: Sequence[FragmentMetadata], rows: pa.Table
) -> dict[str, pa.Table]:
    """Return rows that were written just now, by their data file; none if that is not one small file (Y3)."""
    path = _only_file(written[0]) if len(written) == 1 else None
    # A copy: a few rows of a large table would hold all of its memory.
    return {} if path is None else {path: _marked(rows.take(np.arange(rows.num_rows)), dataset)}


def refreshed(
    dataset: LanceDataset, files: RecentFiles, written: RecentFiles | None = None
) -> dict[str, pa.Table]:
    """Return what to keep of a version: what is known of its small fragments, and newer ones.

    Those that this process wrote are known from there (Y3), others are read now.
    """
    ours = written or {}
    small = {path: part for part in dataset.get_fragments() if (path := small_file(part)) is not None}
    newest = max((part.fragment_id for path, part in small.items() if path in files), default=-1)
    known = {**files, **ours}
    before = {path.partition(_DELETED)[0] for path in known}  # of some of these, rows were deleted since
    newer = [
        path
        for path, part in small.items()
        if path not in known and (part.fragment_id > newest or path.partition(_DELETED)[0] in before)
    ]
    known |= _read(dataset, {path: small[path] for path in newer[-FILES_MAX:]})
    columns = _column_numbers(dataset)
    fitting = {
        path: known[path] for path in small if path in known and _fits(_plain(known[path]), dataset, columns)
    }
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
    addresses = rows[_ADDRESS].to_numpy()
    holders = addresses >> np.uint64(32)
    columns = _marked(rows.select(dataset.schema.names), dataset)
    offsets = pa.array((addresses & np.uint64(0xFFFFFFFF)).astype(np.uint32))
    placed = columns.append_column(_OFFSET, offsets)
    return {
        path: (placed if _DELETED in path else columns).filter(pa.array(holders == part.fragment_id))
        for path, part in parts.items()
    }


def to_document(files: RecentFiles) -> dict[str, Any]:
    """Return kept rows as a document; all files have one schema, some with places as well."""
    tables = list(files.values())
    if any(_OFFSET in rows.column_names for rows in tables):
        tables = [
            _plain(rows).append_column(_OFFSET, pa.array(_offsets(rows).astype(np.uint32))) for rows in tables
        ]
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
    if len(set(rows.column_names)) < rows.num_columns:
        raise ValueError("a column is there twice")
    if _OFFSET in rows.column_names and not _are_numbers(rows[_OFFSET]):
        raise ValueError("the places of rows are no numbers")
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


def _are_numbers(column: "pa.ChunkedArray[Any]") -> bool:
    return column.type == pa.uint32() and not column.null_count


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
