"""Which columns of vectors are compared in memory, and their blocks.

Z1  What a search finds does not depend on what is kept. A column that is small enough is always compared in
    memory, unless so few rows are asked for that their vectors are fetched and compared in the same way.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, cast, final

import pyarrow as pa

from omnigraph.exec.dense.counts import Counter
from omnigraph.exec.dense.resident import ResidentKey, Residents
from omnigraph.exec.dense.slots import OpenTable, Slots, TablePin
from omnigraph.exec.dense.vectors import VectorBlock, advance_vectors, build_vectors
from omnigraph.exec.dense.worth import Worth
from omnigraph.storage.tables.rows import field_id
from omnigraph.storage.versions.difference import Layout, VersionDelta

NUMBERS_MAX = 16_000_000  # of one column: comparing them all takes about as long as a search by index
NUMBER_BYTES = 4

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
