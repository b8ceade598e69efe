"""Rows of the newest publishes, kept in memory: a store is asked for every file of a manifest by itself.

K1  They are kept by the name of their data file, which is written once under a fresh name: its rows never
    change, whichever branch shows them.
K2  Of the rows of a manifest only heads, which have no `published_at`, are ever deleted. A file is kept if it
    has one at most. So how many rows a fragment has left says which ones, and no deletion file is read.
K3  Every other fragment is read from the store. So rows may be missing here, and are never wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceFragment

from omnigraph.core.recent import Recent
from omnigraph.storage.files.data_file import data_file_name

OFFSET = "_offset"  # of a row in its file, beside the columns of the manifest
ADDRESS = "_rowaddr"
ROWS_MAX = 64  # of a file that is kept: a publish has one for each table, and two more
FILE_BYTES_MAX = 16_384  # of its rows: a large schema is read from its file
FILES_MAX = 96  # in a note: somewhat more than a manifest has when it is folded
BYTES_MAX = 196_608  # of all rows in a note: every commit writes them again
KEPT_MAX = 1_024  # files that are kept, of all branches
_HEADS = "published_at"


@final
class RecentPublishes:
    """Rows of publishes by data file; safe to share between threads."""

    def __init__(self) -> None:
        """Keep nothing until it is switched on: a local disk is faster without."""
        self.is_on = False
        self._files: Recent[str, pa.Table] = Recent(KEPT_MAX)

    def keep(self, files: Mapping[str, pa.Table]) -> None:
        """Keep rows that another process has read or written."""
        for name, rows in files.items():
            if _are_rows(rows):
                self._keep(name, rows)

    def keep_written(self, name: str, rows: pa.Table) -> None:
        """Keep all rows of a file that was written just now."""
        if self.is_on:
            self._keep(name, _with_offsets(rows, np.arange(rows.num_rows)))

    def learn(self, fragments: Sequence[LanceFragment], rows: pa.Table) -> None:
        """Keep what was just read of some fragments: all of their rows, with addresses."""
        if _HEADS not in rows.column_names:
            return  # of a manifest of an earlier format
        addresses = rows[ADDRESS].to_numpy()
        holders, offsets = addresses >> np.uint64(32), addresses & np.uint64(0xFFFFFFFF)
        for fragment in fragments:
            name = _only_file(fragment)
            if name is None:
                continue
            inside = holders == fragment.fragment_id
            own = rows.filter(pa.array(inside))
            if _heads(own) + _deleted(fragment) <= 1 and own.num_rows + _deleted(fragment) == _rows(fragment):
                self._keep(name, _with_offsets(own, offsets[inside]))

    def rows_of(
        self, fragments: Sequence[LanceFragment], columns: Sequence[str], schema: pa.Schema
    ) -> dict[int, pa.Table]:
        """Return columns of the rows of those fragments that are kept, with addresses (K2)."""
        found: dict[int, pa.Table] = {}
        for fragment in fragments:
            name = _only_file(fragment)
            kept = None if name is None else self._files.get(name)
            left = None if kept is None else _left(fragment, kept)
            if left is None or not _fits(left, columns, schema):
                continue
            if left.num_rows and left[OFFSET][-1].as_py() >= _rows(fragment):
                continue  # somebody else wrote the note
            number = np.uint64(fragment.fragment_id) << np.uint64(32)
            addresses = number + left[OFFSET].to_numpy().astype(np.uint64)
            found[fragment.fragment_id] = left.select(list(columns)).append_column(
                ADDRESS, pa.array(addresses, pa.uint64())
            )
        return found

    def files_of(self, names: Iterable[str]) -> dict[str, pa.Table]:
        """Return what is kept of some files, given in their order, as much as a note takes of the last."""
        kept: dict[str, pa.Table] = {}
        size = 0
        for name in reversed(list(names)):
            rows = self._files.get(name)
            if rows is None or (kept and rows.schema != next(iter(kept.values())).schema):
                continue
            size += rows.nbytes
            if size > BYTES_MAX or len(kept) == FILES_MAX:
                break
            kept[name] = rows
        return dict(reversed(kept.items()))

    def _keep(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows <= ROWS_MAX and rows.nbytes <= FILE_BYTES_MAX and _heads(rows) <= 1:
            self._files.put(name, rows)


def _are_rows(rows: pa.Table) -> bool:
    """Return whether rows are some of a file, each at a place of its own and in order."""
    if not {OFFSET, _HEADS} <= set(rows.column_names) or len(set(rows.column_names)) < rows.num_columns:
        return False
    places = rows[OFFSET]
    if places.type != pa.uint32() or places.null_count:
        return False
    numbers = places.to_numpy()
    return bool((numbers[1:] > numbers[:-1]).all())


def kept_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that are kept: lists hold checksums, which only `verify` asks for."""
    return [field.name for field in schema if field.name != ADDRESS and not pa.types.is_list(field.type)]


def _with_offsets(rows: pa.Table, offsets: "np.ndarray[tuple[int], np.dtype[np.integer]]") -> pa.Table:
    chosen = rows.select(kept_columns(rows.schema)).replace_schema_metadata(None)
    # A copy: a few rows of a large table would hold all of its memory.
    return chosen.append_column(OFFSET, pa.array(offsets.astype(np.uint32))).take(np.arange(rows.num_rows))


def _left(fragment: LanceFragment, kept: pa.Table) -> pa.Table | None:
    """Return the kept rows that a fragment still has; `None` where its number of rows does not say (K2)."""
    missing = kept.num_rows - (_rows(fragment) - _deleted(fragment))
    if missing == 0:
        return kept
    return kept.filter(pc.is_valid(kept[_HEADS])) if missing == 1 == _heads(kept) else None


def _fits(rows: pa.Table, columns: Sequence[str], schema: pa.Schema) -> bool:
    """Return whether rows are such as the manifest has: somebody else may have written the note."""
    return all(
        name in rows.column_names
        and rows.schema.field(name).type == schema.field(name).type
        and (schema.field(name).nullable or not rows[name].null_count)
        for name in columns
    )


def _only_file(fragment: LanceFragment) -> str | None:
    files = fragment.metadata.files
    is_small = len(files) == 1 and fragment.metadata.physical_rows <= ROWS_MAX
    return data_file_name(files[0]) if is_small else None


def _rows(fragment: LanceFragment) -> int:
    return fragment.metadata.physical_rows


def _deleted(fragment: LanceFragment) -> int:
    """Return how many rows are deleted; more than there are where the version does not say."""
    deletion = fragment.metadata.deletion_file
    if deletion is None:
        return 0
    number = deletion.num_deleted_rows
    return _rows(fragment) + 1 if number is None else int(number)


def _heads(rows: pa.Table) -> int:
    return int(rows[_HEADS].null_count)
