"""Dense ids: the slot of a row in the dictionary of its table's stable row ids.

S1  The slots of a generation are a pure function of its base version and the row id: the rows of the base
    version by ascending row id, then every later row id in order. Every process assigns the same numbers.
S2  Updates, compaction and index builds keep slots. A delete leaves a tombstone. A row id that was never seen
    at a pin is one as well.
S3  A view is immutable; advancing gives another view that shares the base.
S4  After every advance there are as many live slots as rows of the version. Any doubt is a new generation.
S5  A version of a table is named by its lineage, its number and the transaction that made it: a number alone
    does not name it for good.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.core.arrays import Ints, Mask, Positions, RowIds, SlotArray, Values
from omnigraph.core.errors import HistoricalVersionReclaimed, StorageError
from omnigraph.core.limits import I32_MAX
from omnigraph.history.fold import TableEntry
from omnigraph.history.identity import TableIdentity
from omnigraph.storage.tables.handle import SnapshotHandle
from omnigraph.storage.tables.rows import CREATED_AT, read_rows, row_ids_of
from omnigraph.storage.tables.table import TableStore
from omnigraph.storage.versions.difference import Layout, VersionDelta, layout_of

__all__ = [
    "Ints",
    "Mask",
    "Positions",
    "RowIds",
    "SlotArray",
    "Values",
    "check_slots",
    "empty_slots",
    "linked",
    "plain",
    "taken",
    "words",
]

N = TypeVar("N", bound="np.generic[Any]")

TOMBSTONES_MAX_SHARE = 0.25  # above this, scans of slots cost more than a new dictionary
TOMBSTONES_FREE = 1_024
DIRECT_FROM = 64  # rows per question up to which that array is made
DIRECT_SPAN_MAX = 4  # row ids per row up to which an array by row id is small enough


def empty_slots() -> SlotArray:
    """Return no slots."""
    return np.empty(0, np.int32)


def check_slots(count: int) -> None:
    """Make sure that slots fit their 32 bits."""
    assert count <= I32_MAX, f"{count} rows of one table do not fit 32-bit slots"


def linked(place: Ints, nodes: SlotArray, right: SlotArray) -> Mask:
    """Return for each place whether one of the nodes that were found for it is the right one."""
    found = np.zeros(len(right), np.bool_)
    found[place[nodes == right[place]]] = True
    return found


def plain(values: "pa.ChunkedArray[Any] | Values") -> Values:
    """Return many pieces as one array."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    if values.num_chunks == 1:
        return cast("Values", values.chunk(0))
    return values.combine_chunks()


def taken(values: Values, index: Positions) -> Values:
    """Return values by position; null where it is -1."""
    return values.take(cast("pa.Int64Array", pa.array(index, mask=index < 0)))


def words(buffer: pa.Buffer | None, dtype: "np.dtype[N]") -> "npt.NDArray[N]":
    """Return the numbers in an Arrow buffer; without one, no numbers."""
    return np.empty(0, dtype) if buffer is None else np.frombuffer(memoryview(buffer), dtype)


@dataclass(frozen=True, slots=True)
class TableLineage:
    """The versions that follow one another: one lifetime of a table on one Lance ref.

    Two forks go on with the same version numbers and the same row ids; nothing is shared between them.
    """

    identity: TableIdentity
    ref: str | None


