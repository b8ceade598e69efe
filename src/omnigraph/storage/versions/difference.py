"""Where two versions of a table show different rows, judged by files: for dense ids, changes and merges.

W1  A data file is written once, under a name that is never used again, and so is a deletion file. A fragment
    with the same data files holds the same rows with the same values at the same places; its deletion file
    says which of them a version shows. Rows that both versions show at one place are therefore equal, and all
    others are at places that only one of them shows. Nothing is assumed about the commits in between: it
    holds across overwrites, restores and rollbacks, and between two forks.
W2  Along one lineage a row id and the version of its last change name one content: a version is made by one
    commit, and one commit writes a row once. Restores and rollbacks bring back contents, never other ones
    under the same pair. So rows that compaction merely moved are known by the version of their last change.
W3  Nothing here asks the library for a row by its row id if a scan of few rows says as much: after updates
    all over a table that question makes it index the row ids of the whole version.
W4  What is read of whole fragments is read once, for all callers, and every scan gives one order of rows.
W5  What is known only from counts of rows must add up. Where it does not, or a commit in between could hide a
    change, the answer is "unknown", never a guess.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, cast, final

import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.core.arrays import Positions, RowIds
from omnigraph.core.errors import InvariantViolation, StorageError
from omnigraph.core.limits import MERGE_CHUNK_BYTES, MERGE_CHUNK_ROWS
from omnigraph.storage.files.data_file import data_file_name
from omnigraph.storage.files.deletions import deleted_places
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.rows import (
    CREATED_AT,
    ROW_ADDRESS,
    ROW_ID,
    UPDATED_AT,
    read_rows,
    row_ids_of,
    take_rows,
)
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.newest import RowSequences
from omnigraph.storage.versions.told_rows import told_rows

ALONG_ROWS_MAX = 65_536  # rows of whole fragments up to which columns are read with the row ids, in one scan
ROWS_PER_TAKE = 64  # rows of an id scan that cost as much as fetching one row by its row id
UNKNOWN_VERSION = -1  # of rows whose version of last change was not looked up
TRANSACTIONS_MAX = 32  # commits looked at one by one; across more, row ids are compared

# Commits that only add, replace and remove rows, move them, or touch no row.
_PLAIN = frozenset(
    {"append", "update", "delete", "merge", "rewrite", "reserve", "create_index", "config", "project"}
)

Ids: TypeAlias = pa.StringArray
_NO_IDS: Ids = pa.array([], pa.utf8())
_NO_ROWS: RowIds = np.empty(0, np.int64)

FragmentsById: TypeAlias = dict[int, FragmentMetadata]


@dataclass(frozen=True, slots=True)
class FragmentState:
    """What identifies the content of a fragment: its data files, and which rows of them are deleted (W1)."""

    files: tuple[str, ...]  # empty where overlays change values without a new file: it equals no other
    deletion: str  # empty while no row is deleted
    rows: int
    deleted: int
    fields: tuple[tuple[int, ...], ...] | None = None  # of each file; a layout that was kept has none

    @staticmethod
    def of(fragment: FragmentMetadata) -> "FragmentState":
        """Read it from the metadata of a version."""
        files, deletion = () if fragment.overlays else fragment.files, fragment.deletion_file
        return FragmentState(
            tuple(map(data_file_name, files)),
            "" if deletion is None else f"{deletion.read_version}-{deletion.id}",
            fragment.physical_rows,
            0 if deletion is None else int(deletion.num_deleted_rows or 0),
            tuple(tuple(file.fields) for file in files),
        )

    @property
    def live(self) -> int:
        """How many rows it shows."""
        return self.rows - self.deleted

    def is_shared(self, other: "FragmentState | None") -> bool:
        """Say whether another version has these rows at these places, deleted or not (W1)."""
        if other is None or not self.files or self.files != other.files:
            return False
        return None in (self.fields, other.fields) or self.fields == other.fields


Layout: TypeAlias = Mapping[int, FragmentState]


def layout_of(handle: SnapshotHandle) -> Layout:
    """Return the fragments of a version by number; read from its metadata."""
    return _layout(_fragments(handle))


class Difference(NamedTuple):
    """Fragments, by number, in which two versions differ (W1)."""

    gone: list[int]  # only the earlier version has them
    new: list[int]  # only the later one
    kept: list[int]  # both
    redeleted: list[int]  # both, with different rows deleted


def difference(before: Layout, after: Layout) -> Difference:
    """Compare two versions; nothing is read."""
    kept = [number for number in after if after[number].is_shared(before.get(number))]
    both = set(kept)
    return Difference(
        [number for number in before if number not in both],
        [number for number in after if number not in both],
        kept,
        [number for number in kept if after[number].deletion != before[number].deletion],
    )


@final
class FragmentRows:
    """The rows of some whole fragments of a version, in the order of the fragments (W4)."""

    def __init__(
        self,
        handle: SnapshotHandle,
        numbers: Sequence[int],
        *,
        told: Sequence[str] = (),
        along: Collection[str] = (),
        known: Mapping[str, RowIds] | None = None,
    ) -> None:
        """Take the fragments, what the version says of each row, and columns to read with the first ones.

        `known` is what it says, where no scan is needed for that.
        """
        self.handle, self.numbers = handle, tuple(numbers)
        self._told, self._along = (ROW_ID, *told), along
        self._lock = threading.Lock()
        self._columns: dict[str, pa.ChunkedArray[Any]] = {}
        self._numbers: dict[str, RowIds] = dict(known or {})

    @property
    def row_ids(self) -> RowIds:
        """The row ids."""
        return self.numbers_of(ROW_ID)

    def numbers_of(self, name: str) -> RowIds:
        """Return what the version says of the rows under a name."""
        self.read()
        return self._numbers[name]

    def read(self, columns: Collection[str] = ()) -> pa.Table:
        """Return columns of the rows.

        Raises:
            StorageError: the store failed.
        """
        with self._lock:
            if not self._numbers or not self.has(columns):
                wanted = dict.fromkeys((*columns, *self._along))
                self._fetch([name for name in wanted if name not in self._columns])
            return pa.Table.from_arrays([self._columns[name] for name in columns], names=list(columns))

    def has(self, columns: Collection[str]) -> bool:
        """Say whether columns were read."""
        return all(name in self._columns for name in columns)

    def forget(self, columns: Collection[str]) -> None:
        """Drop columns that were read."""
        with self._lock:
            self._columns = {name: held for name, held in self._columns.items() if name not in columns}

    @property
    def nbytes(self) -> int:
        """Bytes of what was read so far."""
        return sum(column.nbytes for column in list(self._columns.values()))

    def _fetch(self, columns: Sequence[str]) -> None:
        told = () if self._numbers else self._told
        if not self.numbers:
            empty = self.handle.schema.empty_table()
            self._columns |= {name: empty[name] for name in columns}
            self._numbers |= dict.fromkeys(told, _NO_ROWS)
            return
        rows = read_rows(self.handle, [*columns, *told[1:]], fragments=self.numbers)
        if not self._numbers:
            self._numbers = {name: row_ids_of(rows, name) for name in told}
        elif not np.array_equal(row_ids_of(rows), self._numbers[ROW_ID]):
            raise InvariantViolation(f"{self.handle.address.open_uri}: two scans differ in their order")
        self._columns |= {name: rows[name] for name in columns}

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.row_ids)


class VersionDelta:
    """The change from a version of a table, whose layout was kept, to a later one of its lineage."""

    def __init__(
        self, *, since: int, before: Layout, handle: SnapshotHandle, along: Collection[str] = ()
    ) -> None:
        """Take the layout of the earlier version and a handle of the later one.

        `along` are columns that will be asked for: for a small change they are read with the first ones.
        """
        self.since, self.handle = since, handle
        self.after = after = layout_of(handle)
        found = difference(before, after)
        is_small = sum(after[number].live for number in found.new) <= ALONG_ROWS_MAX
        self.new_rows = FragmentRows(
            handle, found.new, told=(CREATED_AT, UPDATED_AT), along=along if is_small else ()
        )
        growth = {number: after[number].deleted - before[number].deleted for number in found.kept}
        # Fragments that are still there and show fewer rows.
        self.thinned = [number for number, grown in growth.items() if grown]
        self.is_consistent = self.thinned == found.redeleted and all(grown >= 0 for grown in growth.values())
        # Places that showed a row and do not any more: the row was replaced, moved or deleted.
        self.vacated = sum(growth.values()) + sum(before[number].live for number in found.gone)
        self.rows_before = sum(state.live for state in before.values())
        self.rows_after = sum(state.live for state in after.values())

    @property
    def is_empty(self) -> bool:
        """Whether both versions show the same rows in the same places."""
        return not self.new_rows.numbers and self.vacated == 0

    def count_changed(self) -> int:
        """Return how many rows were inserted or updated (W2)."""
        return int((self.new_rows.numbers_of(UPDATED_AT) > self.since).sum())

    def changed(self, columns: Collection[str]) -> tuple[RowIds, pa.Table]:
        """Return row ids and columns of the rows that were inserted or updated (W2)."""
        rows, row_ids = self.new_rows.read(columns), self.new_rows.row_ids
        is_changed = self.new_rows.numbers_of(UPDATED_AT) > self.since
        if is_changed.all():
            return row_ids, rows
        return row_ids[is_changed], rows.take(np.flatnonzero(is_changed))

    def deleted_row_ids(self, store: TableStore) -> RowIds:
        """Return the ids of rows that the earlier version had and the later one lacks.

        It is wrong across a restore (W5). The library would look for what a fork shares where the fork was
        made, which may be another graph by now: there, the two versions are compared by their files (W1).

        Raises:
            StorageError: a version in between was cleaned up or is damaged, or the store failed.
        """
        if self.handle.address.ref is not None:
            earlier = store.open_at(self.handle.address, self.since)
            gone, come = own_rows(earlier, self.handle, Along.NOTHING, store.row_sequences)
            return np.setdiff1d(gone.row_ids, come.row_ids)
        with translated(f"changes of {self.handle.address.open_uri} since version {self.since}"):
            found = self.handle._dataset.delta(compared_against=self.since).get_deleted_row_ids().read_all()
        return row_ids_of(found)

    def has_plain_history(self, store: TableStore) -> bool | None:
        """Say whether every commit in between hides nothing; `None` where that is unknown."""
        if self.handle.version - self.since > TRANSACTIONS_MAX:
            return None
        between = range(self.since + 1, self.handle.version + 1)
        try:
            return all(made.operation in _PLAIN for made in store.transactions(self.handle.address, between))
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return None  # a version in between was cleaned up


class Along(Enum):
    """What is read of few rows of whole fragments in the scan that finds their row ids (W3)."""

    NOTHING = "nothing"  # row ids come from the version itself: no data file is opened
    IDS = "ids"
    IMAGES = "images"


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows of one version at places that the other does not show (W1): first those of whole fragments."""

    whole: FragmentRows
    row_ids: RowIds
    updated_at: RowIds  # UNKNOWN_VERSION where it was not looked up
    addresses: RowIds  # of the rows in this version
    whole_images: pa.Table | None = None  # those of whole fragments, if they were asked for and are few

    def ids_of(self, positions: RowIds) -> Ids:
        """Return the ids of some of the rows, in order.

        Raises:
            StorageError: the store failed.
        """
        is_whole = positions < len(self.whole)
        scanned = self._scanned_ids(int(is_whole.sum()))
        if scanned is None:
            return self._taken_ids(positions)
        taken = self._taken_ids(positions[~is_whole])
        both = pa.concat_arrays([scanned.take(positions[is_whole]), taken])
        place = np.argsort(np.concatenate([np.flatnonzero(is_whole), np.flatnonzero(~is_whole)]))
        return both.take(place)

    def images_of(self, positions: RowIds) -> pa.Table | None:
        """Return some of the rows in order, if all of them were read with the row ids."""
        if self.whole_images is None or (positions >= len(self.whole)).any():
            return None
        return self.whole_images.take(positions)

    def _scanned_ids(self, wanted: int) -> Ids | None:
        """Return the ids of whole fragments, if they are known or a scan is cheaper than fetching each."""
        is_worth_it = wanted > 0 and wanted * ROWS_PER_TAKE >= len(self.whole)
        return _column(self.whole.read(["id"]), "id") if is_worth_it or self.whole.has(["id"]) else None

    def _taken_ids(self, positions: RowIds) -> Ids:
        wanted = self.row_ids[positions]
        return _column(take_rows(self.whole.handle, wanted, ["id"]), "id") if len(wanted) else _NO_IDS

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
    was, now = _fragments(older), _fragments(newer)
    found = difference(_layout(was), _layout(now))
    before, after = _Version(older, was, found.gone), _Version(newer, now, found.new)
    ids_only = Along.IDS if along is Along.IMAGES else along
    return (
        _own_rows(before, after, found.redeleted, ids_only, sequences),
        _own_rows(after, before, found.redeleted, along, sequences),
    )


