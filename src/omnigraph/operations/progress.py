"""What long work on many tables reports while it runs: the table at hand, and how long the rest takes.

P1  A table that is done counts as a whole, and one at hand with those of its parts that are done: work on one
    large table has an end in sight.
P2  Parts are told in steps of a hundredth of all the work, however small they are.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from omnigraph.core.clock import boot_clock

Unit = Literal["rows", "files"]
STEPS_MAX = 100  # in which parts are told (P2): finer ones would be seen by nobody


@dataclass(frozen=True, slots=True)
class TableProgress:
    """A table that is begun, has come further, or is done; `unit` is what the work is counted in.

    `stage` is what is done with the tables, where an operation goes through them more than once: each of its
    stages counts for itself.
    """

    operation: str
    table_key: str
    is_done: bool
    tables_done: int
    tables_total: int
    units_done: int
    units_total: int
    seconds: float
    unit: Unit = "rows"
    stage: str | None = None

    @property
    def remaining_s(self) -> float | None:
        """How long the rest takes at this rate; `None` before anything is done."""
        if self.tables_done == self.tables_total:
            return 0.0
        left = self.units_total - self.units_done
        return self.seconds * left / self.units_done if self.units_done else None


TableProgressCallback = Callable[[TableProgress], None]
Advance = Callable[[int], None]  # how much more of the table at hand is done


def unseen(_progress: TableProgress) -> None:
    """Ignore it."""


def unmoved(_units: int) -> None:
    """Ignore that a part is done."""


class Tables:
    """Counts the tables of one operation; several threads may work on them."""

    def __init__(
        self,
        operation: str,
        work: Mapping[str, int],
        tell: TableProgressCallback,
        *,
        unit: Unit = "rows",
        stage: str | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Take how much work each table is, by which the time that is left is estimated.

        `names` are what tables are called where their keys here are others.
        """
        self._operation, self._work, self._tell = operation, work, tell
        self._unit, self._stage, self._names = unit, stage, names or {}
        self._total = sum(work.values())
        self._done: set[str] = set()
        self._parts: dict[str, int] = {}
        self._units_done = self._step = 0
        self._lock = threading.Lock()
        self._begun = boot_clock()

    @contextmanager
    def at(self, table_key: str) -> Iterator[Advance]:
        """Report a table that is begun and done; one that fails is not done.

        Yields what to call when a part of the table is done, with its units (P1).
        """
        self._report(table_key, is_done=False)
        yield lambda units: self._advance(table_key, units)
        with self._lock:
            self._done.add(table_key)
            self._reach(table_key, self._work[table_key])
        self._report(table_key, is_done=True)

    def _advance(self, table_key: str, units: int) -> None:
        with self._lock:
            self._reach(table_key, min(self._work[table_key], self._parts.get(table_key, 0) + units))
            is_told = self._units_done * STEPS_MAX // max(self._total, 1) > self._step
        if is_told:
            self._report(table_key, is_done=False)

    def _reach(self, table_key: str, units: int) -> None:
        self._units_done += units - self._parts.get(table_key, 0)
        self._parts[table_key] = units

    def _report(self, table_key: str, *, is_done: bool) -> None:
        with self._lock:
            self._step = self._units_done * STEPS_MAX // max(self._total, 1)
            self._tell(
                TableProgress(
                    self._operation,
                    self._names.get(table_key, table_key),
                    is_done,
                    len(self._done),
                    len(self._work),
                    self._units_done,
                    self._total,
                    boot_clock() - self._begun,
                    self._unit,
                    self._stage,
                )
            )