@dataclass(frozen=True, slots=True)
class TablePin:
    """One version of a lineage, and the transaction that made it."""

    version: int
    uuid: str


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One table of a snapshot, held open at its pin, with what the snapshot says about it.

    A `PinnedTable` says where it is. Derived structures are kept under its lineage and pin instead: their
    files outlive the process, and the graph may have moved by then.
    """

    entry: TableEntry
    handle: SnapshotHandle

    @property
    def lineage(self) -> TableLineage:
        """The lineage that the pin belongs to."""
        return TableLineage(self.entry.identity, self.entry.pin.ref)

    @property
    def pin(self) -> TablePin:
        """The version and its transaction."""
        uuid = self.entry.pin.transaction_uuid or self.handle.transaction_uuid
        return TablePin(self.entry.version, uuid or "")


@dataclass(frozen=True, eq=False)
class SlotBase:
    """The rows of a generation's first version. Contiguous row ids, the usual case, need no arrays."""

    generation: TablePin
    first: int
    count: int
    row_ids: RowIds | None  # ascending; `None` when they are `first`, `first + 1`, ...

    @property
    def tail_first(self) -> int:
        """The row id of the slot after the base."""
        return self.first + self.count if self.row_ids is None else int(self.row_ids[-1]) + 1

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return 0 if self.row_ids is None else self.row_ids.nbytes + 4 * DIRECT_SPAN_MAX * self.count

    @cached_property
    def _direct(self) -> SlotArray | None:
        """Slots by row id, where the ids are dense enough."""
        assert self.row_ids is not None
        span = self.tail_first - self.first
        if span > DIRECT_SPAN_MAX * self.count:
            return None
        direct = np.full(span, -1, np.int32)
        direct[self.row_ids - self.first] = np.arange(self.count, dtype=np.int32)
        return direct

    def _has_direct(self, asked: int) -> bool:
        """Say whether the array by row id is there, or worth making for this many questions."""
        return "_direct" in self.__dict__ or asked * DIRECT_FROM > self.count

    def find(self, row_ids: RowIds) -> SlotArray:
        """Return base slots of row ids; -1 where the base has none."""
        offsets = row_ids - self.first
        is_inside = (offsets >= 0) & (row_ids < self.tail_first)
        offsets = np.where(is_inside, offsets, 0)
        if self.row_ids is None:
            found = offsets.astype(np.int32)
        elif self._has_direct(len(row_ids)) and self._direct is not None:
            found = self._direct[offsets]
        else:
            places = np.searchsorted(self.row_ids, row_ids)
            places[places == self.count] = 0
            found = np.where(self.row_ids[places] == row_ids, places, -1).astype(np.int32)
        return np.where(is_inside, found, np.int32(-1))


class Slots:
    """The dictionary of one table as of one pin."""

    def __init__(self, pin: TablePin, base: SlotBase, *, size: int, dead: SlotArray, layout: Layout) -> None:
        """Take the base, how far the slots reach, the tombstones ascending, and the fragments of the pin."""
        check_slots(size)
        self.pin = pin
        self.base = base
        self.size = size
        self.dead = dead
        self.layout = layout
        self.live_count = size - len(dead)

    @property
    def pins(self) -> tuple[TablePin, ...]:
        """The version that it is a function of."""
        return (self.pin,)

    def parts(self) -> dict[int, int]:
        """Return the bytes of the pieces of memory it uses, by their identity."""
        return {id(self.base): self.base.nbytes, id(self.dead): self.dead.nbytes}

    @property
    def generation(self) -> TablePin:
        """What the numbers mean: slots of two views compare only within one generation."""
        return self.base.generation

    @property
    def next_row_id(self) -> int:
        """The row id of the first slot beyond this view."""
        return self.base.tail_first + self.size - self.base.count

    @cached_property
    def _live(self) -> Mask:
        live = np.ones(self.size, np.bool_)
        live[self.dead] = False
        return live

    def live(self) -> Mask | None:
        """Return, by slot, whether it has a row; `None` when every slot has one."""
        return self._live if len(self.dead) else None

    def all(self) -> SlotArray:
        """Return the slots that have rows, ascending."""
        if not len(self.dead):
            return np.arange(self.size, dtype=np.int32)
        return np.flatnonzero(self._live).astype(np.int32)

    def row_ids(self, slots: Ints) -> RowIds:
        """Return the row ids of slots."""
        wide = slots.astype(np.int64)
        if self.base.row_ids is None:
            return wide + self.base.first
        count = self.base.count
        if self.size == count:
            return self.base.row_ids[wide]
        tail = wide - count + self.base.tail_first
        return np.where(wide < count, self.base.row_ids[np.minimum(wide, count - 1)], tail)

    def of_row_ids(self, row_ids: Ints) -> SlotArray:
        """Return the slots of row ids; -1 where there is no row."""
        wide = row_ids.astype(np.int64, copy=False)
        found = self.base.find(wide)
        if self.size > self.base.count:
            tail = wide - self.base.tail_first + self.base.count
            is_tail = (tail >= self.base.count) & (tail < self.size)
            found = np.where(is_tail, tail, found).astype(np.int32)
        if len(self.dead):
            found[self.is_dead(found)] = -1
        return found

    def is_dead(self, slots: SlotArray) -> Mask:
        """Return which slots are tombstones; -1 is not one."""
        if not len(self.dead):
            return np.zeros(len(slots), np.bool_)
        if len(slots) * 16 > self.size:
            return (slots >= 0) & ~self._live[np.maximum(slots, 0)]
        places = np.searchsorted(self.dead, slots)
        places[places == len(self.dead)] = 0
        hits: Mask = self.dead[places] == slots
        return hits


