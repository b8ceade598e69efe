"""Rows of one table rewritten in the order of a column: the edges of a node side by side.

K1  Nothing about a row changes: it keeps its row id, the version that created it and the one that changed it
    last. To queries, diffs and merges a clustered table is the table it was.
K2  The rewrite is staged, as one transaction of ours. Lance refuses it if a row of these fragments was
    changed meanwhile, and it refuses such a change. A commit beside them it lets pass: the version that comes
    out says so.
K3  What is sorted at a time fits into memory. Rows that do not fill a fragment wait for the next ones, so
    that one fragment at most is left short: a second run finds nothing to do.
K4  B-trees hold addresses, and the rewrite gives rows new ones: they no longer count the new fragments as
    covered, and are folded afterwards. A table with other indexes is compacted by the library instead.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from lance import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.core.limits import INLINE_ROW_IDS_BYTES_MAX, MAX_FRAGMENT_ROWS
from omnigraph.core.runs import runs
from omnigraph.storage.tables import carried, shapes
from omnigraph.storage.tables.carried import RowNumbers
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.rows import CREATED_AT, ROW_ID, UPDATED_AT, read_rows

SORTED_ROWS_MAX = 8 * MAX_FRAGMENT_ROWS  # rows sorted at a time: about 100 MB of edges without properties
SORTED_BYTES_MAX = 256 * 1024 * 1024  # the same in bytes of data files, for wide rows
_ROW_ID_BYTES = 8


def clustered(
    handle: SnapshotHandle,
    column: str,
    fragments: Sequence[int],
    storage_options: Mapping[str, str] | None,
) -> tuple[LanceOperation.BaseOperation, list[FragmentMetadata]]:
    """Write the rows of fragments anew, in the order of a column; return the operation and what is new.

    Raises:
        StorageError: the store failed.
    """
    chosen = set(fragments)
    with translated(f"fragments of {handle.address.open_uri}"):
        old = [part.metadata for part in handle._dataset.get_fragments() if part.fragment_id in chosen]
    new = [
        written
        for rows in _sorted_chunks(handle, column, old)
        for written in _written(handle, rows, storage_options)
    ]
    return LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, new)], []), new


def _sorted_chunks(
    handle: SnapshotHandle, column: str, fragments: Sequence[FragmentMetadata]
) -> Iterator[pa.Table]:
    """Yield the rows in chunks of whole fragments, each in order; only the last one may be short (K3)."""
    columns = [*handle.schema.names, CREATED_AT, UPDATED_AT]
    waiting: pa.Table | None = None
    rows_max = (lambda part: part.num_rows, SORTED_ROWS_MAX)
    bytes_max = (_size, SORTED_BYTES_MAX)
    for parts in runs(fragments, rows_max, bytes_max):
        rows = read_rows(handle, columns, fragments=[part.id for part in parts])
        if waiting is not None:
            rows = pa.concat_tables([waiting, rows])
        rows = rows.sort_by([(column, "ascending"), (ROW_ID, "ascending")])
        full = rows.num_rows - rows.num_rows % MAX_FRAGMENT_ROWS
        if full:
            yield rows.slice(0, full)
        waiting = rows.slice(full)
    if waiting is not None and waiting.num_rows:
        yield waiting


def _size(fragment: FragmentMetadata) -> int:
    """Return the bytes of the data files of a fragment; a file of unknown size counts as too large."""
    sizes = (file.file_size_bytes for file in fragment.files)
    return sum(SORTED_BYTES_MAX if size is None else size for size in sizes)


def _written(
    handle: SnapshotHandle, rows: pa.Table, storage_options: Mapping[str, str] | None
) -> list[FragmentMetadata]:
    """Write rows, with what the version says of each (K1)."""
    row_ids, created_at, updated_at = (
        rows[name].to_numpy().astype(np.uint64) for name in (ROW_ID, CREATED_AT, UPDATED_AT)
    )
    written = shapes.write_rows(handle._dataset, rows.select(handle.schema.names))
    start = 0
    for fragment in written:
        part = slice(start, start + fragment.physical_rows)
        start = part.stop
        if _is_long(row_ids[part]):
            file = carried.RowIdFile(handle.address.open_uri, storage_options)
            file.write(fragment, row_ids[part], created_at[part], updated_at[part])
        else:
            carried.move_inline(fragment, row_ids[part], created_at[part], updated_at[part])
    return written


def _is_long(row_ids: RowNumbers) -> bool:
    """Say whether row ids in any order go into a file."""
    return len(row_ids) * _ROW_ID_BYTES > INLINE_ROW_IDS_BYTES_MAX
