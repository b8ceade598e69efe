"""Where two versions of a table show different rows, told by their files.

W1  A data file is written once, under a name that is never used again, and so is a deletion file. A fragment
    with the same data files holds the same rows with the same values at the same places; its deletion file
    says which of them a version shows. Rows that both versions show at one place are therefore equal, and all
    others lie at places that only one of them shows. Nothing is assumed about the commits in between: it
    holds across overwrites, restores and rollbacks, and between two forks.
W2  Along one lineage a row id and the version of its last change name one content: a version is made by one
    commit, and one commit writes a row once. Restores and rollbacks bring back contents, never other ones
    under the same pair.
W3  Nothing here asks the library for a row by its row id if a scan of few rows tells as much: after updates
    all over a table that question makes it index the row ids of the whole version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.core.errors import InvariantViolation
from omnigraph.core.limits import MERGE_CHUNK_BYTES, MERGE_CHUNK_ROWS
from omnigraph.storage.deletions import deleted_places
from omnigraph.storage.handle import SnapshotHandle
from omnigraph.storage.roaring import Places
from omnigraph.storage.row_sequences import RowSequences
from omnigraph.storage.rows import ROW_ADDRESS, UPDATED_AT, RowIds, read_rows, row_ids_of, take_rows
from omnigraph.storage.table import translated

ALONG_ROWS_MAX = 65_536  # rows of whole fragments up to which ids are read with the row ids, in one scan
ROWS_PER_TAKE = 64  # of a scan of ids, at the cost of fetching one row by its row id
UNKNOWN_VERSION = -1  # of rows whose version of last change was not looked up

Ids: TypeAlias = pa.StringArray
_NO_IDS: Ids = pa.array([], pa.utf8())

Fragments: TypeAlias = dict[int, FragmentMetadata]


class Along(Enum):
    """What is read of few rows of whole fragments in the scan that finds their row ids (W3)."""

    NOTHING = "nothing"  # row ids are told by the version itself: no data file is opened
    IDS = "ids"
    IMAGES = "images"


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows of one version at places that the other does not show (W1): first those of whole fragments."""

    handle: SnapshotHandle
    row_ids: RowIds
    updated_at: RowIds  # UNKNOWN_VERSION where it was not looked up
    addresses: RowIds  # where the rows lie in this version
    ids: Ids | None  # of the rows of whole fragments, if they were read with the row ids
    rows_read: int
    whole: tuple[int, ...] = ()  # the numbers of those fragments
    whole_rows: int = 0
    whole_images: pa.Table | None = None  # those rows themselves, if they were asked for and are few

    def ids_of(self, positions: RowIds) -> Ids:
        """Return the ids of some of the rows, in order.

        Raises:
            StorageError: the store failed.
        """
        is_whole = positions < self.whole_rows
        scanned = self._scanned_ids(int(is_whole.sum()))
        if scanned is None:
            return self._taken_ids(positions)
        taken = self._taken_ids(positions[~is_whole])
        both = pa.concat_arrays([scanned.take(positions[is_whole]), taken])
        place = np.argsort(np.concatenate([np.flatnonzero(is_whole), np.flatnonzero(~is_whole)]))
        return both.take(place)

    def images_of(self, positions: RowIds) -> pa.Table | None:
        """Return some of the rows in order, if all of them were read with the row ids."""
        if self.whole_images is None or (positions >= self.whole_rows).any():
            return None
        return self.whole_images.take(positions)

    def _scanned_ids(self, wanted: int) -> Ids | None:
        """Return the ids of whole fragments, if they are known or a scan is cheaper than fetching each."""
        if self.ids is not None or wanted * ROWS_PER_TAKE < self.whole_rows or not wanted:
            return self.ids
        rows = read_rows(self.handle, ["id"], fragments=self.whole)
        if not np.array_equal(row_ids_of(rows), self.row_ids[: self.whole_rows]):
            raise InvariantViolation(f"{self.handle.address.open_uri}: two scans differ in their order")
        return _column(rows, "id")

    def _taken_ids(self, positions: RowIds) -> Ids:
        wanted = self.row_ids[positions]
        return _column(take_rows(self.handle, wanted, ["id"]), "id") if len(wanted) else _NO_IDS

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.row_ids)


def own_rows(
    older: SnapshotHandle, newer: SnapshotHandle, along: Along, sequences: RowSequences
) -> tuple[OwnRows, OwnRows]:
    """Return, for each of two versions of one table, the rows that it shows where the other shows none.

    Images are those of the newer one.

    Raises:
        StorageError: the store failed.
    """
    before, after = _fragments(older), _fragments(newer)
    ids_only = Along.IDS if along is Along.IMAGES else along
    return (
        _own_rows(_Version(older, before), _Version(newer, after), ids_only, sequences),
        _own_rows(_Version(newer, after), _Version(older, before), along, sequences),
    )


class _Version(NamedTuple):
    """One of the two, with its fragments."""

    handle: SnapshotHandle
    fragments: Fragments