class _Version(NamedTuple):
    """One of the two, with its fragments, and the numbers of those that the other lacks."""

    handle: SnapshotHandle
    fragments: FragmentsById
    whole: list[int]


def _own_rows(
    here: _Version, there: _Version, redeleted: Sequence[int], along: Along, sequences: RowSequences
) -> OwnRows:
    # Where the other has no fragment of its own, it says no version of a row: there is none to compare with.
    told = (UPDATED_AT, ROW_ADDRESS) if there.whole else (ROW_ADDRESS,)
    whole, images = _whole_rows(here, along, told, sequences)
    row_ids, addresses = [whole.row_ids], [whole.numbers_of(ROW_ADDRESS)]
    for number in redeleted:
        places = _places_only_shown_here(here, there, number)
        if len(places):
            row_ids.append(_row_ids_at(here, number, places, sequences))
            addresses.append((number << 32) + places)
    updated_at = np.full(sum(map(len, row_ids)), UNKNOWN_VERSION, np.int64)
    if UPDATED_AT in told:
        updated_at[: len(whole)] = whole.numbers_of(UPDATED_AT)
    return OwnRows(whole, np.concatenate(row_ids), updated_at, np.concatenate(addresses), images)


def lie_alike(one: SnapshotHandle, other: SnapshotHandle, addresses: RowIds) -> bool:
    """Say whether the rows at some addresses of one version have the same addresses in the other.

    The fragments decide it (W1), for rows that both show.
    """
    here, there = _fragments(one), _fragments(other)
    shared = set(difference(_layout(there), _layout(here)).kept)
    return all(
        number in shared and here[number].row_id_meta == there[number].row_id_meta
        for number in np.unique(addresses >> 32).tolist()
    )


