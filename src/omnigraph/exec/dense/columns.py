"""Whole columns in memory, indexed by slot: which are worth it, and what they hold.

A column is a base array and the values written since.

C1  A view is immutable and right for its pin; advancing shares the base, so that older snapshots stay right.
C2  The cost of advancing a view depends on the rows that changed.

Z1  What a search finds does not depend on what is kept. A column that is small enough is always compared in
    memory, unless so few rows are asked for that their vectors are fetched and compared in the same way.

H1  A column is read whole once fetching parts of it has cost as much: at worst twice the least is spent.
H2  A table whose ids are in memory will be asked for more rows: a quarter of that is enough.
H3  What is kept never decides an answer, only how quickly it comes.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.arrays import SlotArray, Values
from omnigraph.exec.dense.resident import Counter, ResidentKey, Residents
from omnigraph.exec.dense.slots import OpenTable, Slots, TablePin, empty_slots, plain, taken
from omnigraph.exec.dense.vectors import VectorBlock, advance_vectors, build_vectors
from omnigraph.storage.tables.rows import field_id, read_rows, row_ids_of, take_rows
from omnigraph.storage.versions.difference import Layout, VersionDelta

COLUMN_SHARE = 4  # of the memory that one column may take: a quarter
IN_USE_SHARE = 4  # of the cost of a read, for a table that is in constant use (H2)
SAMPLE_ROWS = 512
TEXT_BYTES_MAX = 128  # mean length of strings that are worth keeping

# Milliseconds; only their ratios matter.
_FETCH_MS, _FETCH_ROW_MS, _READ_MS, _READ_ROW_MS = 0.5, 0.001, 3.0, 0.00003
_FETCH_NUMBER_MS, _READ_NUMBER_MS = 0.0002, 0.000004  # of vectors

PATCHES_MAX = 4_096  # values beside the base; more are folded into a new one
REPEATS_SAMPLE = 8_192
REPEATS_MIN = 4  # from this many rows per distinct string, codes are smaller than strings
NUMBERS_MAX = 16_000_000  # of one column: comparing them all takes about as long as a search by index
NUMBER_BYTES = 4


@final
class Worth:
    """What was spent on columns that are not kept; safe for threads."""

    def __init__(self, memory_bytes: int) -> None:
        """Take the memory that all derived structures may use."""
        self._column_bytes_max = memory_bytes // COLUMN_SHARE
        self._lock = threading.Lock()
        self._spent_ms: dict[ResidentKey, float] = {}
        self._is_short: dict[ResidentKey, bool] = {}

    def is_due(self, key: ResidentKey, *, fetched: int, rows: int, is_in_use: bool) -> bool:
        """Count a fetch of some rows; say whether reading a column of `rows` rows has become cheaper."""
        spent_ms = self._spend(key, _FETCH_MS + _FETCH_ROW_MS * fetched)
        return spent_ms * (IN_USE_SHARE if is_in_use else 1) >= _READ_MS + _READ_ROW_MS * rows

    def are_vectors_due(self, key: ResidentKey, *, fetched: int, numbers: int) -> bool:
        """Count a fetch of some numbers of vectors; say whether reading all of them has become cheaper."""
        spent_ms = self._spend(key, _FETCH_MS + _FETCH_NUMBER_MS * fetched)
        return spent_ms >= _READ_MS + _READ_NUMBER_MS * numbers

    def fits(self, size: float) -> bool:
        """Say whether a column of this many bytes may be kept."""
        return size <= self._column_bytes_max

    def is_short(self, key: ResidentKey, table: OpenTable, slots: Slots, name: str) -> bool:
        """Say whether a column is short enough to be kept: fixed-width always, strings by a sample."""
        known = self._is_short.get(key)
        if known is None:
            known = self._is_short[key] = self._has_short_values(table, slots, name)
        return known

    def _spend(self, key: ResidentKey, ms: float) -> float:
        with self._lock:
            spent = self._spent_ms[key] = self._spent_ms.get(key, 0.0) + ms
        return spent

    def _has_short_values(self, table: OpenTable, slots: Slots, name: str) -> bool:
        type_ = table.handle.schema.field(name).type
        if pa.types.is_primitive(type_):
            return self.fits(slots.size * 8)
        if not (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
            return False
        live = slots.all()
        if not len(live):
            return True
        sample = live[:: max(1, len(live) // SAMPLE_ROWS)][:SAMPLE_ROWS]
        taken = take_rows(table.handle, slots.row_ids(sample), [name])
        mean = (pc.sum(pc.binary_length(taken[name])).as_py() or 0) / len(sample)
        return mean <= TEXT_BYTES_MAX and self.fits(mean * slots.size)


@dataclass(frozen=True, eq=False)
class DenseColumn:
    """One column as of one pin. Slots without a row give null or a value of the past."""

    pin: TablePin
    name: str
    base: Values
    patched: SlotArray  # ascending
    patch: Values
    layout: Layout
    slots: Slots

    @property
    def pins(self) -> tuple[TablePin, ...]:
        """The version that it is a function of."""
        return (self.pin,)

    def parts(self) -> dict[int, int]:
        """Return the bytes of the pieces of memory it uses, by their identity."""
        parts = {id(self.base): self.base.nbytes, id(self.patch): self.patch.nbytes + self.patched.nbytes}
        whole = self.__dict__.get("whole")
        return parts if whole is None else {**parts, id(whole): whole.nbytes}

    def take(self, slots: SlotArray) -> Values:
        """Return the values of slots in their order, never dictionary-encoded."""
        count = len(self.base)
        if not len(self.patched) and self.slots.size == count:
            return _decoded(_one(self.base, int(slots[0])) if len(slots) == 1 else self.base.take(slots))
        places = np.searchsorted(self.patched, slots)
        places[places == len(self.patched)] = 0
        is_patched = self.patched[places] == slots if len(self.patched) else np.zeros(len(slots), np.bool_)
        is_base = ~is_patched & (slots < count)
        if is_base.all():
            return _decoded(self.base.take(slots))
        parts = pa.concat_arrays(
            [
                _decoded(self.base.take(slots[is_base])),
                self.patch.take(places[is_patched]),
            ]
        )
        index = np.full(len(slots), -1, np.int64)
        index[is_base] = np.arange(int(is_base.sum()))
        index[is_patched] = int(is_base.sum()) + np.arange(int(is_patched.sum()))
        return taken(parts, index)

    @cached_property
    def whole(self) -> Values:
        """The value of every slot; null where it has no row. May be dictionary-encoded."""
        values = self.folded().base
        if not len(self.slots.dead):
            return values
        index = np.arange(self.slots.size)
        index[self.slots.dead] = -1
        return taken(values, index)

    def folded(self) -> "DenseColumn":
        """Return the same column with everything in its base."""
        size, count = self.slots.size, len(self.base)
        if not len(self.patched) and size == count:
            return self
        index = np.arange(size, dtype=np.int64)
        index[count:] = -1
        index[self.patched] = count + np.arange(len(self.patched))
        base = taken(_joined(self.base, self.patch), index)
        return DenseColumn(
            self.pin, self.name, base, empty_slots(), self.patch.slice(0, 0), self.layout, self.slots
        )


def build_column(table: OpenTable, slots: Slots, name: str) -> DenseColumn:
    """Read a column of a version."""
    rows = read_rows(table.handle, [name])
    values = by_slot(plain(rows[name]), slots.of_row_ids(row_ids_of(rows)), slots.size)
    empty = values.slice(0, 0)
    return DenseColumn(slots.pin, name, _encoded(values), empty_slots(), empty, slots.layout, slots)


def advance_column(column: DenseColumn, slots: Slots, delta: VersionDelta, name: str) -> DenseColumn:
    """Return the column as of a later pin, where it may have another name (C2)."""
    row_ids, rows = delta.changed([name])
    return patched_column(column, slots, slots.of_row_ids(row_ids), plain(rows[name]))


def patched_column(column: DenseColumn, slots: Slots, changed: SlotArray, values: Values) -> DenseColumn:
    """Return the column at a later pin with other values for some slots."""
    assert (changed >= 0).all(), "a row of the version has no slot"
    patched, patch = column.patched, column.patch
    if len(changed):
        kept = np.flatnonzero(~np.isin(patched, changed))
        patched = np.concatenate([patched[kept], changed])
        order = np.argsort(patched, kind="stable")
        patched = patched[order]
        patch = pa.concat_arrays([patch.take(kept), values]).take(order)
    advanced = DenseColumn(slots.pin, column.name, column.base, patched, patch, slots.layout, slots)
    return advanced.folded() if len(patched) > PATCHES_MAX else advanced


def by_slot(values: Values, slots: SlotArray, size: int) -> Values:
    """Return values ordered by slot; null where none is given."""
    if len(slots) == size and bool((slots == np.arange(size, dtype=np.int32)).all()):
        return values
    assert (slots >= 0).all(), "a row of the version has no slot"
    index = np.full(size, -1, np.int64)
    index[slots] = np.arange(len(slots))
    return taken(values, index)


def _one(values: Values, position: int) -> Values:
    """Return one value as its own array; a fifth of the time of `take`, and the rest is not kept alive."""
    return pa.concat_arrays([values.slice(position, 1), values.slice(0, 0)])


def _encoded(values: Values) -> Values:
    """Return strings that repeat as codes of a dictionary, anything else unchanged."""
    if not pa.types.is_string(values.type) or len(values) < REPEATS_MIN:
        return values
    sample = values.slice(0, REPEATS_SAMPLE)
    if len(sample.unique()) * REPEATS_MIN > len(sample):
        return values
    encoded = values.dictionary_encode()
    return values if len(encoded.dictionary) * REPEATS_MIN > len(values) else encoded


def _decoded(values: Values) -> Values:
    return values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values


def _joined(base: Values, patch: Values) -> Values:
    """Return base and patch as one array of the base's kind."""
    if not isinstance(base, pa.DictionaryArray):
        return pa.concat_arrays([base, patch])
    pieces = pa.chunked_array([base, patch.dictionary_encode()]).unify_dictionaries()
    return pa.concat_arrays(pieces.chunks)


