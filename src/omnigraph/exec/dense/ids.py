"""Ids to slots and back.

I1  An id is found by its hash in a sorted array and then compared: a collision costs a step, never an answer.
    Hashes are of strings, eight bytes at a time, the same for whole Arrow arrays and for single keys.
I2  An id never changes its row. One that was deleted and inserted again has a new slot; the tombstone of the
    old one is passed over.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import Positions, SlotArray, Values
from omnigraph.exec.dense.columns import DenseColumn, build_column, patched_column
from omnigraph.exec.dense.slots import OpenTable, Slots, TablePin, empty_slots, plain, words
from omnigraph.storage.versions.difference import VersionDelta

Hashes: TypeAlias = npt.NDArray[np.uint64]

_BLOCK = 65_536  # strings hashed at a time: their intermediate arrays stay in the processor's cache
_SEED, _STEP, _FINAL = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_MASK = 2**64 - 1
_TAILS = np.array([(1 << 8 * length) - 1 for length in range(8)], np.uint64)  # by how many bytes a word has


ID = "id"
TAIL_MAX_SHARE = 0.1  # of the base; a longer tail is merged into it
TAIL_FREE = 4_096
_BULK = 1 << 20  # keys looked up at a time
_BUCKETS_FROM = 512  # from this many keys, a table of first positions is worth building


def hash_text(text: str) -> int:
    """Return the hash of one string."""
    data = text.encode()
    value = (_SEED ^ len(data)) & _MASK
    for start in range(0, len(data), 8):
        value = (value ^ int.from_bytes(data[start : start + 8], "little")) * _STEP & _MASK
        value ^= value >> 29
    value = value * _FINAL & _MASK
    return value ^ value >> 32


def hash_strings(strings: "pa.Array[Any]") -> Hashes:
    """Return the hashes of strings without nulls."""
    is_large = pa.types.is_large_string(strings.type)
    _, offset_buffer, data_buffer = strings.buffers()
    hashes = np.empty(len(strings), np.uint64)
    if not len(strings):
        return hashes
    dtype = np.dtype(np.int64 if is_large else np.int32)
    offsets = words(offset_buffer, dtype)[strings.offset : strings.offset + len(strings) + 1]
    content = words(data_buffer, np.dtype(np.uint8))
    for start in range(0, len(strings), _BLOCK):
        part = offsets[start : start + _BLOCK + 1].astype(np.int64)
        first, last = int(part[0]), int(part[-1])
        data = np.zeros(last - first + 8, np.uint8)  # words may reach beyond the last byte
        data[: last - first] = content[first:last]
        hashes[start : start + _BLOCK] = _hash_block(part[:-1] - first, np.diff(part), data)
    return hashes


def _hash_block(starts: Positions, lengths: Positions, data: npt.NDArray[np.uint8]) -> Hashes:
    at_byte = np.ndarray((len(data) - 7,), np.dtype("<u8"), buffer=data.data, strides=(1,))
    values = lengths.astype(np.uint64) ^ np.uint64(_SEED)
    active = np.arange(len(starts))
    for done in range(0, int(lengths.max(initial=0)), 8):
        if done:
            active = active[lengths[active] > done]
        elif (lengths == 0).any():
            active = np.flatnonzero(lengths)
        is_whole = len(active) == len(starts)
        begin = starts if is_whole else starts[active]
        left = (lengths if is_whole else lengths[active]) - done
        word = at_byte[begin + done]
        is_tail = left < 8
        if is_tail.any():
            word[is_tail] &= _TAILS[left[is_tail]]
        mixed = ((values if is_whole else values[active]) ^ word) * np.uint64(_STEP)
        mixed ^= mixed >> np.uint64(29)
        if is_whole:
            values = mixed
        else:
            values[active] = mixed
    values = values * np.uint64(_FINAL)
    return values ^ (values >> np.uint64(32))


@dataclass(frozen=True, eq=False)
class HashTable:
    """Hashes ascending, and the slot of each."""

    hashes: Hashes
    slots: SlotArray

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.hashes.nbytes + self.slots.nbytes

    @cached_property
    def _shift(self) -> np.uint64:
        return np.uint64(64 - max(1, len(self.hashes).bit_length()))

    @cached_property
    def _starts(self) -> Positions:
        """Where the hashes of each leading bit pattern begin."""
        buckets = 1 << (64 - int(self._shift))
        starts = np.zeros(buckets + 1, np.int64)
        counts = np.bincount((self.hashes >> self._shift).astype(np.int64), minlength=buckets)
        np.cumsum(counts, out=starts[1:])
        return starts

    def first(self, hashes: Hashes) -> Positions:
        """Return the first position of each hash; the length where there is none."""
        count = len(self.hashes)
        if not count:
            return np.zeros(len(hashes), np.int64)
        if len(hashes) < _BUCKETS_FROM:
            found = np.searchsorted(self.hashes, hashes)
            return np.where(self.hashes[np.minimum(found, count - 1)] == hashes, found, count)
        bucket = (hashes >> self._shift).astype(np.int64)
        at, end = self._starts[bucket], self._starts[bucket + 1]
        result = np.full(len(hashes), count, np.int64)
        open_ = np.flatnonzero(at < end)
        at, end, wanted = at[open_], end[open_], hashes[open_]
        while len(open_):
            is_hit = self.hashes[at] == wanted
            result[open_[is_hit]] = at[is_hit]
            at = at + 1
            goes_on = ~is_hit & (at < end)
            open_, at, end, wanted = open_[goes_on], at[goes_on], end[goes_on], wanted[goes_on]
        return result

    def candidates(self, value: int) -> Iterable[int]:
        """Yield the slots of one hash."""
        hashes = self.hashes
        if not len(hashes):
            return
        key = np.uint64(value)
        at = int(hashes.searchsorted(key))
        while at < len(hashes) and hashes[at] == key:
            yield int(self.slots[at])
            at += 1

    def merged(self, hashes: Hashes, slots: SlotArray) -> "HashTable":
        """Return the table with more entries, few compared with its own."""
        order = np.argsort(hashes, kind="stable")
        places = np.searchsorted(self.hashes, hashes[order], side="right")
        return HashTable(
            np.insert(self.hashes, places, hashes[order]), np.insert(self.slots, places, slots[order])
        )


class IdIndex:
    """The ids of one table as of one pin."""

    def __init__(self, column: DenseColumn, base: HashTable, tail: HashTable) -> None:
        """Take the ids by slot, and the hashes of those in the base and of later ones."""
        self.column = column
        self._base, self._tail = base, tail

    @property
    def pin(self) -> TablePin:
        """The version it is for."""
        return self.column.pin

    @property
    def base(self) -> HashTable:
        """The large part of the hashes."""
        return self._base

    @property
    def is_folded(self) -> bool:
        """Whether everything is in the base."""
        return not len(self._tail.hashes) and not len(self.column.patched)

    @property
    def pins(self) -> tuple[TablePin, ...]:
        """The version that it is a function of."""
        return (self.pin,)

    def parts(self) -> dict[int, int]:
        """Return the bytes of the pieces of memory it uses, by their identity."""
        tables = {id(table): table.nbytes for table in (self._base, self._tail)}
        return {**self.column.parts(), **tables}

    def slot(self, id: str) -> int:
        """Return the slot of an id, or -1."""
        value = hash_text(id)
        for table in (self._tail, self._base):
            for slot in table.candidates(value):
                if self._is_live(slot) and self._id_of(slot) == id:
                    return slot
        return -1

    def slots(self, ids: "Iterable[str] | Values") -> SlotArray:
        """Return the slots of ids; -1 where there is no row, or no id."""
        keys = ids if isinstance(ids, pa.Array) else pa.array(list(ids), pa.utf8())
        parts = [self._find(keys.slice(start, _BULK)) for start in range(0, len(keys), _BULK)]
        return np.concatenate(parts) if parts else empty_slots()

    def take(self, slots: SlotArray) -> Values:
        """Return the ids of slots, in their order."""
        return self.column.take(slots)

    def _is_live(self, slot: int) -> bool:
        slots = self.column.slots
        if not len(slots.dead):
            return slot < slots.size
        return slot < slots.size and not bool(slots.is_dead(np.array([slot], np.int32))[0])

    def _id_of(self, slot: int) -> str:
        column = self.column
        if slot < len(column.base):  # ids are not updated: what the base has is right
            return cast("str", column.base[slot].as_py())
        return cast("str", column.take(np.array([slot], np.int32))[0].as_py())

    def _find(self, keys: Values) -> SlotArray:
        if keys.null_count:
            keys = keys.fill_null("")  # no row has the empty string as its id
        hashes = hash_strings(keys)
        found = np.full(len(keys), -1, np.int32)
        for table in (self._base, self._tail):
            if len(table.hashes):
                self._find_in(table, keys, hashes, found)
        return found

    def _find_in(self, table: HashTable, keys: Values, hashes: Hashes, found: SlotArray) -> None:
        at = table.first(hashes)
        asked = np.flatnonzero((at < len(table.hashes)) & (found < 0))
        at = at[asked]
        while len(asked):
            slots = table.slots[at]
            wanted = keys if len(asked) == len(keys) else keys.take(asked)
            is_same = pc.equal(self.column.take(slots), wanted).fill_null(False)
            is_hit = is_same.to_numpy(zero_copy_only=False) & ~self.column.slots.is_dead(slots)
            found[asked[is_hit]] = slots[is_hit]
            at = at + 1
            goes_on = ~is_hit & (at < len(table.hashes))
            goes_on[goes_on] = table.hashes[at[goes_on]] == hashes[asked[goes_on]]
            asked, at = asked[goes_on], at[goes_on]


def build_ids(table: OpenTable, slots: Slots) -> IdIndex:
    """Read and index the ids of a version."""
    return index_of(build_column(table, slots, ID))


def index_of(column: DenseColumn) -> IdIndex:
    """Index a column of ids."""
    column = column.folded()
    live = column.slots.all()
    ids = column.base if len(live) == len(column.base) else column.base.take(live)
    hashes = hash_strings(ids)
    order = np.argsort(hashes, kind="stable")
    return IdIndex(column, HashTable(hashes[order], live[order]), _empty())


def restored(column: DenseColumn, base: HashTable) -> IdIndex:
    """Return an index from its parts."""
    return IdIndex(column, base, _empty())


def advance_ids(index: IdIndex, slots: Slots, delta: VersionDelta) -> IdIndex:
    """Return the index as of a later pin."""
    row_ids, rows = delta.changed([ID])
    changed = slots.of_row_ids(row_ids)
    is_new = np.flatnonzero(changed >= index.column.slots.size)
    new, ids = changed[is_new], plain(rows[ID]).take(is_new)
    column = patched_column(index.column, slots, new, ids)
    added = len(index._tail.hashes) + len(new)
    if added > TAIL_FREE + TAIL_MAX_SHARE * len(index._base.hashes):
        return index_of(column)
    return IdIndex(column, index._base, index._tail.merged(hash_strings(ids), new))


def _empty() -> HashTable:
    return HashTable(np.empty(0, np.uint64), empty_slots())