def all_rows(handle: SnapshotHandle) -> tuple[Ids, RowIds]:
    """Return the ids and row ids of every row of a version, in no promised order.

    Raises:
        StorageError: the store failed.
    """
    rows = read_rows(handle, ["id"])
    return _column(rows, "id"), row_ids_of(rows)


def _fragments(handle: SnapshotHandle) -> FragmentsById:
    return handle.fragments


def _layout(fragments: FragmentsById) -> Layout:
    return {number: FragmentState.of(fragment) for number, fragment in fragments.items()}


def _whole_rows(
    version: _Version, along: Along, told: Sequence[str], sequences: RowSequences
) -> tuple[FragmentRows, pa.Table | None]:
    handle, mine, numbers = version
    count = sum(mine[number].num_rows for number in numbers)
    is_small = count <= MERGE_CHUNK_ROWS and _size(mine, numbers) <= MERGE_CHUNK_BYTES
    has_images = along is Along.IMAGES and is_small
    has_ids = along is not Along.NOTHING and count <= ALONG_ROWS_MAX
    columns = handle.schema.names if has_images else ["id"] if has_ids else []
    known = None if columns else told_rows(handle, [mine[number] for number in numbers], told, sequences)
    whole = FragmentRows(handle, numbers, told=told, known=known)
    images = whole.read(columns).combine_chunks()  # there is a chunk for each fragment
    whole.forget([name for name in columns if name != "id"])
    return whole, images if has_images and images.nbytes <= MERGE_CHUNK_BYTES else None


def _size(mine: FragmentsById, numbers: Sequence[int]) -> int:
    """Return the bytes of the data files of fragments; a file of unknown size counts as too large."""
    sizes = (file.file_size_bytes for number in numbers for file in mine[number].files)
    return sum(MERGE_CHUNK_BYTES + 1 if size is None else size for size in sizes)


def _places_only_shown_here(here: _Version, there: _Version, number: int) -> Positions:
    mine, theirs = here.fragments[number], there.fragments[number]
    if theirs.deletion_file is None:  # the other shows every place
        return _NO_ROWS
    gone_there = deleted_places(there.handle, theirs)
    return np.setdiff1d(gone_there, deleted_places(here.handle, mine), assume_unique=True)


def _row_ids_at(version: _Version, number: int, places: Positions, sequences: RowSequences) -> RowIds:
    told = sequences.row_ids_at(version.fragments[number], places)
    if told is not None:
        return told
    scanned = read_rows(version.handle, [ROW_ADDRESS], fragments=[number])
    return row_ids_of(scanned)[np.isin(row_ids_of(scanned, ROW_ADDRESS) & 0xFFFFFFFF, places)]


def _column(rows: pa.Table, name: str) -> Ids:
    return cast("Ids", rows[name].combine_chunks())