DeltaSince: TypeAlias = Callable[[OpenTable, TablePin, Layout, TablePin], VersionDelta]


@final
class VectorBlocks:
    """The vectors that are in memory; safe to share between threads."""

    def __init__(
        self,
        residents: Residents,
        counter: Counter,
        worth: Worth,
        slots: Callable[[OpenTable], Slots],
        delta: DeltaSince,
    ) -> None:
        """Take what all derived structures share: memory, counts, costs, slots and changes."""
        self._residents = residents
        self._counter = counter
        self._worth = worth
        self._slots = slots
        self._delta = delta

    def for_search(self, table: OpenTable, name: str, rows: int, *, few: int) -> VectorBlock | None:
        """Return the block to search some rows of a column in, or `None` where the table must be asked (Z1).

        The vectors of `few` rows are fetched until reading the block pays.
        """
        dimension = cast("pa.FixedSizeListType[Any]", table.handle.schema.field(name).type).list_size
        numbers = table.handle.row_count * dimension
        if numbers > NUMBERS_MAX or not self._worth.fits(numbers * NUMBER_BYTES):
            return None
        if rows <= few and not self._is_due(table, name, rows * dimension, numbers):
            return None
        return self.get(table, name)

    def get(self, table: OpenTable, name: str) -> VectorBlock:
        """Return the vectors of a column: kept, advanced or read."""
        slots = self._slots(table)

        def advance(block: VectorBlock) -> VectorBlock:
            before = block.slots
            self._counter.add("vector_advances")
            delta = self._delta(table, before.pin, before.layout, slots.generation)
            return advance_vectors(block, slots, delta, name)

        def build() -> VectorBlock:
            self._counter.add("vector_builds")
            return build_vectors(table, slots, name)

        key = self._key(table, slots, name)
        return self._residents.view(key, slots.pins, advance=advance, build=build)

    def resident(self, table: OpenTable, name: str) -> VectorBlock | None:
        """Return the vectors of a column if a version of them is in memory."""
        known = self._residents.known(self._key(table, self._slots(table), name))
        return None if known is None else self.get(table, name)

    def _is_due(self, table: OpenTable, name: str, asked: int, numbers: int) -> bool:
        key = self._key(table, self._slots(table), name)
        is_kept = self._residents.known(key) is not None
        return is_kept or self._worth.are_vectors_due(key, fetched=asked, numbers=numbers)

    def _key(self, table: OpenTable, slots: Slots, name: str) -> ResidentKey:
        return ResidentKey("vectors", ((table.lineage, slots.generation),), field_id(table.handle, name))
