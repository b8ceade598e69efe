"""Whole columns in memory, indexed by slot: a base array and the values written since.

C1  A view is immutable and right for its pin; advancing shares the base, so that older snapshots stay right.
C2  The cost of advancing a view depends on the rows that changed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from omnigraph.core.arrays import SlotArray, Values
from omnigraph.exec.dense.arrays import empty_slots, plain, taken
from omnigraph.exec.dense.slots import OpenTable, Slots, TablePin
from omnigraph.storage.tables.rows import read_rows, row_ids_of
from omnigraph.storage.versions.difference import Layout, VersionDelta

PATCHES_MAX = 4_096  # values beside the base; more are folded into a new one
REPEATS_SAMPLE = 8_192
REPEATS_MIN = 4  # from this many rows per distinct string, codes are smaller than strings


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