def _own_rows(here: _Version, there: _Version, along: Along, sequences: RowSequences) -> OwnRows:
    (handle, mine), (other, theirs) = here, there
    whole = [number for number in mine if not _is_shared(mine[number], theirs.get(number))]
    parts = [_whole_rows(handle, mine, whole, along)] if whole else []
    for number in mine.keys() - set(whole):
        if _deletion(mine[number]) != _deletion(theirs[number]):
            places = _places_only_shown_here(handle, mine[number], other, theirs[number])
            if len(places):
                parts.append(_rows_at(handle, mine[number], places, sequences))
    if not parts:
        nothing = np.empty(0, np.int64)
        return OwnRows(handle, nothing, nothing, nothing, None, 0)
    return OwnRows(
        handle,
        np.concatenate([part.row_ids for part in parts]),
        np.concatenate([part.updated_at for part in parts]),
        np.concatenate([part.addresses for part in parts]),
        parts[0].ids,
        sum(part.rows_read for part in parts),
        tuple(whole),
        parts[0].whole_rows,
        parts[0].whole_images,
    )


def lie_alike(one: SnapshotHandle, other: SnapshotHandle, addresses: RowIds) -> bool:
    """Say whether the rows at some addresses of one version have the same addresses in the other.

    It is told by the fragments (W1), for rows that both show.
    """
    here, there = _fragments(one), _fragments(other)
    return all(
        number in here
        and _is_shared(here[number], there.get(number))
        and here[number].row_id_meta == there[number].row_id_meta
        for number in np.unique(addresses >> 32).tolist()
    )


def all_rows(handle: SnapshotHandle) -> tuple[Ids, RowIds]:
    """Return the ids and row ids of every row of a version, in no promised order.

    Raises:
        StorageError: the store failed.
    """
    rows = read_rows(handle, ["id"])
    return _column(rows, "id"), row_ids_of(rows)


def _fragments(handle: SnapshotHandle) -> Fragments:
    return {item.fragment_id: item.metadata for item in handle._dataset.get_fragments()}


def _is_shared(mine: FragmentMetadata, theirs: FragmentMetadata | None) -> bool:
    """Say whether two versions have a fragment in common; overlays change values without a new file."""
    return theirs is not None and not mine.overlays and not theirs.overlays and _files(mine) == _files(theirs)


def _files(fragment: FragmentMetadata) -> list[tuple[str, tuple[int, ...]]]:
    return [(file.path, tuple(file.fields)) for file in fragment.files]


def _deletion(fragment: FragmentMetadata) -> tuple[int, int] | None:
    deletion = fragment.deletion_file
    return None if deletion is None else (deletion.read_version, deletion.id)


def _whole_rows(handle: SnapshotHandle, mine: Fragments, numbers: Sequence[int], along: Along) -> OwnRows:
    count = sum(mine[number].num_rows for number in numbers)
    is_small = count <= MERGE_CHUNK_ROWS and _size(mine, numbers) <= MERGE_CHUNK_BYTES
    has_images = along is Along.IMAGES and is_small
    has_ids = along is not Along.NOTHING and count <= ALONG_ROWS_MAX
    names = handle.schema.names
    columns = names if has_images else ["id"] if has_ids else []
    scanned = read_rows(handle, [*columns, UPDATED_AT, ROW_ADDRESS], fragments=numbers)
    rows = scanned.combine_chunks()  # there is a chunk for each fragment
    images = rows.select(names) if has_images else None
    return OwnRows(
        handle,
        row_ids_of(rows),
        row_ids_of(rows, UPDATED_AT),
        row_ids_of(rows, ROW_ADDRESS),
        _column(rows, "id") if columns else None,
        rows.num_rows,
        tuple(numbers),
        rows.num_rows,
        images if images is not None and images.nbytes <= MERGE_CHUNK_BYTES else None,
    )


def _size(mine: Fragments, numbers: Sequence[int]) -> int:
    """Return the bytes of the data files of fragments; a file of unknown size counts as too large."""
    sizes = (file.file_size_bytes for number in numbers for file in mine[number].files)
    return sum(MERGE_CHUNK_BYTES + 1 if size is None else size for size in sizes)


def _places_only_shown_here(
    handle: SnapshotHandle, mine: FragmentMetadata, other: SnapshotHandle, theirs: FragmentMetadata
) -> Places:
    if theirs.deletion_file is None:  # the other shows every place
        return np.empty(0, np.int64)
    gone_there = deleted_places(other, theirs)
    gone_here = deleted_places(handle, mine)
    return np.setdiff1d(gone_there, gone_here, assume_unique=True)


def _rows_at(
    handle: SnapshotHandle, fragment: FragmentMetadata, places: Places, sequences: RowSequences
) -> OwnRows:
    unknown = np.full(len(places), UNKNOWN_VERSION, np.int64)
    addresses = (fragment.id << 32) + places
    row_ids = sequences.row_ids_at(fragment, places)
    if row_ids is None:
        row_ids = _scanned_row_ids(handle, fragment, places)
    return OwnRows(handle, row_ids, unknown, addresses, None, len(places))


def _scanned_row_ids(handle: SnapshotHandle, fragment: FragmentMetadata, places: Places) -> RowIds:
    """Return the row ids of places from a scan of numbers."""
    with translated(f"row ids of {handle.address.open_uri}"):
        part = next(item for item in handle._dataset.get_fragments() if item.fragment_id == fragment.id)
        scanned = handle._dataset.scanner(
            columns=[], fragments=[part], with_row_id=True, with_row_address=True
        ).to_table()
    offsets = row_ids_of(scanned, "_rowaddr") & 0xFFFFFFFF
    return row_ids_of(scanned)[np.isin(offsets, places)]


def _column(rows: pa.Table, name: str) -> Ids:
    return cast("Ids", rows[name].combine_chunks())
