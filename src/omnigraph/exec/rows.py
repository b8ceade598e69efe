"""The binding table: what operators hand to each other.

R1  A column holds the slots of one variable, of nodes or of edges; all columns are equally long.
R2  A weight says how many equal rows a row stands for. Without weights every row stands for itself.
R3  Rows are values: an operator returns new ones, and never writes into an array that it was given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import Ints, Mask, SlotArray

NO_SLOTS: SlotArray = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class BindingTable:
    """Assignments of nodes and edges to variables."""

    size: int
    slots: Mapping[str, SlotArray] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)  # variable -> key of its table
    weight: npt.NDArray[np.int64] | None = None

    def take(self, positions: Ints) -> "BindingTable":
        """Return rows by position, which may repeat and need not be in order."""
        slots = {name: column[positions] for name, column in self.slots.items()}
        weight = None if self.weight is None else self.weight[positions]
        return BindingTable(len(positions), slots, self.tables, weight)

    def some(self, positions: Ints) -> "BindingTable":
        """Return rows by ascending, distinct positions; as many positions as rows are all of them."""
        return self if len(positions) == self.size else self.take(positions)

    def where(self, mask: Mask) -> "BindingTable":
        """Return the rows that a mask keeps; the same ones where it keeps them all."""
        return self.some(np.flatnonzero(mask))

    def none(self) -> "BindingTable":
        """Return no rows, with the same variables."""
        return self.take(np.empty(0, np.int64))

    def with_variable(self, name: str, table_key: str, slots: SlotArray) -> "BindingTable":
        """Return the rows with one more variable."""
        assert len(slots) == self.size, f"{len(slots)} slots for {self.size} rows"
        return BindingTable(
            self.size, {**self.slots, name: slots}, {**self.tables, name: table_key}, self.weight
        )

    def times(self, counts: npt.NDArray[np.int64]) -> "BindingTable":
        """Return the rows, each standing for `counts` times as many; those standing for none are dropped."""
        weight = counts if self.weight is None else self.weight * counts
        weighted = BindingTable(self.size, self.slots, self.tables, weight)
        return weighted if counts.all() else weighted.where(counts > 0)

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        held = sum(column.nbytes for column in self.slots.values())
        return held + (0 if self.weight is None else self.weight.nbytes)


UNIT = BindingTable(1)  # one row without variables: what a pipeline starts from


def distinct(slots: SlotArray, size: int) -> SlotArray:
    """Return each slot once, ascending; `size` is one more than the greatest there can be."""
    if len(slots) < 2:
        return slots
    if len(slots) * 16 < size:
        ordered = np.sort(slots)
        return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    present = np.zeros(size, np.bool_)
    present[slots] = True
    return np.flatnonzero(present).astype(np.int32)
