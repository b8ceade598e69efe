"""The binding table, which operators hand to each other, and what one query may use of time and memory.

R1  A column holds the slots of one variable, of nodes or of edges; all columns are equally long.
R2  A weight says how many equal rows a row stands for. Without weights every row stands for itself.
R3  Rows are values: an operator returns new ones, and never writes into an array that it was given.

U1  A query that passes its limits ends with a typed error, between operators or before a big allocation.
U2  The size of an allocation is computed from what is known (degrees, row counts), never by trying.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
import numpy.typing as npt

from omnigraph.core.arrays import Ints, Mask, SlotArray
from omnigraph.core.cancellation import check_cancelled
from omnigraph.core.errors import CartesianProductRefused, QueryMemoryExceeded, QueryTimeout

NO_SLOTS: SlotArray = np.empty(0, np.int32)

PRODUCT_ROWS_MAX = 10_000_000  # combinations of unconnected parts; more is nearly always a missing clause
SLOT_BYTES = 4  # a slot of a node or edge in the binding table


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


class Budget:
    """The limits of one running query; `None` is unlimited."""

    __slots__ = ("_deadline", "_held", "_memory", "_started", "_timeout_ms")

    def __init__(self, memory_bytes: int | None = None, timeout_ms: int | None = None) -> None:
        """Start the clock."""
        self._memory = memory_bytes
        self._timeout_ms = timeout_ms
        self._held = 0
        self._started = monotonic()
        self._deadline = None if timeout_ms is None else self._started + timeout_ms / 1_000

    def check(self) -> None:
        """Look at the clock.

        Raises:
            QueryTimeout: the query has taken longer than it may.
        """
        check_cancelled()
        if self._deadline is None:
            return
        now = monotonic()
        if now > self._deadline:
            assert self._timeout_ms is not None
            raise QueryTimeout(limit_ms=self._timeout_ms, elapsed_ms=int((now - self._started) * 1_000))

    def hold(self, size: int) -> None:
        """Say how many bytes the rows between two operators take; they count with what comes next.

        Raises:
            QueryMemoryExceeded: that alone is too much.
            QueryTimeout: the query has taken longer than it may.
        """
        self._held = 0
        self.allow(size)
        self._held = size
        self.check()

    def allow(self, size: int) -> None:
        """Ask for memory before taking it.

        Raises:
            QueryMemoryExceeded: together with what is held it is more than the limit.
        """
        if self._memory is not None and self._held + size > self._memory:
            raise QueryMemoryExceeded(limit=self._memory, needed=self._held + size)

    def allow_product(self, variable: str, left: int, right: int, width: int) -> None:
        """Ask for the combinations of two row sets.

        Raises:
            CartesianProductRefused: there are too many.
            QueryMemoryExceeded: they do not fit.
        """
        if left * right > PRODUCT_ROWS_MAX:
            raise CartesianProductRefused(variable=variable, limit=PRODUCT_ROWS_MAX, estimate=left * right)
        self.allow(left * right * width * SLOT_BYTES)