def build_slots(table: OpenTable) -> Slots:
    """Number the rows of a version from scratch."""
    row_ids = row_ids_of(read_rows(table.handle, ()))
    if len(row_ids) > 1 and not (row_ids[1:] > row_ids[:-1]).all():
        row_ids = np.sort(row_ids)
    count = len(row_ids)
    check_slots(count)
    first = int(row_ids[0]) if count else 0
    is_contiguous = count == 0 or int(row_ids[-1]) - first + 1 == count
    base = SlotBase(table.pin, first, count, None if is_contiguous else row_ids)
    return Slots(table.pin, base, size=count, dead=empty_slots(), layout=layout_of(table.handle))


def advance_slots(slots: Slots, table: OpenTable, delta: VersionDelta, store: TableStore) -> Slots | None:
    """Return the view of a later version, or `None` where anything is in doubt (S4)."""
    if slots.base.count == 0 or not delta.is_consistent:
        return None
    if delta.is_empty:
        if not delta.has_plain_history(store):
            return None  # rows went and came back: what is kept of the versions in between is of no use
        return _checked(
            Slots(table.pin, slots.base, size=slots.size, dead=slots.dead, layout=delta.after), table
        )
    moved = delta.new_rows.row_ids
    is_known = slots.of_row_ids(moved) >= 0
    inserted = np.sort(moved[~is_known])
    is_reused = bool((delta.new_rows.numbers_of(CREATED_AT)[is_known] > delta.since).any())
    if is_reused or (len(inserted) and (inserted[0] < slots.next_row_id or _repeats(inserted))):
        return None
    deleted = delta.rows_before + len(inserted) - delta.rows_after
    if deleted < 0 or delta.vacated != int(is_known.sum()) + deleted or slots.live_count != delta.rows_before:
        return None
    killed = _killed(slots, delta, deleted, store)
    if killed is None:
        return None
    next_row_id = int(inserted[-1]) + 1 if len(inserted) else slots.next_row_id
    size = slots.size + next_row_id - slots.next_row_id
    holes = _holes(slots, inserted, size)
    is_same = not len(killed) + len(holes)
    dead = slots.dead if is_same else np.sort(np.concatenate([slots.dead, killed, holes]))
    if len(dead) > TOMBSTONES_FREE + TOMBSTONES_MAX_SHARE * size:
        return None
    advanced = Slots(table.pin, slots.base, size=size, dead=dead, layout=delta.after)
    return _checked(advanced, table) if _is_proven(slots, delta, killed, store) else None


def _repeats(ascending: RowIds) -> bool:
    return bool((ascending[1:] == ascending[:-1]).any())


def _killed(slots: Slots, delta: VersionDelta, expected: int, store: TableStore) -> SlotArray | None:
    """Return the slots of deleted rows, or `None` where they are unknown."""
    if expected == 0:
        return empty_slots()
    try:
        row_ids = delta.deleted_row_ids(store)
    except HistoricalVersionReclaimed:
        return None
    except StorageError as error:
        if error.kind in {"transient", "configuration"}:
            raise
        return None  # a version in between was cleaned up, or is damaged
    if len(row_ids) != expected or np.isin(row_ids, delta.new_rows.row_ids).any():
        return None
    killed = slots.of_row_ids(row_ids)
    return None if (killed < 0).any() or _repeats(np.sort(killed).astype(np.int64)) else killed


def _holes(slots: Slots, inserted: RowIds, size: int) -> SlotArray:
    """Return new slots whose rows came and went between the two versions."""
    if size - slots.size == len(inserted):
        return empty_slots()
    is_hole = np.ones(size - slots.size, np.bool_)
    is_hole[inserted - slots.next_row_id] = False
    return (np.flatnonzero(is_hole) + slots.size).astype(np.int32)


def _is_proven(slots: Slots, delta: VersionDelta, killed: SlotArray, store: TableStore) -> bool:
    """Say that no commit in between can have hidden a change that leaves every sum even.

    Only a row that came back could: it offsets one that went. Such rows would be in fragments that were
    there before and have other deletions now.
    """
    is_plain = delta.has_plain_history(store)
    if is_plain is not None:
        return is_plain
    found = slots.of_row_ids(row_ids_of(read_rows(delta.handle, (), fragments=delta.thinned)))
    return bool((found >= 0).all() and not np.isin(found, killed).any())


def _checked(slots: Slots, table: OpenTable) -> Slots | None:
    return slots if slots.live_count == table.handle.row_count else None
